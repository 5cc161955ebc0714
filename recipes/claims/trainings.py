"""Bits per token of trainings by length: at their end, and beyond the trained lengths at equal bits
within these.

A row of a table is an encoding, trained with several seeds. An encoding that learns more slowly has
more bits at all lengths, so its rise beyond the trained lengths looks small: after 150 of 1,800
updates even sinusoids rise less than any encoding at its end. So rows are compared where they are
equally good within the trained lengths: of each training the checkpoints that were kept give points
(bits within, bits beyond), and bits beyond are read off the line through these points at the bits
within that the worst row has at its end, seed by seed.
"""

import functools
import os
import statistics
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, load_json
from fairseq_posenc.tools.scores.intervals import SAMPLES, SEED, t_interval
from fairseq_posenc.tools.tables.intervals import Estimate

BEYOND = "beyond"  # all ranges but the first, which is that of the trained lengths
# of a checkpoint, bits per token by range: the figure, and behind it those of draws of sentences,
# (1 + draws,)
Checkpoint = Dict[str, np.ndarray]
# of a row, the checkpoints of each seed, the last one at the end of its training
Row = Mapping[str, Sequence[Checkpoint]]


def checkpoint_bits(sentences: Mapping[str, np.ndarray]) -> Checkpoint:
    """Return the bits of a checkpoint by range, ``beyond`` among them.

    Args:
        sentences: bits and tokens of each sentence by range, ``(sentences, 2)``; each range is
            drawn from by itself.
    """

    def per_token(names: Sequence[str]) -> np.ndarray:
        totals = [np.vstack([sentences[name].sum(axis=0), drawn[name]]) for name in names]
        bits, tokens = np.sum(totals, axis=0).T
        return bits / tokens

    parts = enumerate(sentences.items())
    drawn = {name: _draws(number, len(part)) @ part for number, (name, part) in parts}
    by_range = {name: per_token([name]) for name in sentences}
    return {**by_range, BEYOND: per_token(list(sentences)[1:])}


@functools.cache
def _draws(number: int, count: int) -> np.ndarray:
    """Return how often each sentence of a range is drawn, ``(draws, sentences)``.

    It is the same for every training, so that differences are paired.
    """
    random = np.random.RandomState([SEED, number])
    return random.multinomial(count, [1 / count] * count, size=SAMPLES)


def within(checkpoint: Checkpoint) -> np.ndarray:
    """Return the bits at the first range, the trained lengths."""
    return next(iter(checkpoint.values()))


def beyond_at(checkpoints: Sequence[Checkpoint], level: np.ndarray) -> np.ndarray:
    """Return a training's bits beyond where its bits within have come down to a level.

    Args:
        checkpoints: in their order.
        level: of the figure and of each draw, ``(1 + draws,)``.

    Returns:
        ``(1 + draws,)``; NaN where no checkpoint is that early or none that late.
    """
    bits = [(within(checkpoint), checkpoint[BEYOND]) for checkpoint in checkpoints]
    result = np.where(bits[-1][0] == level, bits[-1][1], np.nan)
    # the last crossing counts, as losses may go up and down at first
    for (within_before, before), (within_after, after) in zip(bits, bits[1:]):
        step = within_before - within_after
        share = (within_before - level) / np.where(step > 0, step, 1.0)
        crosses = (within_before >= level) & (within_after <= level)
        result = np.where(crosses, before + share * (after - before), result)
    return result


def end(row: Row, name: str) -> Estimate:
    """Return a row's bits at the end of training in a range."""
    return _estimate([checkpoints[-1][name] for checkpoints in row.values()])


def difference(row: Row, base: Row, name: str) -> Estimate:
    """Return the same less another row's, over the seeds of both."""
    return _estimate([row[s][-1][name] - base[s][-1][name] for s in row if s in base])


class EqualLevel:
    """Rows compared at equal bits within the trained lengths.

    Attributes:
        levels: the bits at which rows are compared, by each seed that is of all rows; none where
            checkpoints were not kept.
        level: their mean; None without.
    """

    def __init__(self, rows: Mapping[str, Row]):
        self.rows = rows
        first = next(iter(rows.values()))
        seeds = [seed for seed in first if all(seed in row for row in rows.values())]
        if not all(len(row[seed]) > 1 for row in rows.values() for seed in seeds):
            seeds = []
        self.levels = {
            seed: np.max([within(row[seed][-1]) for row in rows.values()], axis=0) for seed in seeds
        }
        figures = [float(level[0]) for level in self.levels.values()]
        self.level: Optional[float] = statistics.mean(figures) if figures else None

    def beyond(self, label: str) -> Estimate:
        """Return a row's bits beyond the trained lengths at the level."""
        return _estimate([self._at(label, seed) for seed in self.levels])

    def less(self, label: str, base: str) -> Estimate:
        """Return the same less another row's."""
        return _estimate([self._at(label, seed) - self._at(base, seed) for seed in self.levels])

    def _at(self, label: str, seed: str) -> np.ndarray:
        return beyond_at(self.rows[label][seed], self.levels[seed])


def _estimate(by_seed: Sequence[np.ndarray]) -> Estimate:
    """Return the mean over seeds of figures with their draws, each ``(1 + draws,)``.

    One draw of sentences counts for all seeds. A figure that cannot be told is none.
    """
    if not by_seed or any(np.isnan(values[0]) for values in by_seed):
        return Estimate(None)
    figures = [float(values[0]) for values in by_seed]
    drawn = np.mean([values[1:] for values in by_seed], axis=0)
    drawn = drawn[~np.isnan(drawn)]
    extra = float(np.var(drawn, ddof=1)) if len(drawn) > 1 else 0.0
    return Estimate(statistics.mean(figures), *t_interval(figures, extra))


_SENTENCES = Each([[float]])
_SCHEMA = {"sentences": _SENTENCES, "earlier": Each(_SENTENCES)}


def read_rows(arguments: Sequence[str]) -> Tuple[Dict[str, Row], List[str]]:
    """Read ``label=…/<seed>/bits.json`` arguments; return the rows, and the names of the ranges.

    Raises:
        UsageError: an argument is no such path, a seed stands twice, or the ranges differ.
    """
    rows: Dict[str, Dict[str, Sequence[Checkpoint]]] = {}
    names: List[str] = []
    for argument in arguments:
        label, equals, path = argument.partition("=")
        if not (label and equals and path):
            raise UsageError(f"{argument!r} is not label=bits.json")
        content = load_json(path, _SCHEMA, "recipes.claims.bits")
        checkpoints = []
        for sentences in (*content["earlier"].values(), content["sentences"]):
            by_range = {name: np.array(part) for name, part in sentences.items() if name != "all"}
            names = names or list(by_range)
            if list(by_range) != names or len(names) < 2:
                raise UsageError(
                    f"{path} has the ranges {', '.join(by_range)}, not {', '.join(names)}"
                )
            checkpoints.append(checkpoint_bits(by_range))
        seed = os.path.basename(os.path.dirname(os.path.abspath(path)))
        if seed in rows.setdefault(label, {}):
            raise UsageError(f"{label} has {seed} twice")
        rows[label][seed] = checkpoints
    return dict(rows), names
