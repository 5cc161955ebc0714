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
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.runs import read_runs
from recipes.claims.claim_figures import seed_folders

BASE = "sinusoidal"
# Losses that are further apart, in bits per token, are not of equal convergence.
APART = 0.02
SHAPE = {
    "part": str, "run": int, "row": str, "seeds": int, "updates": int,
    "loss": [float], "fall": Maybe([float]),
    "by_length": Each({"bleu": [float], "less_base": Maybe([float]), "ratio": Maybe(float)}),
}  # fmt: skip


class Row(NamedTuple):
    """What the trainings of a row reached, over its seeds.

    Attributes:
        run: 1, or 2 of a part that was trained anew.
        loss: of validation at the end, bits per token: mean and half the 95 % interval.
        fall: of that loss over the last quarter of the updates, alike; None where not known.
        by_length: for each range ``bleu`` and ``less_base``, its difference to sinusoids of the
            same run: mean, low, high; ``ratio``, length of outputs, % of the references'.
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
    rows, scores = [], []
    for name in sorted(names, key=lambda name: (name != BASE, name)):
        folders = [folder for _, folder in seed_folders(f"{runs}/{part}/{name}")]
        done = [folder for folder in folders if os.path.exists(f"{folder}/train.done")]
        if len(done) < 2:
            continue
        ends = [reached(validation_losses(f"{folder}/train.log")) for folder in done]
        loss, fall = _mean([end.last for end in ends]), _mean([end.quarter for end in ends])
        rows.append(Row(part, 1, name, len(done), ends[0].updates, loss or (), fall, {}))
        scores += [
            f"{name}={folder}/score.json"
            for folder in done
            if os.path.exists(f"{folder}/score.json")
        ]
    if not scores:
        return rows
    lengths = _by_length(scores)
    return [row._replace(by_length=lengths.get(row.row, {})) for row in rows]


def _mean(values: Sequence[Optional[float]]) -> Optional[Tuple[float, float]]:
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return None
    low, high = t_interval(present)
    return statistics.mean(present), (high - low) / 2


def _by_length(scores: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    table = by_length(read_runs(scores))
    by_row: Dict[str, Dict[str, Any]] = {}
    for name, estimates in table.rows.items():
        for index, column in enumerate(table.columns):
            mean, low, high, _ = estimates[index]
            if mean is None:
                continue
            figures: Dict[str, Any] = {"bleu": [mean, low, high]}
            if next(iter(table.rows)) == BASE != name:
                figures["less_base"] = list(table.differences[name][index][:3])
            if table.outputs:
                figures["ratio"] = 100 * (table.outputs[name][index][1] or 0.0)
            by_row.setdefault(name, {})[column] = figures
    return by_row


def merge(earlier: Sequence[Row], now: Sequence[Row]) -> List[Row]:
    """Return the rows of a part, those of an earlier run and of this one.

    A run that has every row of the first, with as many seeds, takes its place. Any other is the
    second: it joins the second that was there if it has the same sinusoids, else it replaces it.
    """
    if not now:
        return list(earlier)
    first = [row for row in earlier if row.run == 1]
    seeds = {row.row: row.seeds for row in now}
    if all(seeds.get(row.row, 0) >= row.seeds for row in first):
        return list(now)
    second = {row.row: row for row in earlier if row.run == 2}
    added = {row.row: row._replace(run=2) for row in now}
    if BASE in second and BASE in added and _same(second[BASE], added[BASE]):
        added = {**second, **added}
    return [*first, *added.values()]


def _same(first: Row, second: Row) -> bool:
    """Whether two rows are of the same trainings, by figures with at least two decimals."""
    figures = (
        [row.seeds, row.updates, *row.loss, *row.by_length.get("all", {}).get("bleu", ())]
        for row in (first, second)
    )
    return all(abs(a - b) <= 0.0051 for a, b in zip(*figures))
