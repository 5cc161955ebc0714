"""The tables of cost in Markdown, the paper's figures beside ours."""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.tools.benchmark.cost.table import Table
from fairseq_posenc.tools.benchmark.record import Result
from fairseq_posenc.tools.benchmark.setting import SHAPES, STOCK

NO_MEMORY = "out of memory"


class Figure(NamedTuple):
    """How a ratio of times (a row's to the base's) is told.

    Attributes:
        of: from the ratio to the figure.
        ours: format of our figures.
        paper: format of the paper's.
    """

    of: Callable[[float], float]
    ours: str
    paper: str


FIGURES: Dict[str, Figure] = {
    "slowdown": Figure(lambda ratio: ratio, "{:.2f}", "{:.1f}"),
    "extra": Figure(lambda ratio: 100 * (ratio - 1), "{:+.0f} %", "{:+.0f} %"),
    "speed": Figure(lambda ratio: 1 / ratio, "x{:.2f}", "x{:.2f}"),
}


def render(table: Table, results: Sequence[Result]) -> str:
    """Return Markdown: per group the figures, then the time, speed and memory of a step.

    Args:
        table: what is told.
        results: its measured cells, of one machine, see :class:`.record.Record`.
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
        tell = lambda result, row: _figure(table, result, row)  # noqa: E731
        sizes = SHAPES[columns[0]["cell"]["shape"]]
        shape = f"{sizes['width']} wide, {sizes['heads']} heads, model of {sizes['layers']} layers"
        lines += ["", f"### {group}: relative to `{table.base}`", "", *_grid(table, columns, tell)]
        lines += ["", f"### {group}: a step ({shape})", "", *_grid(table, columns, _step)]
    return "\n".join(lines)


def _grid(table: Table, columns: Sequence[Result], tell: Callable[[Result, str], str]) -> List[str]:
    lines = [
        "| | " + " | ".join(_head(result) for result in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for options in [STOCK, *columns[0]["cell"]["contestants"]]:
        label = "stock fairseq" if options == STOCK else table.row(options).label
        shown = f"{label}, `{options}`" if label and options != STOCK else label or f"`{options}`"
        lines.append(f"| {shown} | {' | '.join(tell(result, options) for result in columns)} |")
    return lines


def _head(result: Result) -> str:
    cell = result["cell"]
    asked = f", {cell['batch']} did not fit" if result["batch"] != cell["batch"] else ""
    batch = f"{result['batch']} x {cell['length']} tokens{asked}"
    return f"{cell['column']} ({cell['dtype']}, {batch})"


def _figure(table: Table, result: Result, options: str) -> str:
    figures: Optional[Dict[str, float]] = result["contestants"][options]
    figure = FIGURES[table.figure]
    cell = result["cell"]
    if figures is None:
        ours = NO_MEMORY
    elif "base" not in figures:
        ours = "-"
    else:
        low, high = sorted(figure.of(figures[key]) for key in ("base_low", "base_high"))
        spread = f"{figure.ours.format(low)} to {figure.ours.format(high)}"
        ours = f"{figure.ours.format(figure.of(figures['base']))} ({spread})"
    paper = table.printed(cell["group"], cell["column"], options)
    return ours if paper is None else f"{ours}; paper {figure.paper.format(paper)}"


def _step(result: Result, options: str) -> str:
    figures = result["contestants"][options]
    if figures is None:
        return NO_MEMORY
    seconds = figures["seconds"]
    tokens = result["batch"] * result["cell"]["length"] / seconds
    return f"{1000 * seconds:,.1f} ms, {tokens:,.0f} tokens/s, {figures['megabytes']:,.0f} MB"
