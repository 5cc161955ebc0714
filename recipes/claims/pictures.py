"""Pictures of the page of claims: every comparison, and every encoding by length."""

from typing import Any, Dict, Sequence

from fairseq_posenc.tools.tables.plots import COLOURS, new_figure, save
from recipes.claims.compared import Compared
from recipes.claims.rows import Row
from recipes.claims.verdicts import AGAINST, AS_EXPECTED, AS_SAYS, NO_GAIN, NO_VERDICT, UNDECIDED

_COLOURS = dict(zip((AS_SAYS, AGAINST, NO_GAIN, UNDECIDED), COLOURS))
_COLOURS.update({AS_EXPECTED: _COLOURS[AS_SAYS], NO_VERDICT: "0.7"})


def draw_all_rows(by_claim: Sequence[Sequence[Compared]], output: str) -> bool:
    """Draw every difference and its interval in units of its margin; return whether there are any.

    To the right is what the paper says, but where rows are to be equal. Main comparisons are large,
    and the differences of single seeds are dots, where they are known.
    """
    rows = [
        (number, compared, compared is comparisons[0])
        for number, comparisons in enumerate(by_claim, 1)
        for compared in comparisons
        if compared.seeds
    ]
    if not rows:
        return False
    figure = new_figure(10.0, 1.2 + 0.22 * len(rows))
    axes = figure.add_subplot()
    axes.axvspan(-1, 1, color="0.93", linewidth=0, zorder=0)
    axes.axvline(0, color="0.5", linewidth=0.8)
    labels, handles = [], {}
    for y, (number, compared, main) in enumerate(rows):
        spec = compared.spec
        unit = (-1 if spec["expect"] in ("less", "not more") else 1) / spec["margin"]
        style: Dict[str, Any] = {
            "color": _COLOURS[compared.verdict],
            "marker": "D" if main else "o",
        }
        shown = "no verdict" if compared.verdict == NO_VERDICT else compared.verdict
        handles[shown] = axes.errorbar(
            [compared.middle * unit],
            [y],
            xerr=[compared.half * abs(unit)],
            markersize=7 if main else 4,
            **style,
        )
        seeds = [x * unit for x in compared.by_seed]
        axes.plot(seeds, [y] * len(seeds), ".", color="black", markersize=3)
        figure_name = spec["figure"].rpartition(":")[2].replace("_", " ")
        labels.append(f"{number}  {spec['part']}, {figure_name}: {' - '.join(compared.names())}")
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])
    axes.minorticks_off()
    axes.set_xlabel(
        "difference in margins\nright: the paper's side, or without a verdict higher figures"
    )
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    legend: Dict[str, Any] = {"loc": "outside upper center", "ncols": 5, "frameon": False}
    figure.legend(handles.values(), handles.keys(), **legend)
    save(figure, output)
    return True


def draw_differences(rows: Sequence[Row], output: str) -> bool:
    """Draw the differences to sinusoids of a part's rows, a panel per range of lengths.

    Args:
        rows: of one run or of two; of a row that both have, that of the first run is drawn. False
            is returned where none has differences.
        output: the picture.
    """
    differ = {
        row.row: row.by_length
        for row in sorted(rows, key=lambda row: -row.run)
        if any(scores.get("less_base") for scores in row.by_length.values())
    }
    if not differ:
        return False
    panels = [name for name in next(iter(differ.values())) if name != "all"]
    names = [name for name in dict.fromkeys(row.row for row in rows) if name in differ]
    figure = new_figure(11.0, 1.2 + 0.28 * len(names))
    [axes] = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, title in zip(axes, panels):
        panel.axvline(0, color="0.5", linewidth=0.8)
        for y, name in enumerate(names):
            middle, low, high = differ[name][title]["less_base"]
            clear = COLOURS[0] if low > 0 else COLOURS[1] if high < 0 else "0.6"
            xerr = [[middle - low], [high - middle]]
            panel.errorbar([middle], [y], xerr=xerr, color=clear, marker="o", capsize=2)
        panel.set_title(title, fontsize=10)
        panel.grid(axis="x", color="0.85", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel("BLEU minus that of sinusoids, with 95 % intervals", fontsize=10)
    save(figure, output)
    return True
