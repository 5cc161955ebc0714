"""Bits per token by length, of several rows and seeds: tables, pictures, and what was expected.

    python -m recipes.claims.bits_table sinusoidal=runs/sinusoidal/seed1/bits.json \\
        shaw=runs/shaw/seed1/bits.json --expect shaw=less --margin 0.1 --output runs/bits

It writes ``bits.md``, ``bits.tex`` and ``bits.png``. The first row is what the others are compared
with, over the seeds that both have. Where checkpoints were kept during training, rows are judged
beyond the trained lengths *at equal bits within* these (:mod:`recipes.claims.trainings`), and
``bits_level.png`` draws one as a function of the other. Else they are judged as they are at their
end, and those whose bits within differ by more than 0.02 are not. Intervals are over seeds and over
sentences, as in ``posenc table``.
"""

from typing import Any, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.tools.arguments import key_value, plain_parser
from fairseq_posenc.tools.tables.intervals import Estimate
from fairseq_posenc.tools.tables.latex import escaped, tabular
from fairseq_posenc.tools.tables.plots import (
    draw_estimates,
    finish,
    line_style,
    new_figure,
    plain_label,
)
from fairseq_posenc.tools.text_tables import markdown_table
from fairseq_posenc.tools.writing import replacing
from recipes.claims.trainings import BEYOND, EqualLevel, Row, difference, end, read_rows, within
from recipes.claims.verdicts import AS_SAYS, EXPECTED, UNDECIDED, verdict

# the largest difference of bits within that leaves two rows comparable, as on the page of claims
CONVERGED = 0.02
# the picture of levels begins where a training has so many times the level's bits within
_EARLIEST = 1.5


def markdown(
    rows: Mapping[str, Row],
    names: Sequence[str],
    expected: Mapping[str, str],
    margin: float,
) -> str:
    """Return the tables, the last with verdicts by what was expected."""
    base, *compared = rows
    parts = ["Bits per token of the references at the end of training (less is better)"]
    lines = [["", "n", *names]]
    for label, row in rows.items():
        lines.append([label, str(len(row)), *(_plain(end(row, name)) for name in names)])
    parts.append(markdown_table(lines))
    if compared:
        lines = [["", *names, f"all beyond {names[0]}", "expected", "verdict"]]
        level = EqualLevel(rows)
        for label in compared:
            *by_range, beyond = (
                difference(rows[label], rows[base], name) for name in [*names, BEYOND]
            )
            judged = [label, *map(_signed, [*by_range, beyond])]
            if level.level is None:
                judged += _verdict(label, beyond, expected, margin, by_range[0])
            lines.append(judged)
        if level.level is not None:
            lines[0] = lines[0][:-2]
        parts += [f"Less {base}, at the end of training", markdown_table(lines)]
        if level.level is not None:
            parts += _at_equal_level(rows, names, level, expected, margin)
    return "\n\n".join(parts) + "\n"


def _at_equal_level(
    rows: Mapping[str, Row],
    names: Sequence[str],
    level: EqualLevel,
    expected: Mapping[str, str],
    margin: float,
) -> List[str]:
    """Return title and table of bits beyond the trained lengths at equal bits within."""
    base, *compared = rows
    lines = [["", f"bits beyond {names[0]}", f"less {base}", "expected", "verdict"]]
    lines.append([base, _plain(level.beyond(base)), "", "", ""])
    for label in compared:
        less = level.less(label, base)
        lines.append([label, _plain(level.beyond(label)), _signed(less),
                      *_verdict(label, less, expected, margin)])  # fmt: skip
    title = (
        f"Beyond {names[0]}, where each row has {level.level:.2f} bits per token at {names[0]} "
        f"(n = {len(level.levels)}; the level of the worst row, seed by seed)"
    )
    return [title, markdown_table(lines)]


def _verdict(
    label: str,
    less: Estimate,
    expected: Mapping[str, str],
    margin: float,
    within: Optional[Estimate] = None,
) -> List[str]:
    """Return what was expected of a row, and what its difference says.

    ``within`` is the difference at the trained lengths, where that is not 0 by construction.
    """
    expect = expected.get(label, "no verdict")
    low, high = less.low, less.high
    if expect != "no verdict" and within and abs(within.mean or 0.0) > CONVERGED:
        judgement = f"{UNDECIDED} (bits within differ)"
    elif low is None or high is None:
        judgement = "-"
    else:
        judgement = verdict(low, high, expect, margin).replace(AS_SAYS, "as expected")
    return [EXPECTED[expect].format(f"{margin:g}"), judgement]


def latex(rows: Mapping[str, Row], names: Sequence[str]) -> str:
    r"""Return bits per token as a ``tabular`` for ``\usepackage{booktabs}``."""
    lines = [["", "$n$", *map(escaped, names)]]
    for label, row in rows.items():
        cells = [_plain(end(row, name)).replace("±", r"\pm") for name in names]
        lines.append([escaped(label), str(len(row)), *(f"${cell}$" for cell in cells)])
    return tabular(lines, [])


def draw(rows: Mapping[str, Row], names: Sequence[str], output: str) -> None:
    """Draw the differences to the first row by range, a line per row with its intervals."""
    base, *compared = rows
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    step = min(0.08, 0.4 / max(1, len(compared)))
    for number, label in enumerate(compared):
        estimates = [difference(rows[label], rows[base], name) for name in names]
        shift = step * (number - (len(compared) - 1) / 2)
        draw_estimates(axes, estimates, shift, plain_label(label), line_style(number + 1))
    axes.axhline(0, color="0.4", linewidth=1, zorder=1)
    axes.axvspan(-0.5, 0.5, color="0.92", linewidth=0, zorder=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), [plain_label(name) for name in names])
    axes.set_xlabel("length in subwords (shaded: trained lengths)")
    axes.set_ylabel(f"bits per token, less {plain_label(base)}")
    finish(figure, axes, output)


def draw_levels(rows: Mapping[str, Row], names: Sequence[str], level: float, output: str) -> None:
    """Draw bits beyond the trained lengths as a function of bits within: a line per row through the
    means of its trainings at each checkpoint, from half as many bits again as the level (the dotted
    line) on; a pale line per training.
    """
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    for number, (label, row) in enumerate(rows.items()):
        style = line_style(number)
        points = [
            [(within(checkpoint)[0], checkpoint[BEYOND][0]) for checkpoint in checkpoints]
            for checkpoints in row.values()
        ]
        pale = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 0.7}
        for training in points:
            axes.plot(*_drawn(training, level), alpha=0.4, **pale)
        if len(set(map(len, points))) > 1:  # other checkpoints were kept: the ends alone
            points = [training[-1:] for training in points]
        means = [tuple(np.mean(seeds, axis=0)) for seeds in zip(*points)]
        axes.errorbar(*_drawn(means, level), label=plain_label(label), **style)
    axes.axvline(level, color="0.4", linewidth=1, linestyle=":", zorder=1)
    axes.invert_xaxis()
    axes.set_xlabel(f"bits per token at {plain_label(names[0])}, the trained lengths")
    axes.set_ylabel(f"bits per token beyond {plain_label(names[0])}")
    axes.grid(axis="x", color="0.8", linewidth=0.6)
    finish(figure, axes, output)


def _drawn(points: Sequence[Tuple[float, float]], level: float) -> List[Tuple[float, ...]]:
    """Return x and y of the points that are not far from the level."""
    return list(zip(*[point for point in points if point[0] <= _EARLIEST * level]))


def _plain(estimate: Estimate) -> str:
    return _with_half(estimate, "{:.2f}")


def _signed(estimate: Estimate) -> str:
    return _with_half(estimate, "{:+.2f}")


def _with_half(estimate: Estimate, form: str) -> str:
    """Return mean ± half the interval; of one seed, which has no interval, the mean alone."""
    if estimate.mean is None:
        return "-"
    return form.format(estimate.mean) + (f" ± {_half(estimate):.2f}" if _half(estimate) else "")


def _half(estimate: Estimate) -> float:
    """Return half the interval; 0 of one seed."""
    half = (estimate.high or 0.0) - (estimate.mean or 0.0)
    return half if np.isfinite(half) else 0.0


def main() -> None:
    """Parse the command line, and write the tables and the picture."""
    parser = plain_parser(__doc__)
    parser.add_argument("bits", nargs="+", metavar="LABEL=bits.json")
    expect: Any = {"action": "append", "default": [], "type": key_value}
    parser.add_argument("--expect", metavar="LABEL=less", **expect)
    parser.add_argument("--margin", type=float, default=0.1, help="in bits (0.1)")
    parser.add_argument("--output", required=True, metavar="PATH", help="before .md, .tex and .png")
    args = parser.parse_args()
    rows, names = read_rows(args.bits)
    text = markdown(rows, names, dict(args.expect), args.margin)
    for ending, content in ((".md", text), (".tex", latex(rows, names))):
        with replacing(args.output + ending) as stream:
            stream.write(content)
    if len(rows) > 1:
        draw(rows, names, f"{args.output}.png")
        level = EqualLevel(rows).level
        if level is not None:
            draw_levels(rows, names, level, f"{args.output}_level.png")
    print(text)


if __name__ == "__main__":
    main()
