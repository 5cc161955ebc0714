"""Tables of timings: what their rows and columns are, and the paper's figures if it has any.

The papers' own are ``papers/<paper>-<number>.json``; those of speed are made for a command line.
"""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc import encodings
from fairseq_posenc.tools.benchmark.attention import NAIVE_SHAW, SEGMENTS
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.benchmark.timing import can_fork

FOLDER = Path(__file__).parent / "papers"


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
        batch, tokens: sentences per batch, or tokens.
        dropout, model: see :class:`.settings.Setting`.
        paper: its authors, year and title; None if the table is ours alone.
        notes: printed below the title: what is the paper's and what is not.
        speed: whether this is a table of speed: also compared with stock fairseq, each row with
            weights and, if possible, a process of its own.
    """

    title: str
    figure: str
    base: str
    groups: Dict[str, Dict[str, Any]]
    columns: Dict[str, Dict[str, Any]]
    rows: List[TimingRow]
    every: Sequence[str] = ()
    batch: Optional[int] = None
    tokens: int = 0
    dropout: float = 0.0
    model: Dict[str, Any] = {}
    paper: Optional[str] = None
    table: str = ""
    notes: Sequence[str] = ()
    speed: bool = False

    def contestants(self, more: Optional[Sequence[str]]) -> List[str]:
        """Return the rows' options, and those of ``more`` encodings; None: as the table says."""
        if more is None:
            more = encodings.names() if self.every else []
        options = [f"{name}{suffix}" for name in more for suffix in self.every or [""]]
        return list(dict.fromkeys([*(row.options for row in self.rows), *options]))

    def row(self, options: str) -> TimingRow:
        """Return the row that has these options, or a new one."""
        return next((row for row in self.rows if row.options == options), TimingRow(options))

    def printed(self, group: str, column: str, options: str) -> Optional[float]:
        """Return the paper's figure, or None."""
        figures = self.row(options).figures.get(group)
        return None if figures is None else figures[list(self.columns).index(column)]


def names() -> List[str]:
    """Return the names of the papers' tables of cost: ``cape-9`` is CAPE's Table 9."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> TimingTable:
    """Return a paper's table by its name."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["rows"] = [TimingRow(**row) for row in content["rows"]]
    return TimingTable(**content)


class Subject(NamedTuple):
    """What a table of speed times, beside the encodings that the user names.

    ``title`` says what one step is; ``lengths`` and ``shape`` are used unless the user names
    others; ``variants`` are further rows, by the encoding that they follow. The rest is as of a
    :class:`TimingTable`.
    """

    title: str
    subject: str
    lengths: Sequence[int] = (32, 128, 512)
    shape: str = "base"
    base: str = "sinusoidal"
    variants: Dict[str, str] = {}


SPEED: Dict[str, Subject] = {
    "attention": Subject(
        "self-attention of all layers, without projections", "attention", (32, 128, 512, 2048),
        variants={"rel_scalar": SEGMENTS, "shaw": NAIVE_SHAW},
    ),
    "layer": Subject("one encoder layer", "layer"),
    "training": Subject("a whole training step", "training"),
    "bert": Subject(
        "a training step of a masked language model", "bert training",
        shape="bert_base", base="learned",
        variants={
            "learned": "learned --position-segments input",
            "rel_scalar": "rel_scalar --position-segments per_head",
        },
    ),
    "generation": Subject("beam search, beam 4", "generation", (32, 128)),
}  # fmt: skip


def speed_table(name: str, args: Namespace) -> TimingTable:
    """Return the table of a subject of ``SPEED``, as a command line wants it."""
    about = SPEED[name]
    rows: List[TimingRow] = []
    for encoding in dict.fromkeys([about.base, *(args.encodings or encodings.names())]):
        variants = [about.variants[encoding]] if encoding in about.variants else []
        rows += [TimingRow(options) for options in [encoding, *variants]]
    return TimingTable(
        title=f"time of {about.title} (smaller is faster)",
        figure="ratio",
        base=about.base,
        groups={name: {"subject": about.subject, "shape": about.shape}},
        columns={
            f"length {length}, dropout {dropout:g}": {"length": length, "dropout": dropout}
            for dropout in args.dropout
            for length in args.lengths or about.lengths
        },
        rows=rows,
        tokens=args.tokens,
        speed=True,
    )


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
            length, precision = content["length"], content["precision"]
            dtypes = [
                dtype
                for dtype in args.dtypes
                if precision is None or (dtype == "float32") == (precision == "full")
            ]
            if not dtypes or (lengths is not None and length not in lengths):
                continue
            batch = args.batch or table.batch or max(1, table.tokens // length)
            if args.tokens is not None:
                batch = min(batch, max(1, args.tokens // length))
            settings.append(
                Setting(
                    shape=args.shape or content["shape"],
                    contestants=table.contestants(args.encodings),
                    length=length,
                    batch=batch,
                    subject=content["subject"],
                    base=table.base,
                    dropout=content["dropout"],
                    device=args.device,
                    dtype=dtypes[0],
                    model=table.model,
                    shared=not table.speed,
                    forked=table.speed and can_fork(args.device),
                    warm_up=args.warm_up,
                    rounds=args.rounds,
                    hardware=args.hardware,
                    table=name,
                    group=group,
                    column=column,
                )
            )
    return settings
