"""Tables of results: encodings by length of sentence, over the ``score.json`` of many runs."""

import csv
import io
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation.bleu import METRICS
from fairseq_posenc.json_files import Each, Maybe, OrNull, read_shaped

# what tables read of the result of scripts/score.py; a metric may be missing from older ones
FIGURES = dict.fromkeys(METRICS, Maybe(float))
_BIN = {"name": str, "longer_than": float, "up_to": OrNull(float), "sentences": int, **FIGURES}
_SCORE = {
    "all": FIGURES,
    "by_length": OrNull({"of": str, "unit": str, "bins": [_BIN]}),
    "signatures": Each(str),
}

Score = Dict[str, Any]
Runs = Dict[str, List[Score]]


class Cell(NamedTuple):
    """Mean and sample standard deviation of a figure over the seeds of a run.

    ``mean`` is None where there is no sentence to score, ``spread`` where there is one seed.
    """

    mean: Optional[float]
    spread: Optional[float] = None

    def __str__(self) -> str:
        if self.mean is None:
            return "-"
        return f"{self.mean:.2f}" + ("" if self.spread is None else f" ± {self.spread:.2f}")


@dataclass
class Table:
    """A table of figures, one row of cells per run; ``notes`` are printed below it."""

    title: str
    columns: List[str]
    rows: Dict[str, List[Cell]]
    notes: List[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the table as Markdown whose columns stand below each other as text too."""
        lines = [[name, *map(str, cells)] for name, cells in self.rows.items()]
        table = markdown_table([["", *self.columns], *lines])
        return "\n\n".join([self.title, table, *self.notes]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, a line per figure."""
        lines: List[Sequence[Any]] = [("row", "column", "mean", "standard deviation")]
        for name, cells in self.rows.items():
            lines += [(name, column, *cell) for column, cell in zip(self.columns, cells)]
        return csv_table(lines)


def markdown_table(lines: Sequence[Sequence[str]], labels: int = 1) -> str:
    """Return lines of cells, the header first, as Markdown; the first ``labels`` are text."""
    widths = [max(3, *map(len, column)) for column in zip(*lines)]
    rule = [
        "-" * width if index < labels else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    ]
    lines = [lines[0], rule, *lines[1:]]
    return "\n".join(f"| {' | '.join(padded(line, widths, labels))} |" for line in lines)


def csv_table(lines: Sequence[Sequence[Any]]) -> str:
    """Return lines of values as CSV; None is an empty field."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    return stream.getvalue()


def padded(row: Sequence[str], widths: Sequence[int], labels: int = 1) -> List[str]:
    """Return the cells filled with spaces to ``widths``: ``labels`` to the left, others right."""
    return [
        cell.ljust(width) if index < labels else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths))
    ]


def read_runs(arguments: Sequence[str]) -> Runs:
    """Read results given as ``NAME=path/score.json``; several of one name are seeds of one run.

    Without ``NAME=``, a run has the name of its folder, or of the one above ``seed<n>``.

    Raises:
        UsageError: a file that is missing or not from ``scripts/score.py --output``.
    """
    runs: Runs = {}
    for argument in arguments:
        name, sign, path = argument.partition("=")
        if not sign or "/" in name:
            path = argument
            folder = Path(path).resolve().parent
            name = folder.parent.name if re.fullmatch(r"seed\d+", folder.name) else folder.name
        score = read_shaped(path, _SCORE, "scripts/score.py --output")
        runs.setdefault(name, []).append(score)
    return runs


def by_length(runs: Runs, metric: str = "sacrebleu") -> Table:
    """Return ``metric`` (of ``METRICS``) for the whole test set and each bin of length.

    Raises:
        UsageError: results without bins, or that cannot be compared: of other bins, test sets or
            signatures (the version of sacreBLEU aside).
    """
    check_comparable(runs, metric)
    first = next(iter(runs.values()))[0]
    bins = first["by_length"]["bins"]
    rows = {}
    for name, seeds in runs.items():
        parts = [[score["all"], *score["by_length"]["bins"]] for score in seeds]
        rows[name] = [_cell([part.get(metric) for part in column]) for column in zip(*parts)]
    notes = [f"Signature: {first['signatures'][metric]}"]
    if any(len(seeds) > 1 for seeds in runs.values()):
        counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in runs.items())
        notes.insert(0, f"Mean ± sample standard deviation over seeds ({counts}).")
    return Table(
        title=f"{METRICS[metric]} by {length_label(first)}",
        columns=["all", *(part["name"] for part in bins)],
        rows=rows,
        notes=notes,
    )


def length_label(score: Score) -> str:
    """Return what the bins of a result count, in words."""
    return f"{score['by_length']['of']} length ({score['by_length']['unit']})"


def check_comparable(runs: Runs, metric: str) -> None:
    """Raise :class:`UsageError` unless the results have the same bins, test set and signature."""
    expected: Dict[str, Any] = {}
    for name, seeds in runs.items():
        for score in seeds:
            if not score["by_length"]:
                raise UsageError(f"{name} has no bins: score it with --bins or --percentiles")
            if metric not in score["signatures"]:
                raise UsageError(f"{name} has no {METRICS[metric]}; score it again")
            for what, value in _conditions(score, metric).items():
                if expected.setdefault(what, value) != value:
                    raise UsageError(
                        f"{name} cannot be compared with {next(iter(runs))}: {what} differ "
                        f"({value} and {expected[what]}); score both alike"
                    )


def _conditions(score: Score, metric: str) -> Dict[str, Any]:
    bins = score["by_length"]["bins"]
    return {
        "lengths": length_label(score),
        "bins": ", ".join(f"{part['name']} up to {part['up_to']}" for part in bins),
        "sentences per bin": [part["sentences"] for part in bins],
        "signatures": re.sub(r"\|version:[^|]*", "", score["signatures"][metric]),
    }


def _cell(values: List[Optional[float]]) -> Cell:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Cell(None)
    spread = statistics.stdev(known) if len(known) > 1 else None
    return Cell(statistics.mean(known), spread)
