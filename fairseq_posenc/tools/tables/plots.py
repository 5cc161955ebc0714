"""Plots of results: a metric by length, as SHAPE's Figure 3, and validation loss by update."""

import logging
import math
import os
from typing import Any, Dict, List, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import metric_of
from fairseq_posenc.tools.scores.training_log import Curves, over_seeds
from fairseq_posenc.tools.tables.intervals import Estimate
from fairseq_posenc.tools.tables.table import Table
from fairseq_posenc.tools.writing import replacing

# Okabe and Ito's colours, which people with any colour vision can tell apart; the markers and
# line styles do so in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = "osD^vPX*<>"
_LONGEST_LABEL = 60
_STYLES = ("-", "--", "-.", ":")


def plot_by_length(table: Table, output: str, differences: bool = False) -> None:
    """Draw a table's metric against length, a line per run, and write it to ``output``.

    Tasks are no scale: of a table by task it is points without lines.

    With ``differences``, it is the metric minus that of the first run (SHAPE, Figure 3). Bars
    are the table's intervals. Bins all of whose sentences are within the trained
    length are shaded. The ending of ``output`` names the format.
    """
    rows, title = table.rows, metric_of(table.metric).title
    if differences:
        if len(rows) < 2:
            raise UsageError("--differences takes two encodings or more")
        first = next(iter(rows))
        rows = {name: row for name, row in table.differences.items() if name != first}
        title += f" minus that of {plain_label(first)}"
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    start, style = (0, {"linestyle": "none"}) if table.is_by_task else (1, {})
    # side by side, but so close that the slope of a line is that of its scores
    step = min(0.08, 0.4 / len(table.rows))
    # each run has the colour that it has without differences
    for number, (name, row) in enumerate(rows.items(), len(table.rows) - len(rows)):
        shift = step * (number - (len(table.rows) - 1) / 2)
        draw_estimates(axes, row[start:], shift, plain_label(name), {**line_style(number), **style})
    names, shade = [], "all within\ntrained length"
    parts = zip(table.columns[start:], table.within[start:], table.sentences[start:])
    for x, (name, within, count) in enumerate(parts):
        is_known = within is not None
        shown = plain_label(name).replace(" ", "\n") if style else plain_label(name)
        names.append(shown + "\n" + (f"{within} of {count}" if is_known else f"n = {count}"))
        if is_known and within == count > 0:
            axes.axvspan(x - 0.5, x + 0.5, color="0.92", linewidth=0, zorder=0, label=shade)
            shade = ""
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    label = plain_label(table.label.capitalize())
    if any(within is not None for within in table.within[1:]):
        label += "; below: how many sentences are within trained length"
    axes.set_xlabel(label)
    axes.set_ylabel(title)
    if differences:
        axes.axhline(0, color="0.4", linewidth=1, zorder=1)
    finish(figure, axes, output)


def draw_estimates(
    axes: Any, estimates: Sequence[Estimate], shift: float, label: str, style: Dict[str, Any]
) -> None:
    """Draw a row's estimates, and their intervals, at 0, 1, … plus ``shift``."""
    points: List[Any] = [
        (x, estimate) for x, estimate in enumerate(estimates) if estimate.mean is not None
    ]
    bars = np.array([(point.mean - point.low, point.high - point.mean) for _, point in points])
    # a bar must not point inwards, as where all samples lie to one side of the figure
    bars = np.where(np.isfinite(bars), bars.clip(min=0), 0).reshape(-1, 2).T
    places, means = [x + shift for x, _ in points], [point.mean for _, point in points]
    axes.errorbar(places, means, yerr=bars, label=label, **style)


def plot_curves(curves: Curves, output: str) -> None:
    """Draw validation loss against updates, a line per run, and write it to ``output``.

    Of several seeds, the line is their mean and a band reaches from the lowest to the highest. An
    axis whose values differ tenfold is logarithmic. The ending of ``output`` names the format.
    """
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    points: Dict[str, Any] = {"markevery": 0.1, "markersize": 4}
    for number, (name, seeds) in enumerate(curves.items()):
        updates, losses = over_seeds(seeds)
        if not len(updates):
            raise UsageError(f"{name}: its seeds span no update in common")
        style = {key: line_style(number)[key] for key in ("color", "marker", "linestyle")}
        axes.plot(updates, losses.mean(axis=0), label=plain_label(name), **points, **style)
        if len(seeds) > 1:
            low, high = losses.min(axis=0), losses.max(axis=0)
            axes.fill_between(updates, low, high, color=style["color"], alpha=0.2, linewidth=0)
    every = [point for seeds in curves.values() for curve in seeds for point in curve.items()]
    _choose_scale(axes.set_xscale, axes.xaxis, [updates for updates, _ in every])
    _choose_scale(axes.set_yscale, axes.yaxis, [bits for _, bits in every if math.isfinite(bits)])
    axes.set_xlabel("Updates")
    axes.set_ylabel("Validation loss (bits per token)")
    finish(figure, axes, output)


def _choose_scale(set_scale: Any, axis: Any, values: Sequence[float]) -> None:
    """Make an axis of values that differ tenfold logarithmic, with numbers at 1, 2, 5, 10, …"""
    from matplotlib.ticker import LogLocator, NullFormatter

    if values and max(values) >= 10 * min(values) > 0:
        set_scale("log")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def finish(figure: Any, axes: Any, output: str) -> None:
    """Add what all plots have, and write the figure."""
    axes.grid(axis="y", color="0.8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    save(figure, output)


def plain_label(name: str) -> str:
    """Return a name as matplotlib can draw it: printable, of one line, and not too long.

    Labels that begin with an underscore are left out of legends, so a space comes before it.
    """
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    shown = shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"
    return " " + shown if shown.startswith("_") else shown


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of matplotlib, in inches; no display is needed."""
    # importing fairseq makes all loggers verbose, and matplotlib would list every font it looks at
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def line_style(number: int) -> Dict[str, Any]:
    """Return how the line of a run looks, as ``errorbar`` takes it, for its number from 0."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "linestyle": _STYLES[number // len(COLOURS) % len(_STYLES)],
        "markersize": 7,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
        "capthick": 1.2,
        "capsize": 3,
    }


def save(figure: Any, output: str) -> None:
    """Write a figure, whole or not at all; what stands between dollars in it is not a formula.

    The same figure is the same bytes as PNG, SVG and PDF: without a time, and without drawn ids.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    ending = os.path.splitext(output)[1].lstrip(".").lower() or "none"
    formats = figure.canvas.get_supported_filetypes()
    if ending not in formats:
        raise UsageError(
            f"{output}: cannot draw {ending}; choose an ending of {', '.join(formats)}"
        )
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    times = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with replacing(output, "wb") as stream, rc_context({"svg.hashsalt": "fairseq_posenc"}):
        figure.savefig(stream, format=ending, dpi=150, metadata=times.get(ending))
