"""Tables as text: Markdown whose columns stand below each other, and CSV."""

import csv
import io
import re
from typing import Any, List, Sequence

from fairseq_posenc.errors import printable


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
