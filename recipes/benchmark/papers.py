"""The papers' tables of cost: what a position encoding takes relative to another, beside ours.

    python -m recipes.benchmark --table chen2021-3
    python -m recipes.benchmark --table cape-9 --lengths 10,100 --tokens 1000

A paper's figures are of its GPU and its program. Ours are of the machine at hand.
"""

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


_CAPE_PARTS = (
    ("Transformer layer", "encoder", "cape_layer"),
    ("Encoder", "encoder", "cape"),
    ("Decoder", "decoder", "cape"),
)
TABLES = {
    "cape-9": CostTable(
        "Likhomanenko et al. 2021 (CAPE), Table 9: a forward and a backward pass with relative "
        "positions, relative to none",
        "Batches of 50 where --tokens allows it. The paper has means of 100 updates after 10, here "
        "are medians of --rounds. It is silent on these: Shaw's vectors for "
        "keys and values, feed-forward layers of 3,072, no dropout; the decoder attends to a "
        "source of its own length.",
        base="none",
        columns=[
            CostColumn(f"{part}, {name} Len-{length}", subject, shape, length, name == "FP16")
            for part, subject, shape in _CAPE_PARTS
            for length in (10, 100, 1000)
            for name in ("FP16", "FP32")
        ],
        rows={
            "none": [],
            "shaw --position-max-distance 1000": [
                2.1, 2.3, 3.3, 2.3, 2.2, 1.7, 2.2, 2.2, 2.6, 1.7, 2.0, 1.6,
                1.8, 1.7, 1.9, 1.4, 1.6, 1.4,
            ],
            "shaw --position-max-distance 100": [
                2.1, 2.1, 1.9, 1.2, 1.4, 1.2, 2.3, 2.4, 1.5, 1.1, 1.4, 1.2,
                1.7, 1.7, 1.2, 1.1, 1.2, 1.1,
            ],
            "cape": [],
        },
        batch=50,
    ),
    "chen2021-3": CostTable(
        "Chen et al. 2021, Table 3: time of pre-training and inference beyond REL-SCALAR's",
        "The paper tells neither the hardware nor the batch of these times (its Table 7 has 4,096 "
        "sequences of 128 tokens in pre-training). Here: 64 sequences of 128 tokens where "
        "--tokens allows it; in training 15 % of the tokens are predicted, with dropout 0.1 and "
        "Adam; inference ends at the hidden states.",
        base="rel_scalar --position-segments per_head",
        columns=[
            CostColumn(f"BERT {size}, {name}", subject, f"bert_{size}", 128)
            for size in ("base", "small")
            for name, subject in (("training", "bert"), ("inference", "bert_inference"))
        ],
        rows={
            "shaw --position-segments input": [13, 33, 24, 65],
            "tupe --position-segments input": [1, 19, 4, 27],
            "rel_scalar --position-segments per_head": [0, 0, 0, 0],
            "learned --position-segments input": [],
        },
        batch=64,
        dropout=0.1,
        percent=True,
    ),
}  # fmt: skip


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
