"""A paper's table with our figures in it: ours below the paper's, and the difference.

Rows and tasks that the paper lacks are appended. Here is what tables of any kind share, and those
of fine-tuning (:func:`compare`); for translation see ``translations.py``.
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.tools.results import papers
from fairseq_posenc.tools.results.cells import TASKS, Cell, Summary, summarise
from fairseq_posenc.tools.results.papers import Digits, PaperRow, PaperTable, load
from fairseq_posenc.tools.results.tables import csv_table, markdown_table

__all__ = ["Comparison", "Entry", "Figure", "Group", "Style", "compare", "load", "names", "place"]

AVERAGE = "Avg"
MISSING = "missing"
PARTIAL = (
    "`9 of 11` marks a mean over those of a benchmark's languages that were scored; it has no "
    "difference to the paper's, which is over all, and no Avg."
)


class Style(NamedTuple):
    """What tables of one kind have in common.

    ``reading`` is printed below; ``summary`` names the fields of a summary in CSV; ``runs`` is the
    title of the lines that tell what runs a figure is from. A summary is a tuple with ``value``,
    ``spread``, ``part`` (such as ``9 of 11``, or None) and ``runs``.
    """

    reading: str
    summary: Sequence[str]
    runs: str


FINE_TUNING = Style(
    reading=(
        "Ours: the best checkpoint of each run, median over seeds ± their sample standard "
        "deviation, at the learning rate whose median is best on the English development set; Avg "
        "is the mean of the paper's columns. Differences are ours minus the paper's, in points. "
        "`open` counts cells of any learning rate that have not finished."
    ),
    summary=("median", "standard deviation", "seeds", "lr", "unfinished", "languages"),
    runs="lr, seeds",
)


class Figure(NamedTuple):
    """Our summary and the paper's figure, each None where there is none."""

    ours: Optional[Any]
    paper: Optional[float]

    def difference(self) -> Optional[float]:
        """Return ours minus the paper's; None if ours is over some languages only."""
        if self.ours is None or self.paper is None or self.ours.part:
            return None
        return self.ours.value - self.paper


Text = Callable[[Figure, Digits], str]


class Group(NamedTuple):
    """A row of ours; its ``setting`` is None where rows are not of one."""

    setting: Optional[str]
    row: str
    options: str

    def __str__(self) -> str:
        return self.row if self.setting is None else f"{self.setting}/{self.row}"


class Entry(NamedTuple):
    """A row of the paper (or ``labels`` is None), one of ours (or ``ours`` is), their figures."""

    labels: Optional[List[str]]
    ours: Optional[str]
    options: str
    figures: Dict[str, Figure]


@dataclass
class Comparison:
    """Entries of a paper's table; ``columns`` also has the average and what only we have."""

    table: PaperTable
    columns: Dict[str, List[str]]
    entries: List[Entry]
    notes: Sequence[str] = ()
    style: Style = FINE_TUNING

    def markdown(self) -> str:
        """Return Markdown; an entry has the lines `paper`, ours, `difference` and the runs'."""
        labels = self.table.labels
        lines = [line for entry in self.entries for line in self._lines(entry)]
        text = markdown_table([[*labels, "", *self.columns], *lines], labels=len(labels) + 1)
        title = f"{self.table.table} of {self.table.paper}\n\n{self.table.title}"
        notes = [self.style.reading, *self.table.notes, *self.notes]
        return "\n\n".join([title, text, *notes]) + "\n"

    def csv(self) -> str:
        """Return CSV with a line per entry and figure."""
        summary = self.style.summary
        lines: List[Sequence] = [
            [*self.table.labels, "row", "options", "figure", *summary, "paper", "difference"]
        ]
        for entry in self.entries:
            labels: Sequence = entry.labels or [None] * len(self.table.labels)
            for name, figure in entry.figures.items():
                ours = figure.ours or [None] * len(summary)
                start = [*labels, entry.ours, entry.options, name]
                lines.append([*start, *ours, figure.paper, figure.difference()])
        return csv_table(lines)

    def _lines(self, entry: Entry) -> List[List[str]]:
        def line(first: Sequence[str], title: str, text: Text) -> List[str]:
            return [*first, title, *(self._join(entry, column, text) for column in self.columns)]

        blank = [""] * len(self.table.labels)
        if entry.labels is None:
            out, first = [], [entry.options, *blank[1:]]
        else:
            out, first = [line(entry.labels, "paper", _paper)], blank
        out.append(line(first, entry.ours or "ours", _ours))
        if entry.ours and entry.labels:
            out.append(line(blank, "difference", _difference))
        if entry.ours:
            out.append(line(blank, self.style.runs, _runs))
        return out

    def _join(self, entry: Entry, column: str, text: Text) -> str:
        names = self.columns[column]
        parts = [text(entry.figures[name], self.table.digits(name)) for name in names]
        # figures of one column come from the same runs
        return parts[0] if text is _runs else " / ".join(parts)


def names() -> List[str]:
    """Return the tables of fine-tuning."""
    return papers.names()


def place(
    table: PaperTable,
    groups: Dict[Group, List],
    order: Sequence[str],
    figures: Callable[[Optional[PaperRow], List], Dict[str, Optional[Any]]],
) -> List[Entry]:
    """Return the rows of the paper with ours in their places, and the others of ours.

    Args:
        table: of the paper.
        groups: our cells by row.
        order: names of the figures of an entry.
        figures: makes our summaries, by name, for a row of the paper or None, and cells of ours.
    """

    def entry(row: Optional[PaperRow], group: Optional[Group]) -> Entry:
        ours = figures(row, groups[group] if group else [])
        theirs = {**dict(zip(table.figures(), row.figures)), AVERAGE: row.average} if row else {}
        return Entry(
            labels=row and row.labels,
            ours=group and str(group),
            options=group.options if group else row.options[0] if row else "",
            figures={name: Figure(ours.get(name), theirs.get(name)) for name in order},
        )

    entries, left = [], dict(groups)
    for row in table.rows:
        matching = [group for group in groups if row.has(group.setting, group.options)]
        if table.best:
            values = {group: figures(row, groups[group])[table.best] for group in matching}
            matching.sort(key=lambda group: getattr(values[group], "value", -math.inf))
            matching = matching[-1:]
        for group in matching:
            left.pop(group, None)
        entries += [entry(row, group) for group in matching] or [entry(row, None)]
    return entries + [entry(None, group) for group in left]


def compare(table: PaperTable, cells: Sequence[Cell], notes: Sequence[str] = ()) -> Comparison:
    """Return the paper's table with the figures of our ``cells`` in it, and ``notes`` below."""
    groups: Dict[Group, List[Cell]] = {}
    for cell in cells:
        groups.setdefault(Group(None, cell.row, cell.options), []).append(cell)
    columns = {**table.columns, AVERAGE: [AVERAGE]}
    columns.update({name: [name] for name in _appended(table, cells)})
    order = [name for column in columns.values() for name in column]
    entries = place(table, groups, order, lambda row, ours: _figures(table, ours))
    figures = [figure for entry in entries for figure in entry.figures.values()]
    partial = [PARTIAL] if any(figure.ours and figure.ours.part for figure in figures) else []
    return Comparison(table, columns, entries, [*partial, *notes])


def _figures(table: PaperTable, cells: Sequence[Cell]) -> Dict[str, Optional[Summary]]:
    ours = {
        name: summarise(cells, task, metric)
        for task, (_, metrics) in TASKS.items()
        for name, metric in metrics.items()
    }
    medians = [one.median for one in map(ours.get, table.figures()) if one and not one.part]
    if len(medians) == len(table.figures()):
        ours[AVERAGE] = Summary(statistics.mean(medians), None, None, None, None)
    return ours


def _appended(table: PaperTable, cells: Sequence[Cell]) -> List[str]:
    tasks = {cell.task for cell in cells}
    names = [name for task in TASKS if task in tasks for name in TASKS[task].figures]
    return [name for name in names if name not in table.figures()]


def _paper(figure: Figure, digits: Digits) -> str:
    return "-" if figure.paper is None else f"{figure.paper:.{digits.paper}f}"


def _ours(figure: Figure, digits: Digits) -> str:
    if figure.ours is None:
        return MISSING
    spread = "" if figure.ours.spread is None else f" ± {figure.ours.spread:.{digits.ours}f}"
    part = f" ({figure.ours.part})" if figure.ours.part else ""
    return f"{figure.ours.value:.{digits.ours}f}{spread}{part}"


def _difference(figure: Figure, digits: Digits) -> str:
    difference = figure.difference()
    return "-" if difference is None else f"{difference:+.{digits.paper}f}"


def _runs(figure: Figure, digits: Digits) -> str:
    return "" if figure.ours is None else figure.ours.runs()
