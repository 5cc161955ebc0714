"""What has been measured: in a file that grows column by column, and as tables in Markdown."""

import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, read_shaped
from fairseq_posenc.tools.benchmark.settings import SHAPES, STOCK, Setting
from fairseq_posenc.tools.benchmark.tables import TimingTable
from fairseq_posenc.tools.writing import replacing

_RATIOS = ("base", "base_low", "base_high", "stock", "stock_low", "stock_high")
_FIGURES = dict.fromkeys(("seconds", "megabytes", *_RATIOS), float)
_RESULT = {"cell": dict, "batch": int, "contestants": Each(_FIGURES)}
Result = Dict[str, Any]
# from the ratio of a row's time to the base's to the figure; formats of ours and of the paper's
FIGURES: Dict[str, Tuple[Callable[[float], float], str, str]] = {
    "ratio": (lambda ratio: ratio, "{:.3f}", "{:.3f}"),
    "slowdown": (lambda ratio: ratio, "{:.2f}", "{:.1f}"),
    "extra": (lambda ratio: 100 * (ratio - 1), "{:+.0f} %", "{:+.0f} %"),
    "speed": (lambda ratio: 1 / ratio, "x{:.2f}", "x{:.2f}"),
}


class Record:
    """Settings and their figures, kept in a file of JSON, if one is given.

    It is written anew after every setting. What it holds already counts as measured; figures of
    other settings, or of other machines, stay in it.
    """

    def __init__(self, path: Optional[str] = None):
        self.path, self.results = path, []
        if path is None or not os.path.exists(path):
            return
        try:
            self.results = read_shaped(path, {"cells": [_RESULT]}, "`posenc benchmark`")["cells"]
        except UsageError as error:
            raise UsageError(f"{error}; name another --output") from None

    def find(self, settings: Sequence[Setting]) -> List[Result]:
        """Return what was measured of the very same settings, in their order."""
        cells = [asdict(setting) for setting in settings]
        return [result for cell in cells for result in self.results if result["cell"] == cell]

    def complete(self, settings: Sequence[Setting], measure: Callable[[Setting], Result]) -> None:
        """Measure the settings that are missing, by :func:`.timing.measure`."""
        missing = [setting for setting in settings if not self.find([setting])]
        try:
            for number, setting in enumerate(missing, 1):
                begin = time.perf_counter()
                self.results.append({"cell": asdict(setting), **measure(setting)})
                if self.path is not None:
                    with replacing(self.path) as stream:
                        json.dump({"cells": self.results}, stream, indent=1)
                took = f"{time.perf_counter() - begin:.0f} s"
                done = f"{number} of {len(missing)}: {setting.title}: {took}"
                print(done, file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            kept = f"the same command continues from {self.path}" if self.path else "use --output"
            raise UsageError(f"interrupted; {kept}") from None


def render(table: TimingTable, results: Sequence[Result]) -> str:
    """Return Markdown: per group the figures, then the time, speed and memory of a step.

    ``results`` are the columns, measured on one machine, see :class:`Record`.
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
        parts: Dict[str, Callable[[Result, str], str]] = {
            f"relative to `{table.base}`": partial(_figure, table, "base")
        }
        if table.speed:
            parts["relative to stock fairseq"] = partial(_figure, table, "stock")
        parts[f"a step ({shape})"] = _step
        for title, cell in parts.items():
            lines += ["", f"### {group}: {title}", "", *_grid(table, columns, cell)]
    return "\n".join(lines)


def _grid(
    table: TimingTable, columns: Sequence[Result], cell: Callable[[Result, str], str]
) -> List[str]:
    """Return a table whose cells are what ``cell`` makes of a column and a row's options."""
    heads = []
    for result in columns:
        setting = result["cell"]
        batch = f"{result['batch']} x {setting['length']} tokens"
        heads.append(f"{setting['column']} ({setting['dtype']}, {batch})")
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(columns)]
    for options in [STOCK, *columns[0]["cell"]["contestants"]]:
        label = table.row(options).label
        shown = f"{label}, `{options}`" if label else f"`{options}`"
        shown = "stock fairseq" if options == STOCK else shown
        lines.append(f"| {shown} | {' | '.join(cell(result, options) for result in columns)} |")
    return lines


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
