"""What an analysis gives: a table, the figures behind it, and pictures."""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from fairseq_posenc.tools.scores.score import versions
from fairseq_posenc.tools.tables import plots
from fairseq_posenc.tools.text_tables import markdown_table, markdown_text
from fairseq_posenc.tools.writing import replacing

Matrix = Sequence[Sequence[Optional[float]]]


@dataclass
class Report:
    """The outcome of an analysis.

    ``table`` has lines of cells, the header first, whose first ``labels`` columns are text;
    ``data`` every figure, not rounded; ``pictures`` matplotlib's figures by the endings of files.
    """

    title: str
    table: Sequence[Sequence[str]]
    data: Dict[str, Any]
    pictures: Dict[str, Any]
    labels: int = 1
    notes: List[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return title, table and notes as Markdown."""
        table = markdown_table(self.table, self.labels)
        return "\n\n".join([markdown_text(self.title), table, *self.notes]) + "\n"

    def write(self, prefix: str, command: Sequence[str] = ()) -> None:
        """Write ``prefix.md``, ``prefix.json`` and the pictures."""
        for ending, figure in self.pictures.items():
            plots.save(figure, prefix + ending)
        header = {"title": self.title, "notes": self.notes}
        everything = {**header, **self.data, "versions": versions(), "command": list(command)}
        with replacing(f"{prefix}.json") as stream:
            stream.write(json.dumps(everything, indent=2, ensure_ascii=False) + "\n")
        with replacing(f"{prefix}.md") as stream:
            stream.write(self.markdown())


def shown(value: Optional[float], form: str = "{:.2f}") -> str:
    """Return a figure as cells show it; ``-`` for None."""
    return "-" if value is None else form.format(value)


def draw_matrix(
    axes: Any,
    values: Matrix,
    rows: Sequence[Any],
    columns: Sequence[Any],
    counts: Optional[Sequence[Sequence[int]]] = None,
    form: str = "{:.3f}",
    **style: Any,
) -> Any:
    """Draw a matrix as a heat map with its figures; missing figures leave the ground grey.

    ``counts`` stand below the figures as ``n = …``; ``style`` has colours and limits, as ``imshow``
    takes them, whose image is returned.
    """
    image = axes.imshow(np.array(values, dtype=float), aspect="auto", **style)
    axes.set_facecolor("0.92")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            text = shown(value, form)
            if counts is not None and value is not None:
                text += f"\nn = {counts[y][x]}"
            light = value is not None and sum(image.cmap(image.norm(value))[:3]) < 1.5
            size = 9 if counts is None else 7.5
            colour = "white" if light else "black"
            axes.text(x, y, text, ha="center", va="center", color=colour, fontsize=size)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
