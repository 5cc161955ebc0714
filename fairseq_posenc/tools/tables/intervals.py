"""Scores of a set of sentences with their 95 % intervals, and the differences of two."""

import statistics
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from fairseq_posenc.tools.scores.intervals import Estimate, interval, t_interval, welch_interval


class Sampled(NamedTuple):
    """A run's scores of a set of sentences.

    ``values`` are by seed, in the order of ``seeds`` (empty texts where they are not known).
    ``drawn``, of shape ``(samples,)``, is their mean on each bootstrap sample of the sentences,
    which are the same for all runs. Without sentences there are neither.
    """

    seeds: Sequence[str]
    values: Sequence[float]
    drawn: np.ndarray

    def estimate(self) -> Estimate:
        """Return the mean with its interval, see :mod:`fairseq_posenc.tools.scores.intervals`."""
        return _estimate(self.values, self.drawn)

    def less(self, base: "Sampled") -> Estimate:
        """Return by how much this run is above the other: of pairs of equal seeds, or Welch's."""
        if not (self.values and base.values):
            return Estimate(None)
        # on the same samples of sentences: what makes a sentence hard for both cancels out
        drawn = self.drawn - base.drawn
        # a seed gives both the same batches, and a difference takes these out; where one has no
        # partner, the means are over different trainings
        pairs = paired_seeds(self.seeds, base.seeds)
        if len(self.values) == len(base.values) == 1:
            pairs = [(0, 0)]
        if len(pairs) == len(self.values) == len(base.values):
            return _estimate([self.values[at] - base.values[to] for at, to in pairs], drawn)
        bounds = welch_interval(self.values, base.values, np.nanvar(drawn, ddof=1))
        return Estimate(statistics.mean(self.values) - statistics.mean(base.values), *bounds)


def paired_seeds(first: Sequence[str], second: Sequence[str]) -> List[Tuple[int, int]]:
    """Return the places of equal seeds in both; seeds that are not noted are paired in order."""
    places: Dict[str, List[int]] = {}
    for index, seed in enumerate(second):
        places.setdefault(seed, []).append(index)
    return [(index, places[seed].pop(0)) for index, seed in enumerate(first) if places.get(seed)]


def _estimate(values: Sequence[float], drawn: np.ndarray) -> Estimate:
    if not values:
        return Estimate(None)
    mean = statistics.mean(values)
    if len(values) == 1:
        return Estimate(mean, *interval(drawn))
    return Estimate(mean, *t_interval(values, np.nanvar(drawn, ddof=1)), statistics.stdev(values))
