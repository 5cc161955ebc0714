"""Plots of results, in the manner of SHAPE's Figure 3."""

import logging
import math
import os
from typing import Any, Dict, List, Optional

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation.bleu import METRICS
from fairseq_posenc.evaluation.tables import Runs, by_length, length_label
from fairseq_posenc.files import replacing

# Okabe and Ito's colours, which people with any colour vision can tell apart; the markers and
# line styles do so in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = "osD^vPX*<>"
_STYLES = ("-", "--", "-.", ":")


def plot_by_length(
    runs: Runs, output: str, metric: str = "sacrebleu", trained_up_to: Optional[int] = None
) -> None:
    """Draw ``metric`` against length, a line per run, and write it to ``output``.

    Several seeds of a run give their mean, with bars of one sample standard deviation.

    Args:
        runs: what :func:`read_runs` gives.
        output: its ending names the format: png, pdf, svg.
        metric: one of ``METRICS``.
        trained_up_to: the longest training sentence, in the unit of the bins: bins of longer
            sentences only lie on a grey ground.

    Raises:
        UsageError: see :func:`by_length`; an unknown ending of ``output``.
    """
    table = by_length(runs, metric)
    first = next(iter(runs.values()))[0]
    bins = first["by_length"]["bins"]
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    for number, (name, cells) in enumerate(table.rows.items()):
        points = [(x, cell) for x, cell in enumerate(cells[1:]) if cell.mean is not None]
        axes.errorbar(
            [x + dodge(number, len(runs)) for x, _ in points],
            [cell.mean for _, cell in points],
            yerr=[cell.spread or 0 for _, cell in points] if len(runs[name]) > 1 else None,
            label=name,
            **line_style(number),
        )
    shade(axes, bins, trained_up_to)
    label_bins(axes, bins, length_label(first).capitalize(), METRICS[metric])
    figure.legend(loc="outside right upper", frameon=False)
    save(figure, output)


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of matplotlib, in inches; no display is needed."""
    # Importing fairseq lets all loggers talk, and matplotlib would tell of every font on its way.
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


def shade(axes: Any, bins: List[dict], trained_up_to: Optional[int]) -> None:
    """Lay a grey ground under the bins of sentences longer than any in training, if told."""
    if trained_up_to is None:
        return
    label: Optional[str] = f"no training data\n(longer than {trained_up_to})"
    for x, part in enumerate(bins):
        if math.floor(part["longer_than"]) + 1 > trained_up_to:
            axes.axvspan(x - 0.5, x + 0.5, color="0.9", linewidth=0, zorder=0, label=label)
            label = None


def dodge(number: int, count: int) -> float:
    """Move lines apart a little, that error bars do not hide each other."""
    return 0.02 * (number - (count - 1) / 2)


def label_bins(axes: Any, bins: List[dict], x_label: str, y_label: str) -> None:
    """Name the axes, and each bin on the x axis with its number of sentences."""
    axes.set_xticks(range(len(bins)), [f"{part['name']}\nn = {part['sentences']}" for part in bins])
    axes.set_xlim(-0.5, len(bins) - 0.5)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(axis="y", color="0.8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Any, output: str) -> None:
    """Write a figure, whole or not at all.

    Raises:
        UsageError: ``output`` has an ending that matplotlib does not know.
    """
    kind = os.path.splitext(output)[1].lstrip(".").lower() or "none"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise UsageError(f"{output}: cannot draw {kind}; choose an ending of {', '.join(known)}")
    with replacing(output, "wb") as stream:
        figure.savefig(stream, format=kind, dpi=150)
