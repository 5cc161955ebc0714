"""Tables of results: encodings by length of sentence, over the ``score.json`` of many runs."""

import csv
import io
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe, OrNull, read_shaped
from fairseq_posenc.tools.scores.bleu import METRICS, WIDTHS, corpus_score
from fairseq_posenc.tools.scores.intervals import (
    SAMPLES,
    bootstrap,
    interval,
    t_interval,
    welch_interval,
)
from fairseq_posenc.tools.scores.lengths import Bin, length_label, share
from fairseq_posenc.tools.tables.grid import FIGURES, check_comparable, without_version

# what tables read of the result of posenc score
_ALL = {"sentences": int, "within": Maybe(int), **FIGURES}
_SCORE = {
    "all": {**_ALL, "chance": Maybe(float)},
    "by_length": OrNull(
        {
            "of": str,
            "unit": str,
            "bins": [{"name": str, "longer_than": float, "up_to": OrNull(float), **_ALL}],
        }
    ),
    "signatures": Each(str),
    "sentences": Maybe({"length": [int], "statistics": Each([[int]])}),
    "longest_trained": Maybe({"source": int, "reference": int}),
    "language": Maybe(str),
    "test_set": Maybe({"source": Maybe(str), "reference": str}),
    "notes": Maybe(Each(str)),
}

Score = Dict[str, Any]
Runs = Dict[str, List[Score]]


class Estimate(NamedTuple):
    """The mean of a score over seeds, and its 95 % interval.

    ``mean`` is None where there is no sentence to score. ``spread``, the sample standard deviation
    over seeds, is None where there is one seed.
    """

    mean: Optional[float]
    low: Optional[float] = None
    high: Optional[float] = None
    spread: Optional[float] = None

    def __str__(self) -> str:
        return self._text("{:.2f} [{:.2f}, {:.2f}]")

    def signed(self) -> str:
        """Return a difference, with a star where its interval leaves out 0."""
        clear = self.low is not None and self.high is not None and self.low * self.high > 0
        return self._text("{:+.2f} [{:+.2f}, {:+.2f}]") + " *" * clear

    def _text(self, form: str) -> str:
        return "-" if self.mean is None else form.format(self.mean, self.low, self.high)


@dataclass
class Table:
    """Figures by length: a row of estimates per run, each column a set of sentences.

    ``sentences``: how many per column; ``within``: how many of them are no longer, on both sides,
    than the longest trained on, or None where not known. ``differences``: of each run to the first,
    an estimate per column. ``notes`` are printed below.
    """

    title: str
    columns: List[str]
    sentences: List[int]
    within: List[Optional[int]]
    rows: Dict[str, List[Estimate]]
    differences: Dict[str, List[Estimate]]
    notes: List[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the tables as Markdown whose columns stand below each other as text too."""
        header = ["", *(f"{name} (n={n})" for name, n in zip(self.columns, self.sentences))]
        lines = [header, *([name, *map(str, row)] for name, row in self.rows.items())]
        if self.within[0] is not None:
            lines.append(["within trained length", *map(share, self.within, self.sentences)])
        parts = [self.title, markdown_table(lines)]
        first, *others = self.rows
        if others:
            lines = [[name, *(one.signed() for one in self.differences[name])] for name in others]
            parts += [f"Differences to {first}", markdown_table([header, *lines])]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, a line per figure."""
        lines: List[Sequence[Any]] = [
            (
                "row", "column", "sentences", "within trained length", "mean", "low", "high",
                "standard deviation", "difference", "difference low", "difference high",
            )
        ]  # fmt: skip
        for name, row in self.rows.items():
            columns = zip(self.columns, self.sentences, self.within, row, self.differences[name])
            lines += [(name, *about, *one, *other[:3]) for *about, one, other in columns]
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


def read_runs(arguments: Sequence[str], test: Optional[str] = None) -> Runs:
    """Read results by name, of ``score_cell`` those of a test set; several of a name are seeds.

    Raises:
        UsageError: a file that is missing or not from ``posenc score --output`` (``score_cell``).
    """
    runs: Runs = {}
    shape = {"tests": {test: _SCORE}, "notes": _SCORE["notes"]} if test else _SCORE
    for name, path in map(named_path, arguments):
        found = read_shaped(path, shape, "score_cell" if test else "posenc score --output")
        score = {**found["tests"][test], "notes": found.get("notes")} if test else found
        runs.setdefault(name, []).append(score)
    return runs


def named_path(argument: str) -> Tuple[str, str]:
    """Return name and path of ``NAME=path``, or of a path, whose folder gives the name.

    A folder ``seed<n>`` leaves it to the one above.
    """
    name, sign, path = argument.partition("=")
    if sign and "/" not in name:
        return name, path
    folder = Path(argument).resolve().parent
    return folder.parent.name if re.fullmatch(r"seed\d+", folder.name) else folder.name, argument


def by_length(runs: Runs, metric: str = "sacrebleu") -> Table:
    """Return ``metric`` (of ``METRICS``) for the whole test set and each bin of length.

    Intervals of one training are percentiles of the paired bootstrap over sentences. Of several
    they are over seeds and sentences, see :mod:`.intervals`; a difference of two runs is that of
    pairs of seeds where both have the same, which ``posenc score --note seed=…`` tells (without
    that note, as many, in their order), and otherwise Welch's.

    Raises:
        UsageError: results without bins or statistics, or that cannot be compared: of other bins,
            test sets, training sets or signatures (the version of sacreBLEU aside).
    """
    runs = {name: sorted(seeds, key=_seed) for name, seeds in runs.items()}
    scores = [(name, score) for name, seeds in runs.items() for score in seeds]
    check_comparable((name, _conditions(name, score, metric)) for name, score in scores)
    for name, score in scores:
        _check_sentences(name, score, metric)
    first = scores[0][1]
    parts = [{"name": "all", **first["all"]}, *first["by_length"]["bins"]]
    table = Table(
        title=f"{METRICS[metric]} by {length_label(first)}",
        columns=[part["name"] for part in parts],
        sentences=[part["sentences"] for part in parts],
        within=[part.get("within") for part in parts],
        rows={name: [] for name in runs},
        differences={name: [] for name in runs},
        notes=_notes(runs, metric),
    )
    by_run = [[one["sentences"]["statistics"][metric] for one in seeds] for seeds in runs.values()]
    for members in _members(first):
        if not members:
            for name in runs:
                table.rows[name].append(Estimate(None))
                table.differences[name].append(Estimate(None))
            continue
        chosen = [[np.array(one)[members] for one in seeds] for seeds in by_run]
        drawn = bootstrap(metric, chosen)
        values = [[corpus_score(metric, one.sum(axis=0)) for one in seeds] for seeds in chosen]
        for (name, seeds), each, own in zip(runs.items(), values, drawn):
            paired = [*map(_seed, seeds)] == [*map(_seed, next(iter(runs.values())))]
            table.rows[name].append(_estimate(each, own))
            table.differences[name].append(_difference(each, values[0], own - drawn[0], paired))
    several = [name for name, seeds in runs.items() if len(seeds) > 1]
    table.notes[:0] = _in_words(table, first["by_length"]["unit"], several)
    return table


def _in_words(table: Table, unit: str, several: Sequence[str]) -> List[str]:
    """Return, for each bin, by how much rows of several seeds differ from the first, if clearly."""
    first, lines = next(iter(table.rows)), []
    for at, column in enumerate(table.columns[1:], 1):
        clear, unclear = [], []
        for name in several if first in several else ():
            mean, low, high, _ = table.differences[name][at]
            if name == first or mean is None or low is None or high is None:
                continue
            if low * high > 0:
                clear.append(f"{name} {mean:+.1f} ± {(high - low) / 2:.1f}")
            else:
                unclear.append(name)
        if unclear:
            clear.append(f"no clear difference: {', '.join(unclear)}")
        if clear:
            lines.append(f"{column} {unit}, against {first}: {'; '.join(clear)}.")
    return lines


def _estimate(values: Sequence[float], drawn: np.ndarray) -> Estimate:
    """Return the mean of scores by seed; ``drawn`` is that of bootstrap samples."""
    mean = statistics.mean(values)
    if len(values) == 1:
        return Estimate(mean, *interval(drawn))
    return Estimate(mean, *t_interval(values, drawn.var(ddof=1)), statistics.stdev(values))


def _difference(
    values: Sequence[float], others: Sequence[float], drawn: np.ndarray, paired: bool
) -> Estimate:
    """Return the difference of two means of scores by seed; ``drawn``: of bootstrap samples."""
    if paired or len(values) == len(others) == 1:
        return _estimate([one - other for one, other in zip(values, others)], drawn)
    bounds = welch_interval(values, others, drawn.var(ddof=1))
    return Estimate(statistics.mean(values) - statistics.mean(others), *bounds)


def nothing_learned(figures: Mapping[str, Any]) -> str:
    """Say of a model whose figures of the whole test set are not above chance that it is none."""
    return (
        f"has learned nothing to speak of: its sacreBLEU is {figures['sacrebleu']:.2f}, and "
        f"{figures['chance']:.2f} with the references of other sentences"
    )


def _conditions(name: str, score: Score, metric: str) -> Dict[str, Any]:
    """Return what must be alike in results that are compared."""
    if not score["by_length"]:
        raise UsageError(f"{name} has no bins: score it with --bins or --percentiles")
    if metric not in score["signatures"]:
        raise UsageError(f"{name} has no {METRICS[metric]}; score it again")
    bins = score["by_length"]["bins"]
    test_set = score.get("test_set") or {}
    return {
        "lengths": length_label(score),
        "bins": ", ".join(f"{part['name']} up to {part['up_to']}" for part in bins),
        "sentences per bin": [part["sentences"] for part in bins],
        "signatures": without_version(score["signatures"][metric]),
        "target languages": score.get("language"),
        "references": test_set.get("reference"),
        "sources": test_set.get("source"),
        "longest sentences trained on": score.get("longest_trained"),
        "sentences within the trained length": [part.get("within") for part in bins],
    }


def _check_sentences(name: str, score: Score, metric: str) -> None:
    """Raise :class:`UsageError` unless the statistics of the sentences are there, and whole."""
    sentences = score.get("sentences")
    if not sentences or metric not in sentences["statistics"]:
        raise UsageError(
            f"{name} has no statistics of its sentences, from which intervals are drawn: an older "
            "version scored it; score it again (in a recipe: delete score.json, and start it again)"
        )
    rows, width = sentences["statistics"][metric], WIDTHS[metric]
    whole = all(len(row) == width and 0 <= min(row) <= max(row) < 1e9 for row in rows)
    expected = [part["sentences"] for part in (score["all"], *score["by_length"]["bins"])]
    if not whole or len(rows) != expected[0] or [*map(len, _members(score))] != expected:
        raise UsageError(
            f"{name} has statistics of other sentences than its figures; score it again"
        )


def _members(score: Score) -> List[List[int]]:
    """Return the sentences of the whole test set, and of each bin."""
    counted = score["sentences"]["length"]
    bins = score["by_length"]["bins"]
    edges = [Bin(part["name"], part["longer_than"], part["up_to"]) for part in bins]
    return [list(range(len(counted))), *(part.members(counted) for part in edges)]


def _seed(score: Score) -> str:
    return (score.get("notes") or {}).get("seed", "")


def _notes(runs: Runs, metric: str) -> List[str]:
    first, *others = runs
    score = runs[first][0]
    several = [name for name, seeds in runs.items() if len(seeds) > 1]
    notes = [f"In brackets: 95 % of {SAMPLES} paired bootstrap samples of the sentences."]
    if several:
        notes = [
            "In brackets: 95 % intervals over n seeds and over sentences, mean ± t · √(s²/n + v), "
            "with s the standard deviation over seeds (of differences over pairs of equal seeds, "
            f"else Welch's), v the variance over {SAMPLES} paired bootstrap samples of sentences."
        ]
    if others:
        notes[0] += f" *: the interval of the difference to {first} leaves out 0."
    if several:
        counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in runs.items())
        notes.append(f"Trainings (seeds): {counts}.")
    if len(several) < len(runs):
        which = "Some rows are of one training: their" if several else "One training per row:"
        notes.append(
            f"{which} intervals are over sentences only and say nothing about other seeds; rows "
            "are not ranked."
        )
        if several:
            notes[-1] += " Differences of one to several trainings take s of the several for both."
    longest = score.get("longest_trained")
    if longest:
        notes.append(
            f"Within trained length: source of at most {longest['source']} and target of at most "
            f"{longest['reference']} subwords, the longest of the training set."
        )
    for name, seeds in runs.items():
        for number, figures in enumerate((one["all"] for one in seeds), 1):
            known = None not in (figures.get("chance"), figures.get("sacrebleu"))
            if known and figures.get("above_chance") is False:
                which = f", seed {number} of {len(seeds)}," if len(seeds) > 1 else ""
                notes.append(f"{name}{which} {nothing_learned(figures)}.")
    language = f"Target language: {score['language']}. " if score.get("language") else ""
    return [*notes, f"{language}Signature: {score['signatures'][metric]}"]
