"""What a table of results is, and how it is written as Markdown and CSV."""

import csv
import io
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import printable
from fairseq_posenc.tools.scores.lengths import share

ABOUT_OUTPUTS = (
    "sacreBLEU without its brevity penalty, and tokens of the outputs / of the references (means "
    "over seeds): outputs that are right but end too early have a high figure and a low ratio."
)


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
        return self._text("{:+.2f} [{:+.2f}, {:+.2f}]") + " *" * self.is_clear()

    def is_clear(self) -> bool:
        """Return whether the interval of a difference leaves out 0."""
        return self.low is not None and self.high is not None and self.low * self.high > 0

    def _text(self, form: str) -> str:
        return "-" if self.mean is None else form.format(self.mean, self.low, self.high)


class Outputs(NamedTuple):
    """What tells too short outputs from wrong ones; None where there is no sentence."""

    without_penalty: Optional[float] = None
    length_ratio: Optional[float] = None

    def __str__(self) -> str:
        bleu, ratio = self
        return "-" if bleu is None or ratio is None else f"{bleu:.2f}, {ratio:.3f}"


@dataclass
class Table:
    """Figures by length: a row of estimates per run, each column a set of sentences.

    ``sentences``: how many per column; ``within``: how many of them are no longer, on both sides,
    than the longest trained on, or None where not known. ``differences``: of each run to the first,
    an estimate per column. ``outputs``: of each run and column, means over seeds of sacreBLEU
    without brevity penalty and of the outputs' length by the references'; empty where they are not
    known. ``words`` say what is clear, ``notes`` how it was computed; both are printed below.
    """

    title: str
    columns: List[str]
    sentences: List[int]
    within: List[Optional[int]]
    rows: Dict[str, List[Estimate]]
    differences: Dict[str, List[Estimate]]
    outputs: Dict[str, List[Outputs]] = field(default_factory=dict)
    words: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the tables as Markdown whose columns stand below each other as text too."""
        header = ["", *(f"{name} (n={n})" for name, n in zip(self.columns, self.sentences))]
        lines = [header, *([name, *map(str, row)] for name, row in self.rows.items())]
        if self.within[0] is not None:
            lines.append(["within trained length", *map(share, self.within, self.sentences)])
        parts = [markdown_text(self.title), markdown_table(lines)]
        first, *others = self.rows
        if others:
            lines = [[name, *(one.signed() for one in self.differences[name])] for name in others]
            parts += [markdown_text(f"Differences to {first}"), markdown_table([header, *lines])]
        if self.outputs:
            lines = [header, *([name, *map(str, row)] for name, row in self.outputs.items())]
            parts += [ABOUT_OUTPUTS, markdown_table(lines)]
        return "\n\n".join([*parts, *map(markdown_text, (*self.words, *self.notes))]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, a line per figure."""
        lines: List[Sequence[Any]] = [
            (
                "row", "column", "sentences", "within trained length", "mean", "low", "high",
                "standard deviation", "difference", "difference low", "difference high",
                "sacreBLEU without brevity penalty", "length ratio",
            )
        ]  # fmt: skip
        for name, row in self.rows.items():
            outputs = self.outputs.get(name) or [Outputs()] * len(row)
            about = zip(self.columns, self.sentences, self.within)
            columns = zip(about, row, self.differences[name], outputs)
            lines += [(name, *of, *one, *other[:3], *two) for of, one, other, two in columns]
        return csv_table(lines)


def markdown_text(text: str) -> str:
    """Return a text, which may hold names of others, as Markdown shows it, and a terminal too."""
    return printable(text).replace("<", r"\<")


def markdown_table(lines: Sequence[Sequence[str]], labels: int = 1) -> str:
    """Return lines of cells, the header first, as Markdown; the first ``labels`` are text."""
    lines = [[markdown_text(cell).replace("|", r"\|") for cell in line] for line in lines]
    widths = [max(3, *map(len, column)) for column in zip(*lines)]
    rule = [
        "-" * width if index < labels else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    ]
    lines = [lines[0], rule, *lines[1:]]
    return "\n".join(f"| {' | '.join(padded(line, widths, labels))} |" for line in lines)


def csv_table(lines: Sequence[Sequence[Any]]) -> str:
    """Return lines of values as CSV; None is an empty field.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    stream = io.StringIO()
    safe = ([_no_formula(value) for value in line] for line in lines)
    csv.writer(stream, lineterminator="\n").writerows(safe)
    return stream.getvalue()


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    is_number = re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text) is not None
    return f"'{text}" if text.lstrip()[:1] in tuple("=+-@") and not is_number else text


def padded(row: Sequence[str], widths: Sequence[int], labels: int = 1) -> List[str]:
    """Return the cells filled with spaces to ``widths``: ``labels`` to the left, others right."""
    return [
        cell.ljust(width) if index < labels else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths))
    ]
