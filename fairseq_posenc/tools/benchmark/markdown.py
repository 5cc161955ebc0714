"""Tables of timings in Markdown, a paper's figures beside ours."""

from functools import partial
from typing import Callable, Dict, List, Sequence, Tuple

from fairseq_posenc.tools.benchmark.record import Result
from fairseq_posenc.tools.benchmark.settings import SHAPES, STOCK
from fairseq_posenc.tools.benchmark.tables import TimingTable

# from a column and the options of a row to what stands in the table
PrintCell = Callable[[Result, str], str]
Parts = List[Tuple[str, PrintCell]]


# from the ratio of a row's time to the base's to the figure; formats of ours and of the paper's
FIGURES: Dict[str, Tuple[Callable[[float], float], str, str]] = {
    "ratio": (lambda ratio: ratio, "{:.3f}", "{:.3f}"),
    "slowdown": (lambda ratio: ratio, "{:.2f}", "{:.1f}"),
    "extra": (lambda ratio: 100 * (ratio - 1), "{:+.0f} %", "{:+.0f} %"),
    "speed": (lambda ratio: 1 / ratio, "x{:.2f}", "x{:.2f}"),
}


def render(table: TimingTable, results: Sequence[Result]) -> str:
    """Return Markdown: per group the figures, then the time, speed and memory of a step.

    ``results`` are the columns, measured on one machine, see :class:`.record.Record`.
    """
    first = results[0]["cell"]
    name = f"{table.paper}, {table.table}: " if table.paper else ""
    lines = [
        f"## {name}{table.title}",
        "",
        f"Medians (quartiles) of {first['rounds']} rounds, all rows in turn; {first['hardware']}.",
        *(f"- {note}" for note in table.notes),
    ]
    for group in dict.fromkeys(result["cell"]["group"] for result in results):
        columns = [result for result in results if result["cell"]["group"] == group]
        sizes = SHAPES[columns[0]["cell"]["shape"]]
        shape = f"{sizes.width} wide, {sizes.heads} heads, model of {sizes.layers} layers"
        parts: Parts = [(f"relative to `{table.base}`", partial(_figure, table, "base"))]
        if table.speed:
            parts.append(("relative to stock fairseq", partial(_figure, table, "stock")))
        for title, cell in [*parts, (f"a step ({shape})", _step)]:
            lines += ["", f"### {group}: {title}", "", *_grid(table, columns, cell)]
    return "\n".join(lines)


def _grid(table: TimingTable, columns: Sequence[Result], cell: PrintCell) -> List[str]:
    """Return a table whose cells are what ``cell`` makes of a column and a row's options."""
    lines = [
        "| | " + " | ".join(_head(result) for result in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for options in [STOCK, *columns[0]["cell"]["contestants"]]:
        label = "stock fairseq" if options == STOCK else table.row(options).label
        shown = f"{label}, `{options}`" if label and options != STOCK else label or f"`{options}`"
        lines.append(f"| {shown} | {' | '.join(cell(result, options) for result in columns)} |")
    return lines


def _head(result: Result) -> str:
    setting = result["cell"]
    batch = f"{result['batch']} x {setting['length']} tokens"
    return f"{setting['column']} ({setting['dtype']}, {batch})"


def _figure(table: TimingTable, against: str, result: Result, options: str) -> str:
    """Return a row's figure relative to ``base`` or ``stock``, and the paper's."""
    figures: Dict[str, float] = result["contestants"][options]
    figure, our_format, paper_format = FIGURES[table.figure]
    middle, *quartiles = (figure(figures[f"{against}{end}"]) for end in ("", "_low", "_high"))
    low, high = map(our_format.format, sorted(quartiles))
    ours = f"{our_format.format(middle)} ({low} to {high})"
    paper = table.printed(result["cell"]["group"], result["cell"]["column"], options)
    return ours if paper is None else f"{ours}; paper {paper_format.format(paper)}"


def _step(result: Result, options: str) -> str:
    figures = result["contestants"][options]
    seconds = figures["seconds"]
    tokens = result["batch"] * result["cell"]["length"] / seconds
    return f"{1000 * seconds:,.1f} ms, {tokens:,.0f} tokens/s, {figures['megabytes']:,.0f} MB"
