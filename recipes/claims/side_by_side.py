"""Draw BLEU and bits per token of a part's rows by length of the source, side by side.

    python -m recipes.claims.side_by_side --runs runs/claims --output docs/gallery/side_by_side.png

The rows are those of the part ``longer``, at equal convergence, with the seeds that have all
figures in all rows: ``--seeds`` or more. Then it prints a caption.
"""

import statistics
from typing import Any, Dict, List, NamedTuple, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.tables.intervals import Estimate
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.plots import draw_estimates, line_style, new_figure, save
from fairseq_posenc.tools.tables.runs import read_runs
from recipes.claims.claim_figures import drawn_bits, figures_by_seed

_CAPTION = (
    "Translation models with {count} encodings, trained on generated sentences of at most 20 "
    "words, {seeds} times each, and tested on longer and longer ones. Left: BLEU of their "
    "translations; higher is better. Right: by how many bits each token of the right translation "
    "surprises them, given those before it; lower is better, and it does not matter where their "
    "own translations end. Bars are 95 % intervals over trainings and sentences. Validation "
    "losses at the end of training are {low:.3f} to {high:.3f} bits per token."
)
_PANELS = {"BLEU": "BLEU (higher is better)", "bits": "bits per token (lower is better)"}


class Measured(NamedTuple):
    """What is drawn.

    Attributes:
        seeds: those that have all figures in all rows.
        losses: of validation at the end of training, by row.
        ranges: of lengths, their names.
        panels: means over seeds with their intervals, by figure, row and range.
    """

    seeds: List[int]
    losses: List[float]
    ranges: List[str]
    panels: Dict[str, Dict[str, List[Estimate]]]


def measure(runs: str, part: str, rows: Sequence[str], seeds: int) -> Measured:
    """Return what is drawn of a part's rows.

    Raises:
        UsageError: fewer than ``seeds`` seeds have all figures in all rows.
    """
    figures = {
        (row, figure): figures_by_seed(runs, part, row, figure)
        for row in rows
        for figure in ("BLEU:all", "bits_of:all", "bits")
    }
    common = sorted(set.intersection(*map(set, figures.values())))
    if len(common) < seeds:
        (row, figure), fewest = min(figures.items(), key=lambda item: len(item[1]))
        raise UsageError(
            f"{part} needs {seeds} seeds with all figures of all rows, and has {len(common)}: "
            f"{row} has {figure.partition(':')[0]} of {len(fewest)}"
        )
    folders = {row: [f"{runs}/{part}/{row}/seed{seed}" for seed in common] for row in rows}
    table = by_length(read_runs([f"{r}={f}/score.json" for r in rows for f in folders[r]]))
    ranges = list(table.columns[1:])
    bits = {}
    for row in rows:
        by_range = (figures_by_seed(runs, part, row, f"bits_of:{name}") for name in ranges)
        values = [[by_seed[seed] for seed in common] for by_seed in by_range]
        drawn = [drawn_bits(folders[row], name).var(ddof=1) for name in ranges]
        bits[row] = [
            Estimate(statistics.mean(sample), *t_interval(sample, variance))
            for sample, variance in zip(values, drawn)
        ]
    bleu = {row: table.rows[row][1:] for row in rows}
    losses = [statistics.mean(figures[row, "bits"][seed] for seed in common) for row in rows]
    return Measured(common, losses, ranges, {"BLEU": bleu, "bits": bits})


def draw(measured: Measured, output: str) -> None:
    """Draw it, a panel for each figure."""
    figure = new_figure(10.0, 4.0)
    panels = list(zip(figure.subplots(1, 2), measured.panels.items()))
    for axes, (name, rows) in panels:
        for number, (row, estimates) in enumerate(rows.items()):
            shift = 0.08 * (number - (len(rows) - 1) / 2)
            draw_estimates(axes, estimates, shift, row, line_style(number))
        axes.axvspan(-0.5, 0.5, color="0.92", linewidth=0, zorder=0)
        ranges = [f"{measured.ranges[0]}\nas in training", *measured.ranges[1:]]
        axes.set_xticks(range(len(ranges)), ranges)
        axes.set_xlim(-0.5, len(ranges) - 0.5)
        axes.set_title(_PANELS[name], fontsize=11)
        axes.grid(axis="y", color="0.8", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("words of the source", fontsize=10)
    legend: Dict[str, Any] = {"loc": "outside upper center", "ncols": 7, "frameon": False}
    figure.legend(*panels[0][0].get_legend_handles_labels(), **legend)
    save(figure, output)


def main() -> None:
    """Parse the command line, draw, and print the caption."""
    parser = plain_parser(__doc__)
    parser.add_argument("--runs", required=True, metavar="FOLDER", help="of recipes/claims.sh")
    parser.add_argument("--part", default="longer")
    parser.add_argument("--rows", default="sinusoidal,shape,cape,shaw,rotary", metavar="LIST")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="at least so many (5)")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    rows = args.rows.split(",")
    # one training has no interval
    measured = measure(args.runs, args.part, rows, max(args.seeds, 2))
    draw(measured, args.output)
    low, high = min(measured.losses), max(measured.losses)
    print(_CAPTION.format(count=len(rows), seeds=len(measured.seeds), low=low, high=high))


if __name__ == "__main__":
    main()
