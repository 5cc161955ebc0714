"""The tables of cost as data: ``tables/<paper>-<number>.json``, with the paper's figures."""

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

FOLDER = Path(__file__).parent / "tables"


class Row(NamedTuple):
    """A contestant.

    Attributes:
        options: a value of ``--position-encoding`` with its options.
        label: the paper's name of it, if it has one.
        figures: the paper's, by group, in the order of the columns.
    """

    options: str
    label: str = ""
    figures: Dict[str, Sequence[float]] = {}


class Table(NamedTuple):
    """What is measured, and what the paper has measured.

    Every column is measured in every group, all rows against one another.

    Attributes:
        title: what the figures are.
        figure: how they are computed from ratios of times, of :data:`.report.FIGURES`.
        base: options of the row that the others are compared with.
        groups: by name, what is printed as one table.
        columns: by name. A group or a column names the ``subject``, of :data:`.cell.SUBJECTS`, the
            ``shape`` of the model, the ``length`` of sentences, and the ``precision``: ``half`` or
            ``full``, or whatever the user asks for.
        rows: those of the paper, and others that belong to them.
        every: what is appended to the names of all encodings for further rows.
        batch: sentences per batch.
        tokens: or tokens per batch.
        dropout: of hidden states and of attention.
        model: further options of fairseq's models.
        paper: its authors, year and title; None if the table is ours alone.
        table: its number there.
        notes: for people: what is the paper's and what is not.
    """

    title: str
    figure: str
    base: str
    groups: Dict[str, Dict[str, Any]]
    columns: Dict[str, Dict[str, Any]]
    rows: List[Row]
    every: Sequence[str] = ()
    batch: Optional[int] = None
    tokens: int = 0
    dropout: float = 0.0
    model: Dict[str, Any] = {}
    paper: Optional[str] = None
    table: str = ""
    notes: Sequence[str] = ()

    def contestants(self, encodings: Sequence[str]) -> List[str]:
        """Return the rows' options, and those of encodings that are measured beside them."""
        suffixes = self.every or [""]
        more = [f"{name}{suffix}" for name in encodings for suffix in suffixes]
        return list(dict.fromkeys([*(row.options for row in self.rows), *more]))

    def row(self, options: str) -> Row:
        """Return the row that has these options, or a new one."""
        return next((row for row in self.rows if row.options == options), Row(options))

    def printed(self, group: str, column: str, options: str) -> Optional[float]:
        """Return the paper's figure, or None."""
        figures = self.row(options).figures.get(group)
        return None if figures is None else figures[list(self.columns).index(column)]


def names() -> List[str]:
    """Return the names of the tables: ``cape-9`` is CAPE's Table 9."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> Table:
    """Return a table by its name."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["rows"] = [Row(**row) for row in content["rows"]]
    return Table(**content)
