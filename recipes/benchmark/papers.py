"""The papers' tables of cost: what a position encoding takes relative to another, beside ours.

    python -m recipes.benchmark --table chen2021-3
    python -m recipes.benchmark --table cape-9 --lengths 10,100 --tokens 1000

A paper's figures, in papers.json, are of its GPU and its program. Ours are of the machine at hand.
"""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from recipes.benchmark.settings import Setting

Row = Dict[str, Any]


class CostColumn(NamedTuple):
    """A column of a paper's table.

    Attributes:
        subject, shape: names in ``SUBJECTS`` and ``SHAPES``.
        half: whether the paper's is float16 (here bfloat16 on a CPU).
    """

    title: str
    subject: str
    shape: str
    length: int
    half: bool = False


class CostTable(NamedTuple):
    """A table of costs.

    Attributes:
        base: the contestant that all are compared with.
        rows: the paper's figures by contestant, a figure a column; none where it has none.
        percent: whether a figure is the time beyond the base's in percent, else the ratio.
        batch: sentences per batch, at most ``--tokens`` tokens.
    """

    title: str
    notes: str
    base: str
    columns: Sequence[CostColumn]
    rows: Dict[str, Sequence[float]]
    batch: int
    dropout: float = 0.0
    percent: bool = False


def _read(table: Dict[str, Any]) -> CostTable:
    columns = [CostColumn(**column) for column in table["columns"]]
    return CostTable(**{**table, "columns": columns})


_FILE = Path(__file__).with_suffix(".json")
TABLES = {name: _read(table) for name, table in json.loads(_FILE.read_text("utf-8")).items()}


def settings_of(
    table: CostTable, lengths: Sequence[int], tokens: int, device: str
) -> Iterator[Tuple[CostColumn, Setting]]:
    """Yield the columns whose length is one of ``lengths`` (all, if empty), and their settings."""
    half = "float16" if device == "cuda" else "bfloat16"
    for column in table.columns:
        if lengths and column.length not in lengths:
            continue
        batch = min(table.batch, max(1, tokens // column.length))
        dropout = table.dropout if column.subject == "bert" else 0.0
        yield (
            column,
            Setting(
                column.shape, list(table.rows), column.length, batch, dropout, device,
                half if column.half else "float32",
            ),
        )  # fmt: skip


def markdown(
    table: CostTable, measured: Sequence[Tuple[CostColumn, List[Row]]], measured_on: str
) -> str:
    """Return ours (quartiles) beside the paper's, a column of the paper's table a row."""
    contestants = list(table.rows)
    lines = [f"{table.title}.", "", table.notes, "", measured_on, ""]
    heads = ["", *(f"`{name}`" for name in contestants), "stock fairseq", "batch"]
    lines += [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for column, rows in measured:
        by_name = {row["encoding"]: row for row in rows}
        cells = []
        for name in [*contestants, "stock"]:
            row = by_name[name]
            middle, low, high = (
                _figure(row[f"base{end}"], table.percent) for end in ("", "_low", "_high")
            )
            cell = f"{middle} ({low} to {high})"
            if table.rows.get(name):
                paper = table.rows[name][table.columns.index(column)]
                cell += f"; paper {paper:+g} %" if table.percent else f"; paper {paper}"
            cells.append(cell)
        setting = rows[0]
        batch = f"{setting['batch']} x {setting['length']}, {setting['dtype']}"
        lines.append(f"| {' | '.join([column.title, *cells, batch])} |")
    return "\n".join(lines) + "\n"


def _figure(ratio: float, percent: bool) -> str:
    return f"{100 * (ratio - 1):+.0f} %" if percent else f"{ratio:.2f}"
