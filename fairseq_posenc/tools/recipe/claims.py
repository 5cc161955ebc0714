"""Write the page of claims: what the papers say, what our trainings say, and a verdict.

    python -m fairseq_posenc.tools.recipe.claims --claims recipes/claims/claims.json \\
        --runs runs/claims --output runs/claims/claims.md

``claims.json`` has, for each claim, the paper's words and figures and our comparisons: of a row with
another row, or with a number, in one figure, by seed. A difference has a 95 % interval over seeds (for
BLEU: and sentences), and the verdict follows from where that lies (see :func:`verdict`).
"""

import argparse
import json
import os
import re
import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe, OrNull, read_shaped
from fairseq_posenc.tools.results.intervals import t_interval
from fairseq_posenc.tools.results.tables import by_length, markdown_table, read_runs
from fairseq_posenc.tools.results.training_log import read_log, validation_losses
from fairseq_posenc.tools.writing import replacing

CONFIRMED, NOT_CONFIRMED, OPPOSITE = "confirmed", "not confirmed", "opposite"
UNDECIDED, MISSING = "not decided here", "not run"
_COMPARISON = {
    "part": str,
    "figure": str,
    "row": str,
    "base": Maybe(str),
    "than": Maybe(float),
    "expect": str,
    "margin": float,
    "headline": Maybe(bool),
    "in_words": Maybe(str),
}
_SHAPE = {
    "parts": Each({"about": str, "command": str}),
    "claims": [{"claim": str, "source": str, "paper": str, "ours": [_COMPARISON], "note": Maybe(str)}],
}  # fmt: skip
_NUMBERS = [[OrNull(float)]]
INTRODUCTION = """\
# Claims

What the four papers say, tried with small models and several seeds on a generated corpus. A difference is that of the row to what it is
compared with, paired by seed, with a 95 % interval over seeds (Student's t; for BLEU also over sentences). **Confirmed**: the interval lies
where the paper says; **opposite**: on the other side of 0; **not confirmed**: it holds 0 and no difference that matters, or where rows
should be equal, it lies outside the margin; **not decided here**: it is too wide to tell. Small models and a simple grammar: what is confirmed
here is confirmed here, and what is not may hold in the papers' settings. The page, with all its figures, is what the recipe prints:

```bash
bash recipes/claims.sh          # --fast: three seeds and fewer rows
```
"""


class Result(NamedTuple):
    """A comparison, measured: ``low`` to ``high`` is the interval of ``row`` less ``base``."""

    seeds: int
    row: Optional[float]
    base: Optional[float]
    low: Optional[float]
    high: Optional[float]
    verdict: str


def verdict(low: float, high: float, expect: str, margin: float) -> str:
    """Return what an interval says of a claim.

    Args:
        low, high: of the difference, row less base.
        expect: ``more``, ``less`` or ``equal``.
        margin: the smallest difference that matters.

    Returns:
        of ``more``: confirmed if the interval is above 0, opposite if below, not confirmed if it
        holds 0 and no difference that matters, else not decided here. Of ``equal``: confirmed if
        the interval lies within ± margin, not confirmed if it lies outside, else not decided.
    """
    if expect == "less":
        low, high, expect = -high, -low, "more"
    if expect == "more":
        if low > 0 or high < 0:
            return CONFIRMED if low > 0 else OPPOSITE
        return NOT_CONFIRMED if high < margin else UNDECIDED
    if expect != "equal":
        raise UsageError(f"a claim expects more, less or equal, not {expect!r}")
    if -margin < low and high < margin:
        return CONFIRMED
    return NOT_CONFIRMED if low > margin or high < -margin else UNDECIDED


# --- figures: each a function of a seed's folder, and of the word behind the colon -----------------


def _bits(folder: str, name: str) -> float:
    """Validation loss at the end of a training, in bits per target token."""
    losses = validation_losses(f"{folder}/train.log")
    return losses[max(losses)]


def _speed(folder: str, name: str) -> float:
    return float(read_log(f"{folder}/train.log")["tokens_per_second"])


def _similarity(folder: str, name: str) -> float:
    """Cosine similarity of encoder states at offsets 0 and the largest one."""
    found = read_shaped(f"{folder}/shift.json", {"similarities": Each(_NUMBERS)}, "posenc analyse")
    [matrix] = found["similarities"].values()
    return _known(matrix[0][-1], folder)


def _drop(folder: str, name: str) -> float:
    """BLEU that a sentence loses at the end of the input (SHAPE, Table 1)."""
    found = read_shaped(f"{folder}/swap.json", {"models": Each({"drop": float})}, "posenc analyse")
    [model] = found["models"].values()
    return float(model["drop"])


def _share(folder: str, name: str) -> float:
    """Percentage of tokens that the row scores above sinusoids: ``ranks, positions``, by name."""
    shape = {"frequency_ranks": [str], "positions": [str], "shares": _NUMBERS}
    found = read_shaped(f"{folder}/tokens.json", shape, "posenc analyse")
    rank, position = name.split()
    try:
        at = found["frequency_ranks"].index(rank), found["positions"].index(position)
    except ValueError:
        raise UsageError(f"{folder}/tokens.json has no {name!r}") from None
    return 100 * _known(found["shares"][at[0]][at[1]], folder)


def _rank(folder: str, name: str) -> float:
    """Rank of the scores of ``position`` or ``content``, mean over layers and heads."""
    layers = {"layers": [{"ranks": Each([float])}]}
    found = read_shaped(f"{folder}/attention.json", {"models": Each(layers)}, "posenc analyse")
    [model] = found["models"].values()
    ranks = [number for layer in model["layers"] for number in layer["ranks"][name]]
    return statistics.mean(ranks)


def _probe(folder: str, name: str) -> float:
    """A figure of probes.json."""
    found = read_shaped(f"{folder}/probes.json", {name: OrNull(float)}, "recipes/claims/bert.sh")
    return _known(found[name], folder)


def _time(folder: str, name: str) -> float:
    """Time of a step of ``benchmark, row``, in per cent of that of the benchmark's base."""
    benchmark, row = name.split()
    cells = {"cells": [{"contestants": Each({"base": float})}]}
    found = read_shaped(f"{folder}/{benchmark}.json", cells, "posenc benchmark")
    return 100 * statistics.mean(cell["contestants"][row]["base"] for cell in found["cells"])


def _plain(folder: str, name: str) -> float:
    """Validation loss at the end of a training of plain_transformer.py, in bits."""
    curve = read_shaped(f"{folder}/plain.json", {"curve": Each(float)}, "plain_transformer.py")
    return float(curve["curve"][max(curve["curve"], key=int)])


FIGURES: Dict[str, Tuple[Callable[[str, str], float], str, str]] = {
    "BLEU": (_bits, "score.json", "sacreBLEU, source words {}"),
    "bits": (_bits, "train.log", "validation loss, bits per token"),
    "similarity": (_similarity, "shift.json", "similarity of encoder states"),
    "drop": (_drop, "swap.json", "BLEU lost at the end of the input"),
    "share": (_share, "tokens.json", "% of tokens scored above sinusoids, {}"),
    "rank": (_rank, "attention.json", "rank of the scores of {}"),
    "probe": (_probe, "probes.json", "{}"),
    "time": (_time, "bert.json", "time of a step, % ({})"),
    "plain": (_plain, "plain.json", "validation loss of torch.nn.Transformer, bits"),
}


def _known(value: Optional[float], folder: str) -> float:
    if value is None:
        raise UsageError(f"{folder} has no such figure")
    return float(value)


def figures_by_seed(runs: str, part: str, row: str, figure: str) -> Dict[int, float]:
    """Return a figure of each training of a row, by seed; empty where it was not run.

    A row ``a less b`` has the differences of two rows.
    """
    if " less " in row:
        a, b = (figures_by_seed(runs, part, name, figure) for name in row.split(" less "))
        return {seed: a[seed] - b[seed] for seed in a.keys() & b.keys()}
    kind, _, name = figure.partition(":")
    if kind not in FIGURES:
        raise UsageError(f"no figure is called {kind}; known: {', '.join(FIGURES)}")
    read, file, _ = FIGURES[kind]
    found = {}
    for seed, folder in _seeds(f"{runs}/{part}/{row}"):
        if os.path.exists(f"{folder}/{file}"):
            found[seed] = read(folder, name)
    return found


def _seeds(folder: str) -> List[Tuple[int, str]]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = sorted(int(name[4:]) for name in names if re.fullmatch(r"seed\d{1,9}", name))
    return [(number, f"{folder}/seed{number}") for number in numbers]


def compare(runs: str, one: Dict[str, Any]) -> Result:
    """Measure a comparison of ``claims.json``: seeds that both rows have, paired."""
    part, row, base, figure = one["part"], one["row"], one.get("base"), one["figure"]
    if figure.startswith("BLEU:"):
        return _compare_bleu(runs, one)
    ours = figures_by_seed(runs, part, row, figure)
    if base is None:
        others = dict.fromkeys(ours, float(one["than"]))
    else:
        # of another part or figure: part/row, row@figure
        place, _, other = base.partition("@")
        place = place if "/" in place else f"{part}/{place}"
        others = figures_by_seed(runs, *place.split("/", 1), other or figure)
    return _judged([(ours[seed], others[seed]) for seed in sorted(ours.keys() & others.keys())], one)


def _judged(pairs: List[Tuple[float, float]], one: Dict[str, Any]) -> Result:
    if len(pairs) < 2:
        return Result(len(pairs), None, None, None, None, MISSING)
    low, high = t_interval([ours - other for ours, other in pairs])
    found = verdict(low, high, one["expect"], one["margin"])
    means = [statistics.mean(column) for column in zip(*pairs)]
    return Result(len(pairs), *means, low, high, found)


def _compare_bleu(runs: str, one: Dict[str, Any]) -> Result:
    """Compare two rows on a range of lengths, over the seeds and sentences that both have."""
    column, rows = one["figure"].partition(":")[2], (one["row"], one["base"])
    seeds = [
        {s for s, at in _seeds(f"{runs}/{one['part']}/{row}") if os.path.exists(f"{at}/score.json")}
        for row in rows
    ]
    both = sorted(seeds[0] & seeds[1])
    if len(both) < 2:
        return Result(len(both), None, None, None, None, MISSING)
    places = [
        f"{row}={runs}/{one['part']}/{row}/seed{seed}/score.json" for row in rows[::-1] for seed in both
    ]  # fmt: skip
    table = by_length(read_runs(places))
    if column not in table.columns:
        raise UsageError(f"{one['part']} has no lengths {column}, only {', '.join(table.columns)}")
    at = table.columns.index(column)
    ours, other = table.rows[rows[0]][at].mean, table.rows[rows[1]][at].mean
    low, high = table.differences[rows[0]][at][1:3]
    if low is None or high is None:
        raise UsageError(f"{one['part']} has no sentences of {column} words")
    return Result(len(both), ours, other, low, high, verdict(low, high, one["expect"], one["margin"]))


# --- the page ------------------------------------------------------------------------------------


def page(content: Dict[str, Any], runs: str) -> str:
    """Return the page: verdicts at a glance, then each claim with its figures."""
    judged = [
        (claim, [(one, compare(runs, one)) for one in claim["ours"]]) for claim in content["claims"]
    ]
    glance, claims = [["", "claim", "source", "verdicts"]], []
    for number, (claim, results) in enumerate(judged, 1):
        glance.append([str(number), claim["claim"], claim["source"], _count(results)])
        claims.append(_section(number, claim, results))
    parts = [
        f"- **{name}**: {part['about']} `{part['command']}`"
        for name, part in content["parts"].items()
    ]
    return "\n\n".join(
        [
            INTRODUCTION.strip(),
            markdown_table(glance, labels=4),
            "\n".join(headlines(judged)),
            "## Experiments",
            "\n".join(parts),
            *claims,
        ]
    )


def headlines(judged: List[Tuple[Dict[str, Any], List[Tuple[Dict[str, Any], Result]]]]) -> List[str]:
    """Return the three clearest results in words: the farthest from 0, measured by the interval."""
    found = []
    for claim, results in judged:
        clear = [
            (abs(_middle(r)) / max(_half(r), 1e-9), one, r)
            for one, r in results
            if one.get("in_words") and r.verdict in (CONFIRMED, OPPOSITE) and one["expect"] != "equal"
        ]
        if clear:
            found.append(max(clear, key=lambda each: each[0]))
    found.sort(key=lambda each: -each[0])
    return [
        f"- {one['in_words']}: {_difference(result)} (n = {result.seeds}): {result.verdict}"
        for _, one, result in found[:3]
    ]


def _section(number: int, claim: Dict[str, Any], results: List[Tuple[Dict[str, Any], Result]]) -> str:
    lines = [["ours", "n", "row", "compared with", "difference, 95 %", "expected", "verdict"]]
    for one, result in results:
        base = one["base"].partition("@")[0] if one.get("base") else "the number"
        lines.append(
            [
                f"{one['part']}: {figure_label(one['figure'])}",
                str(result.seeds),
                f"{one['row']} {_number(result.row)}",
                f"{base} {_number(result.base)}",
                _difference(result),
                one["expect"] + (f" (± {one['margin']:g})" if one["expect"] == "equal" else ""),
                result.verdict,
            ]
        )
    text = [f"## {number}. {claim['claim']}", f"{claim['source']}. {claim['paper']}"]
    text.append(markdown_table(lines, labels=1))
    return "\n\n".join(text + ([claim["note"]] if claim.get("note") else []))


def figure_label(figure: str) -> str:
    """Return what a figure is, for people."""
    kind, _, name = figure.partition(":")
    return FIGURES[kind][2].format(name.replace("_", " "))


def _count(results: List[Tuple[Dict[str, Any], Result]]) -> str:
    verdicts = [result.verdict for _, result in results]
    counts = {one: verdicts.count(one) for one in dict.fromkeys(verdicts)}
    return ", ".join(one if count == len(verdicts) == 1 else f"{count} {one}" for one, count in counts.items())


def _middle(result: Result) -> float:
    return ((result.low or 0.0) + (result.high or 0.0)) / 2


def _half(result: Result) -> float:
    return ((result.high or 0.0) - (result.low or 0.0)) / 2


def _number(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def _difference(result: Result) -> str:
    if result.low is None:
        return "-"
    digits = 3 if abs(_middle(result)) + _half(result) < 1 else 1 if _half(result) > 1 else 2
    return f"{_middle(result):+.{digits}f} ± {_half(result):.{digits}f}"


def main() -> None:
    """Parse the command line and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", required=True, metavar="claims.json")
    parser.add_argument("--runs", required=True, metavar="FOLDER", help="of recipes/claims.sh")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    text = page(read_shaped(args.claims, _SHAPE, "recipes/claims"), args.runs)
    with replacing(args.output) as stream:
        stream.write(f"{text}\n")
    print(text)


if __name__ == "__main__":
    run(main)
