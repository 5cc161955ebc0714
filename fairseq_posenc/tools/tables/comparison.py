"""A paper's table with our figures in it: ours below the paper's, and the difference.

Fine-tuning follows Chen et al. 2021 (section 4.1), who report "the median of the maximum accuracy
over all checkpoints among five runs" and leave open how the learning rate is chosen. Our reading:
the one with the best median of the task's own metric on its English development set.
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.scores.training_options import precision_words
from fairseq_posenc.tools.tables.cells import Cell
from fairseq_posenc.tools.tables.latex import escaped, tabular
from fairseq_posenc.tools.tables.papers import (
    CHOICES,
    FINE_TUNING,
    Measure,
    PaperRow,
    PaperTable,
    best_learning_rate,
    parse_options,
)
from fairseq_posenc.tools.text_tables import csv_table, markdown_table, markdown_text

AVERAGE = "Avg"
BASELINE = "sinusoidal"
PARTIAL = (
    "`9 of 11` marks a mean over those of a benchmark's languages that were scored; it has no "
    "difference to the paper's, which is over all, and no Avg."
)
ABOUT_TRANSLATION = (
    "Ours: mean over seeds ± half its 95 % interval. Differences are ours minus the "
    "paper's. `open` counts seeds of the paper, and cells begun, that have not finished."
)
ABOUT_FINE_TUNING = (
    "Ours: the best checkpoint of each run, median over seeds ± half the 95 % interval of "
    "their mean, at the learning rate whose median is best on the English development set; Avg "
    "is the mean of the paper's columns. Differences are ours minus the paper's, in points. "
    "`open` counts cells of any learning rate that have not finished."
)


class Figure(NamedTuple):
    """A figure of a row: ours over its seeds, and the paper's.

    ``value`` is the mean (translation) or median (fine-tuning) of ours, ``half`` half the 95 %
    interval of their mean, ``unfinished`` counts cells without a result (in fine-tuning of any
    learning rate), ``lr`` is the best learning rate, and ``part`` is ``9 of 11`` for a mean over
    some of a benchmark's languages only. What is missing is None. ``failures`` are sentences saying
    which of its models have learned nothing.
    """

    value: Optional[float] = None
    half: Optional[float] = None
    seeds: Optional[int] = None
    unfinished: Optional[int] = None
    lr: Optional[str] = None
    part: Optional[str] = None
    paper: Optional[float] = None
    failures: Sequence[str] = ()

    def difference(self) -> Optional[float]:
        """Return ours minus the paper's; None if ours is over some languages only."""
        if self.value is None or self.paper is None or self.part:
            return None
        return self.value - self.paper

    def texts(self, measure: Measure) -> Tuple[str, str, str, str]:
        """Return what is printed: the paper's figure, ours, the difference and ours' runs."""
        paper, measured, shown, runs = "-", "missing", "-", ""
        difference = self.difference()
        if self.paper is not None:
            paper = f"{self.paper:.{measure.digits}f}"
        if self.value is not None:
            measured = f"{self.value:.{measure.our_digits}f}"
            measured += "" if self.half is None else f" ± {self.half:.{measure.our_digits}f}"
            measured += f" ({self.part})" if self.part else ""
        if difference is not None:
            shown = f"{difference:+.{measure.digits}f}"
        if self.seeds is not None:
            runs = f"{self.lr}, {self.seeds}" if self.lr else str(self.seeds)
            runs += f" ({self.unfinished} open)" if self.unfinished else ""
        return paper, measured, shown, runs


class OurRow(NamedTuple):
    """A row of ours; its ``setting`` is None where the paper's rows are of no setting."""

    setting: Optional[str]
    row: str
    options: str

    def __str__(self) -> str:
        return self.row if self.setting is None else f"{self.setting}/{self.row}"


class Entry(NamedTuple):
    """A row of the paper (or None), one of ours (or None), and their figures by name."""

    row: Optional[PaperRow]
    our_row: Optional[OurRow]
    figures: Dict[str, Figure]


@dataclass
class Comparison:
    """Entries of a paper's table; ``measures`` also has the average, and what only we have."""

    table: PaperTable
    measures: Dict[str, Measure]
    entries: List[Entry]
    notes: Sequence[str] = ()

    def cells(self) -> List[List[str]]:
        """Return lines of cells, the header first, of which the first are labels.

        An entry has the lines `paper`, ours, `difference` and the runs'.
        """
        table = self.table
        added = {name: [name] for name in self.measures if name not in table.measures}
        columns = {**table.columns, **added}
        blank, lines = [""] * len(table.labels), []
        for row, group, figures in self.entries:
            texts = {name: figure.texts(self.measures[name]) for name, figure in figures.items()}
            paper, measured, difference = (
                [" / ".join(texts[name][line] for name in names) for names in columns.values()]
                for line in range(3)
            )
            # figures of one column come from the same runs
            runs = [texts[names[0]][3] for names in columns.values()]
            if row:
                lines.append([*row.labels, "paper", *paper])
            labels = [group.options, *blank[1:]] if group and not row else blank
            lines.append([*labels, str(group or "ours"), *measured])
            if group and row:
                lines.append([*blank, "difference", *difference])
            if group:
                lines.append([*blank, "lr, seeds" if table.fine_tuning else "seeds", *runs])
        return [[*table.labels, "", *columns], *lines]

    def about(self) -> List[str]:
        """Return how the figures were computed, in sentences of ours and of the paper's table."""
        explanation = ABOUT_FINE_TUNING if self.table.fine_tuning else ABOUT_TRANSLATION
        return [explanation, *self.table.notes]

    def markdown(self) -> str:
        """Return Markdown."""
        table = self.table
        text = markdown_table(self.cells(), labels=len(table.labels) + 1)
        title = f"{table.table} of {table.paper}\n\n{table.title}"
        return "\n\n".join([title, text, *self.about(), *map(markdown_text, self.notes)]) + "\n"

    def latex(self) -> str:
        r"""Return a ``tabular`` for ``\usepackage{booktabs}``."""
        table = self.table
        lines = [[escaped(cell) for cell in line] for line in self.cells()]
        comments = [f"{table.table} of {table.paper}", table.title, *self.about(), *self.notes]
        return tabular(lines, comments, labels=len(table.labels) + 1)

    def csv(self) -> str:
        """Return CSV with a line per entry and figure."""
        fine_tuning = self.table.fine_tuning
        names = {"median" if fine_tuning else "mean": "value", "half interval": "half"}
        names.update(seeds="seeds", lr="lr", unfinished="unfinished", languages="part")
        if not fine_tuning:
            del names["lr"], names["languages"]
        labels = self.table.labels
        lines: List[Sequence[Any]] = [
            [*labels, "row", "options", "figure", *names, "paper", "difference"]
        ]
        for row, group, figures in self.entries:
            start = row.labels if row else [None] * len(labels)
            options = group.options if group else row.options[0] if row and row.options else ""
            for name, figure in figures.items():
                measured = [getattr(figure, field) for field in names.values()]
                row_head = [*start, group and str(group), options, name]
                lines.append([*row_head, *measured, figure.paper, figure.difference()])
        return csv_table(lines)


def compare(table: PaperTable, cells: Sequence[Cell], notes: Sequence[str] = ()) -> Comparison:
    """Return the paper's table with the figures of our ``cells`` in it, and ``notes`` below.

    Rows of ours that the paper lacks are appended where they are of its settings and have a figure,
    and so are tasks that it lacks.
    """
    settings = {row.setting for row in table.rows}
    groups: Dict[OurRow, List[Cell]] = {}
    for cell in cells:
        # a table without settings has our cells of all of them in one row
        setting = None if settings == {None} else cell.setting
        groups.setdefault(OurRow(setting, cell.row, cell.options), []).append(cell)
    measures = dict(table.measures)
    if table.fine_tuning:
        tasks = {cell.setting for cell in cells}
        added = {name: measure for name, measure in FINE_TUNING.items() if measure.setting in tasks}
        measures = {**measures, AVERAGE: Measure((), AVERAGE, digits=1), **added}

    entries: List[Entry] = []
    matching: Set[OurRow] = set()
    for row in table.rows:
        matches = [
            Entry(row, group, _figures(measures, row, row_cells, cells))
            for group, row_cells in groups.items()
            if row.has(group.setting, group.options)
        ]
        matching.update(entry.our_row for entry in matches if entry.our_row)
        # where the paper shows the best of several options, so do we
        if table.best:
            values = [entry.figures[table.best].value for entry in matches]
            comparable = [-math.inf if value is None else value for value in values]
            matches = [matches[comparable.index(max(comparable))]] if matches else []
        entries += matches or [Entry(row, None, _figures(measures, row, [], cells))]
    shown = {entry.our_row for entry in entries}
    for group, row_cells in groups.items():
        figures = _figures(measures, None, row_cells, cells)
        has_figures = group.setting in settings and any(
            figure.value is not None for figure in figures.values()
        )
        if group not in shown and (group in matching or has_figures):
            entries.append(Entry(None, group, figures))
    parts = [figure.part for entry in entries for figure in entry.figures.values()]
    partial = [PARTIAL] if any(parts) else []
    remarks = _remarks(table, cells)
    for figure in (figure for entry in entries for figure in entry.figures.values()):
        remarks += [sentence for sentence in figure.failures if sentence not in remarks]
    return Comparison(table, measures, entries, [*partial, *notes, *remarks])


def summarise(
    row_cells: Sequence[Cell], measure: Measure, cells: Sequence[Cell], planned_seeds: int = 0
) -> Figure:
    """Return our figure of a row with the cells ``row_cells``, missing while no cell has it.

    If the measure is ``relative``, speeds are divided by the mean of those of the row without
    options of the encoding ``sinusoidal``, in the same setting and on equal hardware, of all
    ``cells``. So many seeds are ``planned_seeds``.
    """
    row_cells = [cell for cell in row_cells if measure.setting in (None, cell.setting)]
    values = _by_lr(row_cells, measure, cells)
    lr, average, part = "", statistics.mean, None
    if measure.setting in CHOICES and values:
        # as the paper: the learning rate that is best in development, and its median over seeds
        subset, metric = CHOICES[measure.setting]
        choice = _by_lr(row_cells, measure._replace(sets=(subset,), metric=metric), cells)
        candidates = {rate: figures for rate, figures in choice.items() if rate in values}
        lr = best_learning_rate(candidates) if candidates else ""
        average = statistics.median
        first = next(cell.figures for cell in row_cells if cell.figures)
        count = sum(measure.metric in first.get(name, {}) for name in measure.sets)
        part = None if count == len(measure.sets) else f"{count} of {len(measure.sets)}"
    if lr not in values:
        return Figure()
    chosen = values[lr]
    unfinished = sum(cell.state != "finished" for cell in row_cells)
    return Figure(
        value=average(chosen),
        half=t_interval(chosen)[1] - statistics.mean(chosen) if len(chosen) > 1 else None,
        seeds=len(chosen),
        unfinished=max(unfinished, planned_seeds - len(chosen)),
        lr=lr or None,
        part=part,
        failures=[words for cell in row_cells if cell.lr == lr for words in cell.failures],
    )


def _figures(
    measures: Dict[str, Measure],
    row: Optional[PaperRow],
    row_cells: Sequence[Cell],
    cells: Sequence[Cell],
) -> Dict[str, Figure]:
    """Return the figures of a row of the paper, if given, and of the cells ``row_cells``."""
    seeds = row.seeds if row else 0
    figures = {
        name: summarise(row_cells, measure, cells, seeds) for name, measure in measures.items()
    }
    paper: Dict[str, Optional[float]] = dict(zip(measures, row.figures)) if row else {}
    if AVERAGE in measures:
        # it stands behind the figures of the paper
        names = list(measures)[: list(measures).index(AVERAGE)]
        complete = [figures[name] for name in names if not figures[name].part]
        values = [figure.value for figure in complete if figure.value is not None]
        if len(values) == len(names):
            figures[AVERAGE] = Figure(statistics.mean(values))
        paper[AVERAGE] = row.average if row else None
    return {name: figure._replace(paper=paper.get(name)) for name, figure in figures.items()}


def _by_lr(
    row_cells: Sequence[Cell], measure: Measure, cells: Sequence[Cell]
) -> Dict[str, List[float]]:
    """Return a figure of those cells that have it, by learning rate."""
    values: Dict[str, List[float]] = {}
    for cell in row_cells:
        value = _value(cell, measure)
        if value is not None and measure.relative:
            base = [
                _value(candidate, measure)
                for candidate in cells
                if candidate.setting == cell.setting
                and candidate.hardware == cell.hardware
                and parse_options(candidate.options) == (BASELINE, {})
            ]
            baselines = [number for number in base if number is not None]
            value = value / statistics.mean(baselines) if any(baselines) else None
        if value is not None:
            values.setdefault(cell.lr, []).append(value)
    return values


def _value(cell: Cell, measure: Measure) -> Optional[float]:
    values = [cell.figures.get(name, {}).get(measure.metric) for name in measure.sets]
    defined = [value for value in values if value is not None]
    if not defined or (len(defined) < len(values) and measure.setting not in CHOICES):
        return None
    return statistics.mean(defined) / measure.unit


def _remarks(table: PaperTable, cells: Sequence[Cell]) -> List[str]:
    """Return what a reader should know of our trainings before comparing."""
    remarks = []
    trained = [cell for cell in cells if cell.training]
    for setting, paper_updates in table.settings.items():
        updates = {cell.training["updates"] for cell in trained if cell.setting == setting}
        if paper_updates and updates - {paper_updates}:
            made = ", ".join(map(str, sorted(updates)))
            remarks.append(f"{setting}: ours made {made} updates, the paper's {paper_updates}.")
    hardware = sorted({"{1} × {0}".format(*cell.hardware) for cell in trained})
    if hardware and any("training" in measure.sets for measure in table.measures.values()):
        remarks.append(f"Ours were trained on: {'; '.join(hardware)}.")
    predicted = {name for cell in cells for name, scores in cell.figures.items() if scores == {}}
    unscored = [name for name, each in table.measures.items() if predicted & {*each.sets}]
    if unscored:
        remarks.append(f"{', '.join(unscored)}: predicted, not scored, as without labels.")
    rows: Dict[str, List[Dict[str, Optional[str]]]] = {}
    for cell in trained:
        rows.setdefault(cell.row, []).append({"training": cell.training.get("precision")})
    return remarks + precision_words(rows)
