"""Write the page of claims: what the papers say, what our trainings say, and a verdict.

    python -m recipes.claims.claims --claims recipes/claims/claims.json \\
        --runs runs/claims --output runs/claims/claims.md

Beside it, in ``claims_tables.md``, it writes the tables of the trainings.

``claims.json`` has, for each claim, the paper's words and figures and our comparisons, of a row
with another row or with a number, in one figure, by seed. A difference has a 95 % interval over
seeds, for BLEU also over sentences, and where it lies gives the verdict: see :func:`verdict`.
"""

import argparse
import os
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, Maybe, read_shaped
from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.tables.layout import markdown_table
from fairseq_posenc.tools.tables.runs import read_runs
from fairseq_posenc.tools.tables.tables import by_length
from fairseq_posenc.tools.writing import replacing
from recipes.claims.claim_figures import FIGURES, figures_by_seed, seed_folders

CONFIRMED, NOT_CONFIRMED, OPPOSITE = "confirmed", "not confirmed", "opposite"
UNDECIDED, MISSING = "not decided here", "not run"
_COMPARISON = {
    "part": str, "figure": str, "row": str, "base": Maybe(str), "than": Maybe(float),
    "expect": str, "margin": float, "in_words": Maybe(str), "names": Maybe([str]),
}  # fmt: skip
_CLAIM = {"claim": str, "source": str, "paper": str, "ours": [_COMPARISON], "note": Maybe(str)}
_CLAIMS = {
    "introduction": [str],
    "parts": Each({"about": str, "picture": Maybe(str)}),
    "claims": [_CLAIM],
}


class ClaimResult(NamedTuple):
    """Two rows, or a row and a number, compared in one figure.

    Attributes:
        about: its entry in ``claims.json``.
        seeds: how many both have.
        row, base: means over these.
        low, high: 95 % interval of ``row`` less ``base``; None of fewer than two seeds.
        verdict: what that says.
    """

    about: Dict[str, Any]
    seeds: int
    row: Optional[float] = None
    base: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    verdict: str = MISSING

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return ((self.low or 0.0) + (self.high or 0.0)) / 2

    @property
    def half(self) -> float:
        """Half its width."""
        return ((self.high or 0.0) - (self.low or 0.0)) / 2

    @property
    def clarity(self) -> float:
        """How far the interval is from 0, in half widths."""
        return abs(self.middle) / max(self.half, 1e-9)

    def difference(self) -> str:
        """Return the interval as text."""
        if self.low is None:
            return "-"
        digits = 3 if abs(self.middle) + self.half < 1 else 1 if self.half > 1 else 2
        return f"{self.middle:+.{digits}f} ± {self.half:.{digits}f}"


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


def compare(runs: str, about: Dict[str, Any]) -> ClaimResult:
    """Measure a comparison, over the seeds that both sides have, paired.

    Args:
        runs: the folder of the recipe.
        about: an entry of ``claims.json``: ``base`` is a row of the same part, ``part/row`` of
            another, ``row@figure`` in another figure (not of BLEU); without it, ``than`` is a
            number.
    """
    part, row, figure = about["part"], about["row"], about["figure"]
    if figure.startswith("BLEU:"):
        return _compare_bleu(runs, about)
    ours = figures_by_seed(runs, part, row, figure)
    if about.get("base") is None:
        others = dict.fromkeys(ours, float(about["than"]))
    else:
        place, _, other_figure = about["base"].partition("@")
        place = place if "/" in place else f"{part}/{place}"
        others = figures_by_seed(runs, *place.split("/", 1), other_figure or figure)
    seeds = sorted(ours.keys() & others.keys())
    if len(seeds) < 2:
        return ClaimResult(about, len(seeds))
    low, high = t_interval([ours[seed] - others[seed] for seed in seeds])
    means = [statistics.mean(side[seed] for seed in seeds) for side in (ours, others)]
    judged = verdict(low, high, about["expect"], about["margin"])
    return ClaimResult(about, len(seeds), *means, low, high, judged)


def _compare_bleu(runs: str, about: Dict[str, Any]) -> ClaimResult:
    """Compare the sacreBLEU of two rows on a range of lengths, over seeds and sentences."""
    part, column = about["part"], about["figure"].partition(":")[2]
    names = (about["base"], about["row"])
    scores = {
        (name, seed): f"{folder}/score.json"
        for name in names
        for seed, folder in seed_folders(f"{runs}/{name if '/' in name else f'{part}/{name}'}")
        if os.path.exists(f"{folder}/score.json")
    }
    seeds = [seed for name, seed in scores if name == names[0] and (names[1], seed) in scores]
    if len(seeds) < 2:
        return ClaimResult(about, len(seeds))
    table = by_length(read_runs([f"{n}={scores[n, seed]}" for n in names for seed in seeds]))
    if column not in table.columns:
        raise UsageError(f"{part} has no lengths {column}, but {', '.join(table.columns)}")
    at = table.columns.index(column)
    base, row = (table.rows[name][at].mean for name in names)
    _, low, high, _ = table.differences[about["row"]][at]
    if low is None or high is None:
        return ClaimResult(about, 0)
    judged = verdict(low, high, about["expect"], about["margin"])
    return ClaimResult(about, len(seeds), row, base, low, high, judged)


def page(content: Dict[str, Any], runs: str) -> str:
    """Return the page: verdicts at a glance, the clearest results, every claim."""
    judged = [[compare(runs, one) for one in claim["ours"]] for claim in content["claims"]]
    glance, sections = [["", "claim", "source", "verdict"]], []
    for number, (claim, found) in enumerate(zip(content["claims"], judged), 1):
        verdicts = [one.verdict for one in found]
        counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        glance.append([str(number), claim["claim"], claim["source"], counted])
        run = [one for one in found if one.verdict != MISSING]
        sections += [_section(number, claim, run)] if run else []
    text = ["# Claims", "\n".join(content["introduction"]), markdown_table(glance, labels=4)]
    text += ["The clearest:", "\n".join(headlines(judged)), *_by_length(content, runs)]
    text.append("## Trainings")
    text.append("Scores by length and curves of validation loss: [tables](claims_tables.md).")
    for name, part in content["parts"].items():
        text.append(f"**{name}**: {part['about']}\n`bash recipes/claims.sh --parts {name}`")
        if part.get("picture"):
            text.append(f"![{name}]({part['picture']})")
    return "\n\n".join([*text, *sections]) + "\n"


def _by_length(content: Dict[str, Any], runs: str) -> List[str]:
    """Return, of the parts with a picture, by how much rows differ from sinusoids by length."""
    text = []
    for name in (name for name, part in content["parts"].items() if part.get("picture")):
        table = f"{runs}/{name}/table.md"
        lines = read_lines(table) if os.path.exists(table) else []
        text.append("\n".join(f"- {line}" for line in lines if ", against sinusoidal: " in line))
    about = "BLEU on ranges of lengths, the first within the trained ones, 95 % intervals of each:"
    return ["## Which encoding for which length", about, *text] if any(text) else []


def tables_page(content: Dict[str, Any], runs: str) -> str:
    """Return the tables of the trainings: scores by length and the like, validation loss."""
    text = ["# Tables of the trainings behind the [claims](claims.md)"]
    for name, part in content["parts"].items():
        text.append(f"## {name}")
        for file in ("table", "clauses", "agreement", "curves"):
            if os.path.exists(f"{runs}/{name}/{file}.md"):
                blocks = "\n".join(read_lines(f"{runs}/{name}/{file}.md")).split("\n\n")
                # with a picture all is shown, otherwise the title and the figures
                text += blocks[: None if file == "table" and part.get("picture") else 2]
        if text[-1] == f"## {name}":
            del text[-1]
    return "\n\n".join(text) + "\n"


def headlines(judged: Sequence[Sequence[ClaimResult]]) -> List[str]:
    """Return the three clearest results in words, one of a claim."""
    clear = [
        [one for one in found if one.about.get("in_words") and one.verdict in (CONFIRMED, OPPOSITE)]
        for found in judged
    ]
    best = [max(found, key=lambda one: one.clarity) for found in clear if found]
    return [
        f"- {one.about['in_words'].format(row=_number(one.row), base=_number(one.base))}: "
        f"{one.difference()} (n = {one.seeds}): {one.verdict}"
        for one in sorted(best, key=lambda one: -one.clarity)[:3]
    ]


def _section(number: int, claim: Dict[str, Any], found: Sequence[ClaimResult]) -> str:
    lines = [["ours", "n", "row", "compared with", "difference", "expected", "verdict"]]
    for one in found:
        about = one.about
        kind, _, name = about["figure"].partition(":")
        figure = FIGURES[kind][2].format(name.replace("_", " "))
        base, _, other = (about.get("base") or "").partition("@")
        base += f" ({other.partition(':')[2]})" if ":" in other else ""
        row, base = about.get("names") or (about["row"], base)
        margin = f" within {about['margin']:g}" if about["expect"] == "equal" else ""
        lines.append(
            [
                f"{about['part']}: {figure}",
                str(one.seeds),
                f"{row} {_number(one.row)}",
                f"{base} {_number(one.base)}".strip(),
                one.difference(),
                about["expect"] + margin,
                one.verdict,
            ]
        )
    text = [f"## {number}. {claim['claim']}", f"{claim['source']}: {claim['paper']}"]
    return "\n\n".join([*text, markdown_table(lines), *filter(None, [claim.get("note")])])


def _number(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def main() -> None:
    """Parse the command line and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", required=True, metavar="claims.json")
    parser.add_argument("--runs", required=True, metavar="FOLDER", help="of recipes/claims.sh")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    content = read_shaped(args.claims, _CLAIMS, "recipes/claims")
    text = page(content, args.runs)
    with replacing(f"{os.path.splitext(args.output)[0]}_tables.md") as stream:
        stream.write(tables_page(content, args.runs))
    with replacing(args.output) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
