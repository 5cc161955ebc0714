"""Pictures of the page of claims: every comparison, and every encoding by length."""

import re
from typing import Any, Dict, List, Sequence

from fairseq_posenc.tools.tables.plots import COLOURS, new_figure, save
from recipes.claims.compared import Compared
from recipes.claims.verdicts import AGAINST, AS_SAYS, NO_GAIN, NO_VERDICT, UNDECIDED

_COLOURS = dict(zip((AS_SAYS, AGAINST, NO_GAIN, UNDECIDED), COLOURS))
_COLOURS[NO_VERDICT] = "0.7"
_DIFFERENCE = r"([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\]"


def draw_all_rows(found: Sequence[Sequence[Compared]], output: str) -> bool:
    """Draw every difference and its interval in units of its margin; return whether there are any.

    To the right is what the paper says, but where rows are to be equal. Main comparisons are large,
    and the differences of single seeds are dots, where they are known.
    """
    rows = [
        (number, one, one is compared[0])
        for number, compared in enumerate(found, 1)
        for one in compared
        if one.seeds
    ]
    if not rows:
        return False
    figure = new_figure(10.0, 1.2 + 0.22 * len(rows))
    axes = figure.add_subplot()
    axes.axvspan(-1, 1, color="0.93", linewidth=0, zorder=0)
    axes.axvline(0, color="0.5", linewidth=0.8)
    labels, handles = [], {}
    for place, (number, one, main) in enumerate(rows):
        about = one.about
        unit = (-1 if about["expect"] in ("less", "not more") else 1) / about["margin"]
        style: Dict[str, Any] = {"color": _COLOURS[one.verdict], "marker": "D" if main else "o"}
        shown = "no verdict" if one.verdict == NO_VERDICT else one.verdict
        handles[shown] = axes.errorbar(
            [one.middle * unit],
            [place],
            xerr=[one.half * abs(unit)],
            markersize=7 if main else 4,
            **style,
        )
        seeds = [x * unit for x in one.by_seed]
        axes.plot(seeds, [place] * len(seeds), ".", color="black", markersize=3)
        figure_name = about["figure"].rpartition(":")[2].replace("_", " ")
        labels.append(f"{number}  {about['part']}, {figure_name}: {' - '.join(one.names())}")
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


def draw_differences(section: str, output: str) -> bool:
    """Draw the differences to sinusoids of a part's table, a panel per range of lengths.

    Args:
        section: of the page of tables, with those of one run or of two, whose rows are drawn where
            the first run has none; False is returned where it has no table of differences.
        output: the picture.
    """
    rows: Dict[str, List[str]] = {}
    panels: List[Any] = []
    for text in section.split("Differences to sinusoidal\n\n")[1:]:
        lines = [line.strip("| ").split("|") for line in text.split("\n\n")[0].split("\n")]
        panels = panels or [title.strip() for title in lines[0][-4:]]
        rows = {**{line[0].strip(): line for line in lines[2:]}, **rows}
    if not rows:
        return False
    figure = new_figure(11.0, 1.2 + 0.28 * len(rows))
    axes = figure.subplots(1, len(panels), sharey=True)
    for column, (panel, title) in enumerate(zip(axes, panels), -len(panels)):
        panel.axvline(0, color="0.5", linewidth=0.8)
        for place, line in enumerate(rows.values()):
            found = re.search(_DIFFERENCE, line[column])
            if found:
                middle, low, high = map(float, found.groups())
                clear = COLOURS[0] if low > 0 else COLOURS[1] if high < 0 else "0.6"
                panel.errorbar(
                    [middle],
                    [place],
                    xerr=[[middle - low], [high - middle]],
                    color=clear,
                    marker="o",
                    capsize=2,
                )
        panel.set_title(title, fontsize=10)
        panel.grid(axis="x", color="0.85", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(rows)), list(rows))
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel("BLEU minus that of sinusoids, with 95 % intervals", fontsize=10)
    save(figure, output)
    return True
