"""Which cells of the tables are measured, and with what."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

from fairseq_posenc.encodings import names
from fairseq_posenc.tools.benchmark.cost.cell import Cell
from fairseq_posenc.tools.benchmark.cost.table import Table

FULL = "float32"


@dataclass(frozen=True)
class Choice:
    """What the user asks for.

    Attributes:
        device: ``cpu`` or ``cuda``.
        dtypes: columns of full precision are measured if ``float32`` is among them, those of half
            if another is, with the first such; columns without precision with the first of all.
        warm_up: untimed rounds, at least 1.
        rounds: timed rounds.
        hardware: and software, in words.
        encodings: that are measured beside the paper's rows; None: as the table says.
        lengths: of the table's that are measured; None: all.
        batch: sentences per batch; None: the table's.
        tokens: per batch at most; None: as many as that makes.
        quick: tiny models, and the first length of a table alone.
    """

    device: str
    dtypes: Sequence[str]
    warm_up: int
    rounds: int
    hardware: str
    encodings: Optional[Sequence[str]] = None
    lengths: Optional[Sequence[int]] = None
    batch: Optional[int] = None
    tokens: Optional[int] = None
    quick: bool = False


def cells(name: str, table: Table, choice: Choice) -> List[Cell]:
    """Return the cells of a table that the user asks for, group by group."""
    encodings = choice.encodings
    if encodings is None:
        encodings = names() if table.every else []
    return [
        _cell(name, table, group, column, dtype, choice, table.contestants(encodings))
        for group in table.groups
        for column, dtype in _columns(table, choice).items()
    ]


def _columns(table: Table, choice: Choice) -> Dict[str, str]:
    """Return the names of the columns that are measured, and the type of each."""
    lengths = choice.lengths
    if choice.quick:
        lengths = [next(iter(table.columns.values()))["length"]]
    found = {}
    for column, content in table.columns.items():
        dtypes = _dtypes(content, choice)
        if dtypes and (lengths is None or content["length"] in lengths):
            found[column] = dtypes[0]
    return found


def _dtypes(column: Dict[str, Any], choice: Choice) -> List[str]:
    precision = column.get("precision")
    return [
        dtype
        for dtype in choice.dtypes
        if precision is None or (dtype == FULL) == (precision == "full")
    ]


def _cell(
    name: str,
    table: Table,
    group: str,
    column: str,
    dtype: str,
    choice: Choice,
    contestants: Sequence[str],
) -> Cell:
    content = {**table.groups[group], **table.columns[column]}
    length = content["length"]
    batch = choice.batch or table.batch or max(1, table.tokens // length)
    if choice.tokens is not None:
        batch = min(batch, max(1, choice.tokens // length))
    return Cell(
        table=name,
        group=group,
        column=column,
        subject=content["subject"],
        shape="tiny" if choice.quick else content["shape"],
        length=length,
        dropout=table.dropout,
        device=choice.device,
        dtype=dtype,
        model=table.model,
        contestants=contestants,
        base=table.base,
        batch=batch,
        warm_up=choice.warm_up,
        rounds=choice.rounds,
        hardware=choice.hardware,
    )
