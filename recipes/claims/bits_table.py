"""Bits per token by length, of several rows and seeds: tables, a picture, and what was expected.

    python -m recipes.claims.bits_table sinusoidal=runs/sinusoidal/seed1/bits.json \\
        shaw=runs/shaw/seed1/bits.json --expect shaw=less --margin 0.1 --output runs/bits

It writes ``bits.md``, ``bits.tex`` and ``bits.png``. The first row is what the others are compared
with, over the seeds that both have. The *difference of differences* is a row less the first row
beyond the first range of lengths, less the same within it: what is left when one learns more slowly
than the other. Intervals are over seeds and over sentences, as in ``posenc table``.
"""

import argparse
import functools
import os
import statistics
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, read_shaped
from fairseq_posenc.tools.scores.intervals import SAMPLES, SEED, t_interval
from fairseq_posenc.tools.tables.estimates import Estimate
from fairseq_posenc.tools.tables.latex import escaped
from fairseq_posenc.tools.tables.plots import line_style, new_figure, plain_label, save
from fairseq_posenc.tools.text_tables import markdown_table
from fairseq_posenc.tools.writing import replacing
from recipes.claims.verdicts import EXPECTED, verdict

# of a training, by range of lengths: bits and tokens of each sentence, (sentences, 2)
Training = Dict[str, np.ndarray]
BEYOND = "beyond"  # all ranges but the first, together


class Bits:
    """Bits per token of one training: the figure, and on sentences drawn anew.

    Args:
        ranges: of each range of lengths that counts its number and the bits and tokens of its
            sentences, ``(sentences, 2)``; each is drawn from by itself.
    """

    def __init__(self, ranges: Mapping[int, np.ndarray]):
        total = sum(part.sum(axis=0) for part in ranges.values())
        self.figure = float(total[0] / total[1])
        drawn = sum(_draws(number, len(part)) @ part for number, part in ranges.items())
        self.drawn = drawn[:, 0] / drawn[:, 1]  # (draws,)


@functools.cache
def _draws(number: int, count: int) -> np.ndarray:
    """Return how often each sentence of a range is drawn, ``(draws, sentences)``.

    It is the same for every training, so that differences are paired.
    """
    random = np.random.RandomState([SEED, number])
    return random.multinomial(count, [1 / count] * count, size=SAMPLES)


class Trainings:
    """The trainings of a row by seed, each with its cells by range."""

    def __init__(self, seeds: Mapping[str, Training]):
        self.seeds: Dict[str, Dict[str, Bits]] = {}
        for seed, one in seeds.items():
            parts = dict(enumerate(one.values()))
            cells = {name: Bits({number: parts[number]}) for number, name in enumerate(one)}
            beyond = {number: part for number, part in parts.items() if number}
            self.seeds[seed] = {**cells, BEYOND: Bits(beyond)}

    def estimate(self, signed: Sequence[Tuple[int, "Trainings", str]]) -> Estimate:
        """Return a sum of figures with its interval, over the seeds that all rows have.

        Args:
            signed: sign, row and range of each summand.
        """
        common = [seed for seed in self.seeds if all(seed in row.seeds for _, row, _ in signed)]
        if not common:
            return Estimate(None)
        figures = [
            sum(sign * row.seeds[seed][name].figure for sign, row, name in signed)
            for seed in common
        ]
        # one draw of sentences counts for all seeds: their mean is drawn
        drawn = sum(
            sign * np.mean([row.seeds[seed][name].drawn for seed in common], axis=0)
            for sign, row, name in signed
        )
        low, high = t_interval(figures, float(np.var(drawn, ddof=1)))
        return Estimate(statistics.mean(figures), low, high)

    def differences(self, base: "Trainings", names: Sequence[str]) -> List[Estimate]:
        """Return this row less another, by range."""
        return [self.estimate([(1, self, name), (-1, base, name)]) for name in names]

    def beyond(self, base: "Trainings", names: Sequence[str]) -> List[Estimate]:
        """Return the differences of differences: all ranges beyond the first, then each."""
        first, *others = names
        at_first = [(-1, self, first), (1, base, first)]
        return [
            self.estimate([(1, self, name), (-1, base, name), *at_first])
            for name in (BEYOND, *others)
        ]


def read_rows(arguments: Sequence[str]) -> Tuple[Dict[str, Trainings], List[str]]:
    """Read ``label=…/<seed>/bits.json`` arguments; return the rows, and the names of the ranges.

    Raises:
        UsageError: an argument is no such path, a seed stands twice, or the ranges differ.
    """
    rows: Dict[str, Dict[str, Training]] = {}
    names: List[str] = []
    for argument in arguments:
        label, equals, path = argument.partition("=")
        if not (label and equals and path):
            raise UsageError(f"{argument!r} is not label=bits.json")
        found = read_shaped(path, {"sentences": Each([[float]])}, "recipes.claims.bits")
        training = {name: np.array(part) for name, part in found["sentences"].items()}
        training.pop("all", None)
        names = names or list(training)
        if list(training) != names or len(names) < 2:
            raise UsageError(f"{path} has the ranges {', '.join(training)}, not {', '.join(names)}")
        seed = os.path.basename(os.path.dirname(os.path.abspath(path)))
        if seed in rows.setdefault(label, {}):
            raise UsageError(f"{label} has {seed} twice")
        rows[label][seed] = training
    return {label: Trainings(seeds) for label, seeds in rows.items()}, names


def markdown(
    rows: Mapping[str, Trainings], names: Sequence[str], expected: Mapping[str, str], margin: float
) -> str:
    """Return the three tables, and the verdicts by what was expected."""
    base, *others = rows
    parts = ["Bits per token of the references (less is better)"]
    lines = [["", "n", *names]]
    for label, row in rows.items():
        figures = [row.estimate([(1, row, name)]) for name in names]
        lines.append([label, str(len(row.seeds)), *map(_plain, figures)])
    parts.append(markdown_table(lines))
    if others:
        compared = {label: rows[label].differences(rows[base], names) for label in others}
        lines = [["", *names], *([label, *map(_signed, c)] for label, c in compared.items())]
        parts += [f"Less {base}", markdown_table(lines)]
        further = {label: rows[label].beyond(rows[base], names) for label in others}
        head = ["", f"all beyond {names[0]}", *names[1:], "expected", "verdict"]
        lines = [head]
        for label, estimates in further.items():
            expect = expected.get(label, "no verdict")
            low, high = estimates[0].low, estimates[0].high
            known = low is not None and high is not None
            said = verdict(low or 0.0, high or 0.0, expect, margin) if known else "-"
            words = EXPECTED[expect].format(f"{margin:g}")
            lines.append([label, *map(_signed, estimates), words, said])
        parts += [
            f"Difference of differences: the same, less that at {names[0]}",
            markdown_table(lines),
        ]
    return "\n\n".join(parts) + "\n"


def latex(rows: Mapping[str, Trainings], names: Sequence[str]) -> str:
    r"""Return bits per token as a ``tabular`` for ``\usepackage{booktabs}``."""
    head = ["", "$n$", *map(escaped, names)]
    lines = [" & ".join(head) + r" \\", r"\midrule"]
    for label, row in rows.items():
        cells = [_plain(row.estimate([(1, row, name)])).replace("±", r"\pm") for name in names]
        lines.append(
            " & ".join([escaped(label), str(len(row.seeds)), *(f"${c}$" for c in cells)]) + r" \\"
        )
    form = f"lr{'r' * len(names)}"
    return "\n".join(
        [rf"\begin{{tabular}}{{{form}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", ""]
    )


def draw(rows: Mapping[str, Trainings], names: Sequence[str], output: str) -> None:
    """Draw the differences to the first row by range, a line per row with its intervals."""
    base, *others = rows
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    step = min(0.08, 0.4 / max(1, len(others)))
    for number, label in enumerate(others):
        estimates = rows[label].differences(rows[base], names)
        points = [(x, one) for x, one in enumerate(estimates) if one.mean is not None]
        shift = step * (number - (len(others) - 1) / 2)
        axes.errorbar(
            [x + shift for x, _ in points],
            [one.mean for _, one in points],
            yerr=[_half(one) for _, one in points],
            label=plain_label(label),
            **line_style(number + 1),
        )
    axes.axhline(0, color="0.4", linewidth=1, zorder=1)
    axes.axvspan(-0.5, 0.5, color="0.92", linewidth=0, zorder=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), [plain_label(name) for name in names])
    axes.set_xlabel("length in subwords (shaded: trained lengths)")
    axes.set_ylabel(f"bits per token, less {plain_label(base)}")
    axes.grid(axis="y", color="0.8", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    save(figure, output)


def _plain(one: Estimate) -> str:
    return _with_half(one, "{:.2f}")


def _signed(one: Estimate) -> str:
    return _with_half(one, "{:+.2f}")


def _with_half(one: Estimate, form: str) -> str:
    """Return mean ± half the interval; of one seed, which has no interval, the mean alone."""
    if one.mean is None:
        return "-"
    return form.format(one.mean) + (f" ± {_half(one):.2f}" if _half(one) else "")


def _half(one: Estimate) -> float:
    """Return half the interval; 0 of one seed."""
    half = (one.high or 0.0) - (one.mean or 0.0)
    return half if np.isfinite(half) else 0.0


def main() -> None:
    """Parse the command line, and write the tables and the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bits", nargs="+", metavar="LABEL=bits.json")
    parser.add_argument("--expect", action="append", default=[], metavar="LABEL=less")
    parser.add_argument("--margin", type=float, default=0.1, help="in bits (0.1)")
    parser.add_argument("--output", required=True, metavar="PATH", help="before .md, .tex and .png")
    args = parser.parse_args()
    rows, names = read_rows(args.bits)
    expected = dict(one.split("=", 1) for one in args.expect)
    text = markdown(rows, names, expected, args.margin)
    for ending, content in ((".md", text), (".tex", latex(rows, names))):
        with replacing(args.output + ending) as stream:
            stream.write(content)
    if len(rows) > 1:
        draw(rows, names, f"{args.output}.png")
    print(text)


if __name__ == "__main__":
    main()
