"""The rows of a part, from the logs and scores of its trainings: validation loss, BLEU by length.

Rows of one run are compared with one another. On another machine the same data, options and seed
give another model, so that rows of two runs are never mixed: a part may have two runs. Where a run
has sinusoids of equal figures, it is the same machine's, and goes on.
"""

import os
import statistics
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.json_files import Each, Maybe
from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.scores.training_log import reached, validation_losses
from fairseq_posenc.tools.tables.runs import read_runs
from fairseq_posenc.tools.tables.tables import by_length
from recipes.claims.claim_figures import seed_folders

BASE = "sinusoidal"
# Losses that are further apart, in bits per token, are not of equal convergence.
APART = 0.02
SHAPE = {
    "part": str, "run": int, "row": str, "seeds": int, "updates": int,
    "loss": [float], "fall": Maybe([float]),
    "by_length": Each({
        "bleu": [float], "less_base": Maybe([float]),
        "penalty_free": Maybe(float), "ratio": Maybe(float),
    }),
}  # fmt: skip


class Row(NamedTuple):
    """What the trainings of a row reached, over its seeds.

    Attributes:
        run: 1, or 2 of a part that was trained anew.
        loss: of validation at the end, bits per token: mean and half the 95 % interval.
        fall: of that loss over the last quarter of the updates, alike; None where not known.
        by_length: for each range ``bleu`` and ``less_base``, its difference to sinusoids of the
            same run: mean, low, high; ``penalty_free``, BLEU without its brevity penalty;
            ``ratio``, length of outputs, % of the references'.
    """

    part: str
    run: int
    row: str
    seeds: int
    updates: int
    loss: Sequence[float]
    fall: Optional[Sequence[float]]
    by_length: Mapping[str, Mapping[str, Any]]


Rows = Sequence[Row]


def measure(runs: str, part: str) -> List[Row]:
    """Return the rows of a part that have two finished trainings or more, sinusoids first."""
    names = os.listdir(f"{runs}/{part}") if os.path.isdir(f"{runs}/{part}") else []
    found, scores = [], []
    for name in sorted(names, key=lambda one: (one != BASE, one)):
        folders = [folder for _, folder in seed_folders(f"{runs}/{part}/{name}")]
        done = [one for one in folders if os.path.exists(f"{one}/train.done")]
        if len(done) < 2:
            continue
        ends = [reached(validation_losses(f"{one}/train.log")) for one in done]
        loss, fall = _mean([one.last for one in ends]), _mean([one.quarter for one in ends])
        found.append(Row(part, 1, name, len(done), ends[0].updates, loss or (), fall, {}))
        scores += [
            f"{name}={one}/score.json" for one in done if os.path.exists(f"{one}/score.json")
        ]
    if not scores:
        return found
    lengths = _by_length(scores)
    return [one._replace(by_length=lengths.get(one.row, {})) for one in found]


def _mean(values: Sequence[Optional[float]]) -> Optional[Tuple[float, float]]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    low, high = t_interval(known)
    return statistics.mean(known), (high - low) / 2


def _by_length(scores: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    table = by_length(read_runs(scores))
    found: Dict[str, Dict[str, Any]] = {}
    for name, estimates in table.rows.items():
        for place, column in enumerate(table.columns):
            mean, low, high, _ = estimates[place]
            if mean is None:
                continue
            one: Dict[str, Any] = {"bleu": [mean, low, high]}
            if next(iter(table.rows)) == BASE != name:
                one["less_base"] = list(table.differences[name][place][:3])
            if table.outputs:
                one["penalty_free"], ratio = table.outputs[name][place]
                one["ratio"] = 100 * (ratio or 0.0)
            found.setdefault(name, {})[column] = one
    return found


def join(kept: Sequence[Row], now: Sequence[Row]) -> List[Row]:
    """Return the rows of a part, those of an earlier run and of this one.

    A run that has every row of the first, with as many seeds, takes its place. Any other is the
    second: it joins the second that was there if it has measured the same, else it replaces it.
    """
    if not now:
        return list(kept)
    first = [one for one in kept if one.run == 1]
    seeds = {one.row: one.seeds for one in now}
    if all(seeds.get(one.row, 0) >= one.seeds for one in first):
        return list(now)
    second = {one.row: one for one in kept if one.run == 2}
    added = {one.row: one._replace(run=2) for one in now}
    same = all(_same(second[name], added[name]) for name in second.keys() & added.keys())
    if BASE in second and BASE in added and same:
        added = {**second, **added}
    return [*first, *added.values()]


def _same(one: Row, other: Row) -> bool:
    """Whether two rows are of the same trainings, by figures with at least two decimals."""

    def figures(row: Row) -> List[float]:
        bleu = [each["bleu"] for _, each in sorted(row.by_length.items())]
        return [row.seeds, row.updates, *row.loss, *(value for three in bleu for value in three)]

    pairs = list(zip(figures(one), figures(other)))
    known = one.by_length.keys() == other.by_length.keys()
    return known and all(abs(a - b) <= 0.0051 for a, b in pairs)


def pair(
    rows: Sequence[Row], part: str, a: str, b: str, seeds: int = 0
) -> Optional[Tuple[Row, Row]]:
    """Return two rows of a part as one run has them: that with so many seeds, or the first."""
    found = []
    for run in (1, 2):
        of_run = {one.row: one for one in rows if (one.part, one.run) == (part, run)}
        if a in of_run and b in of_run:
            found.append((of_run[a], of_run[b]))
    found.sort(key=lambda two: min(two[0].seeds, two[1].seeds) != seeds)
    return found[0] if found else None
