"""Tables of timings: their rows and columns, and the paper's figures if it has any.

The papers' tables are ``papers/<paper>-<number>.json``; ours, ``SPEED``, get their columns from the
command line.
"""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc import encodings
from fairseq_posenc.tools.benchmark.attention import NAIVE_SHAW
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.benchmark.timing import can_fork

FOLDER = Path(__file__).parent / "papers"
_OF_COMMAND = ("device", "warm_up", "rounds", "hardware")


class TimingRow(NamedTuple):
    """A contestant: its ``--position-encoding`` with options, and the paper's name of it.

    ``figures`` are the paper's, by group, in the order of the columns.
    """

    options: str
    label: str = ""
    figures: Dict[str, Sequence[float]] = {}


class TimingTable(NamedTuple):
    """What is measured, and what the paper has measured.

    Every column is measured in every group, all rows against one another.

    Attributes:
        title: what the figures are.
        figure: how they are computed from ratios of times, of ``FIGURES`` in :mod:`.record`.
        base: options of the row that the others are compared with.
        groups: by name, what is printed as one table.
        columns: by name. A group or a column names the ``subject``, of ``SUBJECTS`` in
            :mod:`.timing`, the ``shape`` of the model, the ``length`` of sentences, the
            ``dropout`` if it is not the table's, and the ``precision``: ``half`` or ``full``, or
            whatever the user asks for.
        rows: those of the paper, and others that belong to them.
        every: what is appended to the names of all encodings for further rows.
        variants: options of further rows, measured if the encoding that they begin with is.
        batch, tokens: sentences per batch, or tokens.
        dropout, model: see :class:`.settings.Setting`.
        paper: its authors, year and title; None if the table is ours alone.
        table: its number in the paper.
        notes: printed below the title: what is the paper's and what is not.
        speed: whether this is one of ``SPEED``: also compared with stock fairseq, each row with
            weights and, if possible, a process of its own.
        lengths: of ``SPEED``, unless the user names others.
    """

    title: str
    figure: str
    base: str
    groups: Dict[str, Dict[str, Any]]
    columns: Dict[str, Dict[str, Any]]
    rows: List[TimingRow]
    every: Sequence[str] = ()
    variants: Sequence[str] = ()
    batch: Optional[int] = None
    tokens: int = 0
    dropout: float = 0.0
    model: Dict[str, Any] = {}
    paper: Optional[str] = None
    table: str = ""
    notes: Sequence[str] = ()
    speed: bool = False
    lengths: Sequence[int] = ()

    def contestants(self, chosen: Optional[Sequence[str]]) -> List[str]:
        """Return the rows' options, and those of ``chosen`` encodings; None: as the table says."""
        if chosen is None:
            chosen = encodings.names() if self.every else []
        found = [row.options for row in self.rows]
        found += [f"{name}{suffix}" for name in chosen for suffix in self.every or [""]]
        found += [variant for variant in self.variants if variant.split()[0] in found]
        return list(dict.fromkeys(found))

    def row(self, options: str) -> TimingRow:
        """Return the row that has these options, or a new one."""
        return next((row for row in self.rows if row.options == options), TimingRow(options))

    def printed(self, group: str, column: str, options: str) -> Optional[float]:
        """Return the paper's figure, or None."""
        figures = dict(zip(self.columns, self.row(options).figures.get(group, [])))
        return figures.get(column)


def names() -> List[str]:
    """Return the names of the papers' tables of cost: ``cape-9`` is CAPE's Table 9."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> TimingTable:
    """Return a paper's table by its name."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["rows"] = [TimingRow(**row) for row in content["rows"]]
    return TimingTable(**content)


def _ours(subject: str, step: str, **others: Any) -> TimingTable:
    name, shape = subject.split()[0], others.pop("shape", "base")
    groups = {name: {"subject": subject, "shape": shape}}
    content = {"base": "sinusoidal", "lengths": (32, 128, 512), **others}
    return TimingTable(
        title=f"time of {step} (smaller is faster)", figure="ratio", groups=groups, columns={},
        rows=[TimingRow(content["base"])], every=[""], speed=True, **content,
    )  # fmt: skip


SPEED: Dict[str, TimingTable] = {
    "training": _ours("training", "a whole training step"),
    "generation": _ours("generation", "beam search, beam 4", lengths=(32, 128)),
    "attention": _ours(
        "attention", "self-attention of all layers, without projections",
        lengths=(32, 128, 512, 2048), variants=[NAIVE_SHAW],
    ),
    "bert": _ours(
        "bert training", "a training step of a masked language model",
        shape="bert_base", base="learned",
        variants=["learned --position-segments input", "rel_scalar --position-segments per_head"],
    ),
}  # fmt: skip


def with_columns(table: TimingTable, args: Namespace) -> TimingTable:
    """Return one of ``SPEED`` with a column for every length and dropout of a command line."""
    columns = {
        f"length {length}, dropout {dropout:g}": {"length": length, "dropout": dropout}
        for dropout in args.dropout or [0.0]
        for length in args.lengths or table.lengths
    }
    return table._replace(columns=columns, tokens=args.tokens)


def plan(name: str, table: TimingTable, args: Namespace) -> List[Setting]:
    """Return the settings of a table that a command line wants measured, group by group.

    Columns of full precision are measured if ``float32`` is among its ``dtypes``, those of half if
    another is, with the first such; columns without precision with the first of all.
    """
    lengths = args.lengths
    if args.quick and lengths is None:
        lengths = [next(iter(table.columns.values()))["length"]]
    settings = []
    for group, of_group in table.groups.items():
        for column, of_column in table.columns.items():
            content = {"dropout": table.dropout, "precision": None, **of_group, **of_column}
            length, precision = content["length"], content.pop("precision")
            dtypes = [
                dtype
                for dtype in args.dtypes
                if precision is None or (dtype == "float32") == (precision == "full")
            ]
            if not dtypes or (lengths is not None and length not in lengths):
                continue
            batch = table.batch or max(1, table.tokens // length)
            if args.tokens is not None:
                batch = min(batch, max(1, args.tokens // length))
            content["shape"] = args.shape or content["shape"]
            of_command = {key: getattr(args, key) for key in _OF_COMMAND}
            setting = Setting(
                **content, **of_command, batch=batch, dtype=dtypes[0], base=table.base,
                contestants=table.contestants(args.encodings), model=table.model,
                shared=not table.speed, forked=table.speed and can_fork(args.device),
                table=name, group=group, column=column,
            )  # fmt: skip
            settings.append(setting)
    return settings
