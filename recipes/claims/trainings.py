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
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, load_json
from fairseq_posenc.tools.scores.intervals import SAMPLES, SEED, t_interval
from fairseq_posenc.tools.tables.intervals import Estimate

# by range of lengths: bits and tokens of each sentence, (sentences, 2)
SentenceBits = Mapping[str, np.ndarray]
BEYOND = "beyond"  # all ranges but the first, together


class Bits:
    """Bits per token of one checkpoint: the figure, and on sentences drawn anew.

    Args:
        ranges: of each range of lengths that counts its number and the bits and tokens of its
            sentences, ``(sentences, 2)``; each is drawn from by itself.
    """

    def __init__(self, ranges: Mapping[int, np.ndarray]):
        total = sum(part.sum(axis=0) for part in ranges.values())
        self.figure = float(total[0] / total[1])
        drawn = sum(_draws(number, len(part)) @ part for number, part in ranges.items())
        self.drawn = drawn[:, 0] / drawn[:, 1]  # (draws,)

    @property
    def all(self) -> np.ndarray:
        """The figure, and behind it the draws, ``(1 + draws,)``."""
        return np.concatenate([[self.figure], self.drawn])


class CheckpointBits(NamedTuple):
    """Bits of one checkpoint by range of lengths; ``beyond`` is all ranges but the first."""

    by_range: Dict[str, Bits]

    @classmethod
    def of(cls, sentences: SentenceBits) -> "CheckpointBits":
        """Return the bits of a checkpoint's sentences."""
        parts = dict(enumerate(sentences.values()))
        by_range = {name: Bits({number: parts[number]}) for number, name in enumerate(sentences)}
        by_range[BEYOND] = Bits({number: part for number, part in parts.items() if number})
        return cls(by_range)

    @property
    def within(self) -> Bits:
        """Bits at the first range, the trained lengths."""
        return next(iter(self.by_range.values()))

    @property
    def beyond(self) -> Bits:
        """Bits at all others."""
        return self.by_range[BEYOND]


@functools.cache
def _draws(number: int, count: int) -> np.ndarray:
    """Return how often each sentence of a range is drawn, ``(draws, sentences)``.

    It is the same for every training, so that differences are paired.
    """
    random = np.random.RandomState([SEED, number])
    return random.multinomial(count, [1 / count] * count, size=SAMPLES)


class Training(NamedTuple):
    """A training of one row and seed: its checkpoints by updates, the last one at its end."""

    checkpoints: Sequence[CheckpointBits]

    @property
    def end(self) -> CheckpointBits:
        """The last checkpoint."""
        return self.checkpoints[-1]

    def beyond_at(self, level: np.ndarray) -> np.ndarray:
        """Return bits beyond where bits within have come down to a level.

        Args:
            level: of the figure and of each draw, ``(1 + draws,)``.

        Returns:
            ``(1 + draws,)``; NaN where no checkpoint is that early or none that late.
        """
        within = np.stack([point.within.all for point in self.checkpoints])
        beyond = np.stack([point.beyond.all for point in self.checkpoints])
        result = np.where(within[-1] == level, beyond[-1], np.nan)
        # the last crossing counts, as losses may go up and down at first
        for before, after in zip(range(len(within) - 1), range(1, len(within))):
            crosses = (within[before] >= level) & (within[after] <= level)
            step = within[before] - within[after]
            share = (within[before] - level) / np.where(step > 0, step, 1.0)
            line = beyond[before] + share * (beyond[after] - beyond[before])
            result = np.where(crosses, line, result)
        return result


class RowTrainings:
    """The trainings of a row by seed."""

    def __init__(self, trainings: Mapping[str, Training]):
        self.trainings = trainings

    def estimate(self, signed: Sequence[Tuple[int, "RowTrainings", str]]) -> Estimate:
        """Return a sum of figures at the end with its interval, over the seeds of all rows.

        Args:
            signed: sign, row and range of each summand.
        """
        seeds = common_seeds([row for _, row, _ in signed], self)
        return _estimate([
            np.sum([sign * row.trainings[seed].end.by_range[name].all
                    for sign, row, name in signed], axis=0)
            for seed in seeds
        ])  # fmt: skip

    def differences(self, base: "RowTrainings", names: Sequence[str]) -> List[Estimate]:
        """Return this row less another at the end, by range."""
        return [self.estimate([(1, self, name), (-1, base, name)]) for name in names]


class EqualLevel:
    """Rows compared at equal bits within the trained lengths.

    Attributes:
        level: the mean over seeds of the bits within at which rows are compared; None where
            checkpoints were not kept, or no seed is of all rows.
    """

    def __init__(self, rows: Mapping[str, RowTrainings]):
        self.rows = rows
        first, *compared = rows.values()
        self.seeds = common_seeds(compared, first)
        have_checkpoints = all(
            len(row.trainings[s].checkpoints) > 1 for row in rows.values() for s in self.seeds
        )
        self.levels = {
            seed: np.max([row.trainings[seed].end.within.all for row in rows.values()], axis=0)
            for seed in (self.seeds if have_checkpoints else ())
        }

    @property
    def level(self) -> Optional[float]:
        """Bits per token within the trained lengths, the mean over seeds."""
        levels = [float(level[0]) for level in self.levels.values()]
        return statistics.mean(levels) if levels else None

    def beyond(self, label: str) -> Estimate:
        """Return a row's bits beyond the trained lengths at the level."""
        return _estimate([self._at(label, seed) for seed in self.levels])

    def less(self, label: str, base: str) -> Estimate:
        """Return the same less another row's."""
        return _estimate([self._at(label, seed) - self._at(base, seed) for seed in self.levels])

    def _at(self, label: str, seed: str) -> np.ndarray:
        return self.rows[label].trainings[seed].beyond_at(self.levels[seed])


def common_seeds(rows: Sequence[RowTrainings], first: RowTrainings) -> List[str]:
    """Return the seeds that all rows have, in the order of the first."""
    return [seed for seed in first.trainings if all(seed in row.trainings for row in rows)]


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


def read_rows(arguments: Sequence[str]) -> Tuple[Dict[str, RowTrainings], List[str]]:
    """Read ``label=…/<seed>/bits.json`` arguments; return the rows, and the names of the ranges.

    Raises:
        UsageError: an argument is no such path, a seed stands twice, or the ranges differ.
    """
    rows: Dict[str, Dict[str, Training]] = {}
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
            checkpoints.append(CheckpointBits.of(by_range))
        seed = os.path.basename(os.path.dirname(os.path.abspath(path)))
        if seed in rows.setdefault(label, {}):
            raise UsageError(f"{label} has {seed} twice")
        rows[label][seed] = Training(checkpoints)
    return {label: RowTrainings(trainings) for label, trainings in rows.items()}, names
