"""Pictures of the analyses, in the manner of the papers' figures."""

import math
from typing import Any, Dict, Mapping, Optional, Sequence

from fairseq_posenc.tools.results.plots import (
    COLOURS,
    draw_cells,
    label_bins,
    line_style,
    new_figure,
)
from fairseq_posenc.tools.results.tables import Table

Matrix = Sequence[Sequence[Optional[float]]]


def similarities(matrices: Mapping[str, Matrix], offsets: Sequence[int]) -> Any:
    """Draw a square of similarities per model (SHAPE, Figure 2); returns matplotlib's figure."""
    side = 0.55 * len(offsets) + 0.8
    rows = math.ceil(len(matrices) / 5)
    columns = math.ceil(len(matrices) / rows)
    figure = new_figure(side * columns + 1.1, side * rows + 0.4)
    known = [v for matrix in matrices.values() for row in matrix for v in row if v is not None]
    # in steps of a tenth, so that rounding errors are not blown up to a whole scale
    low = math.floor(10 * min([0.8, *known])) / 10
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (name, matrix) in zip(panels, matrices.items()):
        image = _heat_map(axes, matrix, "viridis", low, 1.0, "{:.3f}")
        axes.set_title(name, fontsize=11)
        _ticks(axes, offsets, offsets)
        axes.set_xlabel("offset k")
    for axes in panels[len(matrices) :]:
        axes.remove()
    figure.colorbar(image, ax=panels[: len(matrices)], label="cosine similarity", shrink=0.9)
    return figure


def swapped(results: Mapping[str, Mapping[str, Any]]) -> Any:
    """Draw BLEU of the first sentence in both orders, two bars per model (SHAPE, Table 1)."""
    figure = new_figure(1.8 + 1.3 * len(results), 3.6)
    axes = figure.add_subplot()
    for number, order in enumerate(("original", "swapped")):
        places = [x + 0.38 * (number - 0.5) for x in range(len(results))]
        values = [found[order] for found in results.values()]
        bars = axes.bar(places, values, width=0.36, color=COLOURS[number], label=order)
        axes.bar_label(bars, fmt="%.1f", fontsize=9)
    axes.set_xticks(range(len(results)), list(results))
    axes.set_ylabel("sacreBLEU of the first sentence")
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def shares(
    names: Mapping[str, Sequence[str]],
    values: Matrix,
    counts: Sequence[Sequence[int]],
    name_a: str,
    name_b: str,
) -> Any:
    """Draw the shares of tokens by frequency and position (SHAPE, Figure 4)."""
    rows, columns = names["frequency_ranks"], names["positions"]
    figure = new_figure(0.85 * len(columns) + 3.0, 0.6 * len(rows) + 1.5)
    axes = figure.add_subplot()
    known = [value for row in values for value in row if value is not None]
    reach = max([0.1, *(abs(value - 0.5) for value in known)])
    image = _heat_map(axes, values, "RdBu", 0.5 - reach, 0.5 + reach, "{:.2f}", counts)
    _ticks(axes, columns, rows)
    for edge in (len(columns) - 1.5, len(rows) - 1.5):
        draw = axes.axvline if edge == len(columns) - 1.5 else axes.axhline
        draw(edge, color="white", linewidth=3)
    axes.set_xlabel("position in the target sentence")
    axes.set_ylabel("rank by frequency")
    bar = figure.colorbar(image, ax=axes, ticks=[0.5 - reach, 0.5, 0.5 + reach])
    better = (
        f"{name_a} better\n({0.5 - reach:.2f})",
        "equal",
        f"{name_b} better\n({0.5 + reach:.2f})",
    )
    bar.ax.set_yticklabels(better)
    return figure


def differences(table: Table, bins: Sequence[Mapping], of: str) -> Any:
    """Draw the difference in BLEU to the first model with its interval (SHAPE, Figure 3)."""
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    first, *others = table.rows
    axes.axhline(0, color="0.3", linewidth=1)
    for number, name in enumerate(others):
        draw_cells(axes, name, table.differences[name][1:], number, len(others))
    label_bins(axes, bins, of.capitalize(), f"sacreBLEU, difference to {first}")
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def maps(models: Mapping[str, Mapping[int, Any]]) -> Any:
    """Draw the scores of positions, a row per layer and a column per head (Chen et al., Figure 4).

    Layers that have the same scores are one row. Blue is looked at more, red less; the colours of
    a model have one scale.
    """
    blocks = {name: _without_repeats(layers) for name, layers in models.items()}
    heights = [len(block) + 0.5 for block in blocks.values()]
    heads = max(len(scores) for block in blocks.values() for scores in block.values())
    side = min(max(5.4 / heads, 1.35), 2.0)
    figure = new_figure(side * heads + 1.8, side * sum(heights) + 0.3)
    parts = figure.subfigures(len(blocks), 1, height_ratios=heights, squeeze=False)
    for part, (name, block) in zip(parts.flat, blocks.items()):
        part.suptitle(name, fontsize=11)
        _draw_maps(part, block, heads)
    return figure


def ranks(models: Mapping[str, Mapping[str, Any]], length: int) -> Any:
    """Draw the rank of each head's scores, layer by layer (Chen et al. 2021, Figure 2)."""
    layers = [len(model["layers"]) for model in models.values()]
    widths = [max(0.55 * count, 1.2) for count in layers]
    figure = new_figure(sum(widths) + 2.4, 3.4)
    panels = figure.subplots(1, len(models), squeeze=False, sharey=True, width_ratios=widths)[0]
    handles: Dict[str, Any] = {}
    for axes, (name, model) in zip(panels, models.items()):
        for layer in model["layers"]:
            for number, (kind, heads) in enumerate(layer["ranks"].items()):
                places = [layer["layer"] + 0.25 * (number - 1)] * len(heads)
                style = {**line_style(number), "linestyle": "none", "alpha": 0.7}
                handles[kind] = axes.errorbar(places, heads, **style)
        axes.set_title(name, fontsize=11)
        axes.set_xticks([layer["layer"] for layer in model["layers"]])
        axes.set_xlim(model["layers"][0]["layer"] - 0.6, model["layers"][-1]["layer"] + 0.6)
        axes.set_xlabel("layer")
        axes.grid(axis="y", color="0.8", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylim(0, 1.05 * length)
    panels[0].set_ylabel("rank of a head's scores")
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    return figure


def _without_repeats(layers: Mapping[int, Any]) -> Dict[str, Any]:
    """Return the scores of each layer by its name, or one for all if they are the same."""
    numbers = sorted(layers)
    first = layers[numbers[0]]
    if len(numbers) > 1 and all(layers[number].equal(first) for number in numbers):
        return {"all layers": first}
    return {f"layer {number + 1}": layers[number] for number in numbers}


def _draw_maps(part: Any, block: Mapping[str, Any], heads: int) -> None:
    limit = max(float(scores.abs().max()) for scores in block.values()) or 1.0
    panels = part.subplots(len(block), heads, squeeze=False)
    for head, axes in enumerate(panels[0]):
        axes.set_title(f"head {head + 1}", fontsize=8)
    for row, (label, scores) in zip(panels, block.items()):
        for head, axes in enumerate(row):
            if head >= len(scores):
                axes.set_axis_off()
                continue
            image = axes.imshow(
                scores[head].cpu(), cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto"
            )
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_ylabel(f"{label}\nquery", fontsize=8)
    part.colorbar(image, ax=list(panels.flat), shrink=0.8, label="score")
    part.supxlabel("key", fontsize=8)


def _heat_map(
    axes: Any,
    values: Matrix,
    colours: str,
    low: float,
    high: float,
    form: str,
    counts: Optional[Sequence[Sequence[int]]] = None,
) -> Any:
    """Draw a matrix with its figures; where there is none the ground stays grey."""
    numbers = [[float("nan") if v is None else v for v in row] for row in values]
    image = axes.imshow(numbers, cmap=colours, vmin=low, vmax=high, aspect="auto")
    axes.set_facecolor("0.92")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            text = "-" if value is None else form.format(value)
            if counts is not None and value is not None:
                text += f"\nn = {counts[y][x]}"
            light = value is not None and sum(image.cmap(image.norm(value))[:3]) < 1.5
            size = 9 if counts is None else 7.5
            colour = "white" if light else "black"
            axes.text(x, y, text, ha="center", va="center", color=colour, fontsize=size)
    return image


def _ticks(axes: Any, columns: Sequence[Any], rows: Sequence[Any]) -> None:
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
