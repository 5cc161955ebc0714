"""The two pages of claims in Markdown: what came out, and an appendix of every figure."""

import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from fairseq_posenc.tools.text_tables import markdown_table
from recipes.claims.claim_figures import title
from recipes.claims.compared import Compared, main_comparison, sides
from recipes.claims.rows import APART, BASE, Row
from recipes.claims.verdicts import (
    AGAINST,
    AS_EXPECTED,
    AS_SAYS,
    EXPECTED,
    JUDGED,
    MISSING,
    NO_GAIN,
    UNDECIDED,
)

Content = Dict[str, Any]
ByClaim = Sequence[Sequence[Compared]]

_PAPERS, _OTHER_PAPERS = ("SHAPE", "CAPE", "Chen et al."), "other papers, and ours"
_PAGE = Path(__file__).with_name("page.md")


def page(
    content: Content, by_claim: ByClaim, rows: Sequence[Row], pictures: Mapping[str, str]
) -> str:
    """Return the page: what came out, how to read it, differences by length, the trainings.

    Args:
        content: ``claims.json``.
        by_claim: the comparisons of each claim, in its order.
        rows: of all parts.
        pictures: of all ``rows``, and of parts, by name, relative to the page.
    """
    trainings = [f"**{name}**: {part['about']}" for name, part in content["parts"].items()]
    return _PAGE.read_text(encoding="utf-8").format(
        apart=APART,
        result=result(content, by_claim),
        glance=_glance(content, by_claim),
        to_run=_to_run(content, by_claim),
        by_chance=_by_chance(by_claim),
        rows=f"![all rows]({pictures['rows']})" if "rows" in pictures else "",
        by_length=_by_length(content, rows, pictures),
        trainings="\n\n".join(trainings),
    )


def result(content: Content, by_claim: ByClaim) -> str:
    """Return how many claims held, by their main comparisons, of each paper and of all."""
    by_paper: Dict[str, List[str]] = {name: [] for name in (*_PAPERS, _OTHER_PAPERS)}
    for claim, comparisons in zip(content["claims"], by_claim):
        name = claim["source"].partition(",")[0]
        by_paper[name if name in _PAPERS else _OTHER_PAPERS].append(
            main_comparison(comparisons).verdict
        )
    every = [verdict for verdicts in by_paper.values() for verdict in verdicts]
    lines = [["", "claims", "held", "did not hold", "cannot tell", "no verdict", "to be run"]]
    for name, verdicts in [*by_paper.items(), ("all", every)]:
        counts = [
            sum(map(verdicts.count, names))
            for names in ([AS_SAYS, AS_EXPECTED], [AGAINST, NO_GAIN], [UNDECIDED], [MISSING])
        ]
        without_verdict = len(verdicts) - sum(counts)
        figures = [len(verdicts), *counts[:3], without_verdict, counts[3]]
        lines.append([name, *map(str, figures)])
    return markdown_table(lines)


def _glance(content: Content, by_claim: ByClaim) -> str:
    lines = [["", "claim", "main comparison", "difference", "verdict"]]
    for number, (claim, comparisons) in enumerate(zip(content["claims"], by_claim), 1):
        main = main_comparison(comparisons)
        if not main.seeds:
            continue
        judged = f" ({claim['judged']})" if claim.get("judged") else ""
        judged += "" if main is comparisons[0] else " (the main comparison is to be run)"
        words, difference = _in_words(content, main), f"{main.difference()} (n = {main.seeds})"
        lines.append([str(number), claim["claim"], words, difference, _verdict(main) + judged])
    return markdown_table(lines, labels=5)


def _in_words(content: Content, compared: Compared) -> str:
    """Return a comparison in words, such as *SHAPE less sinusoids, BLEU, 6,000 updates*."""
    row, base = (content["names"].get(name, name) for name in compared.names())
    short = content["parts"][compared.spec["part"]]["short"]
    return f"{row} less {base}, {title(compared.spec['figure'])}, {short}"


def _verdict(compared: Compared) -> str:
    if compared.verdict == UNDECIDED and compared.doubt:
        return f"{UNDECIDED} ({compared.doubt})"
    return compared.verdict


def _to_run(content: Content, by_claim: ByClaim) -> str:
    """Return main comparisons that are to be run, by the command that measures them."""
    by_command: Dict[str, List[str]] = {}
    for number, comparisons in enumerate(by_claim, 1):
        if not comparisons[0].seeds:
            commands = command(comparisons[0].spec, list(content["parts"]))
            words = f"**{number}** ({_expected(comparisons[0])})"
            by_command.setdefault(commands, []).append(words)
    heading = "These commands run the missing main comparisons, whose expectation is in brackets:"
    lines = [f"- {commands}: {', '.join(claims)}" for commands, claims in by_command.items()]
    return "\n\n".join([heading, "\n".join(lines)]) if lines else "No main comparison is to be run."


def command(spec: Content, parts: Sequence[str]) -> str:
    """Return what measures a comparison alone: a part may need data or models of ``length``."""
    both = [side for side in sides(spec) if side]
    required = {side.part for side in both}
    if required & {"plain", "deep", "deep_400", "switch", "switch_long"}:
        required.add("length")
    rows = dict.fromkeys([BASE, *(name for side in both for name in side.row.split(" less "))])
    without_rows = {"deep", "deep_400", "speed", "bert"} & required
    commands = []
    if required - without_rows:
        chosen = ",".join(part for part in parts if part in required - without_rows)
        # these have no choice of rows; what needs `deep` needs the data of `length` alone
        labels = BASE if without_rows else ",".join(rows)
        commands = [f"`bash recipes/claims.sh --parts {chosen} --rows {labels}`"]
    return ", then ".join(
        [*commands, *(f"`bash recipes/claims.sh --parts {p}`" for p in without_rows)]
    )


def _by_chance(by_claim: ByClaim) -> str:
    """Return how many comparisons would be clear by chance alone."""
    every = (compared for comparisons in by_claim for compared in comparisons)
    judged = [compared for compared in every if compared.verdict in JUDGED]
    tried = [compared for compared in judged if compared.spec["expect"] in ("more", "less")]
    return (
        f"**Many comparisons.** {len(tried)} of the {len(judged)} comparisons with a verdict "
        "expect a difference. If no encoding differed from another, about "
        f"{0.05 * len(tried):.1f} of these intervals would still leave out 0."
    )


def _runs(rows: Sequence[Row], part: str) -> Iterator[Tuple[str, Sequence[Row]]]:
    """Yield the rows of each run of a part, behind what to add to the part's name."""
    for run, anew in ((1, ""), (2, ", a second run")):
        of_run = [row for row in rows if (row.part, row.run) == (part, run)]
        if of_run:
            yield anew, of_run


def _ranges(row: Row) -> List[str]:
    return [name for name in row.by_length if name != "all"]


def _by_length(content: Content, rows: Sequence[Row], pictures: Mapping[str, str]) -> str:
    """Return by how much rows differ from sinusoids, by range of lengths, a table a run."""
    text: List[str] = []
    for part, description in content["parts"].items():
        for anew, of_run in _runs(rows, part) if description.get("table") else ():
            lines = [["row", "n", *_ranges(of_run[-1])]]
            for row in of_run:
                scores = [row.by_length[name] for name in _ranges(row)]
                if any("less_base" in score for score in scores):
                    cells = [_signed(score["less_base"]) for score in scores]
                    lines.append([row.row, str(row.seeds), *cells])
            if len(lines) > 1:
                text += [f"`{part}`{anew}:", _plain(_columns(lines))]
        if part in pictures:
            text += [f"![{part}]({pictures[part]})"]
    return "\n\n".join(text)


def _signed(difference: Sequence[float]) -> str:
    mean, low, high = difference
    return f"{mean:+.1f} ± {(high - low) / 2:.1f}"


def appendix(content: Content, by_claim: ByClaim, rows: Sequence[Row]) -> str:
    """Return the page of every comparison, claim by claim, and of what every training reached."""
    text: List[Optional[str]] = [
        "# Claims: every figure",
        "The [claims](claims.md#how-to-read-it) say how to read this. A line has the "
        "[part](claims.md#trainings), the figure (with words of the source), what is expected, "
        "both rows, the difference and the verdict. *Bits* are those of both rows, per token.",
    ]
    for number, (claim, comparisons) in enumerate(zip(content["claims"], by_claim), 1):
        text += [f"## {number}. {claim['claim']}", f"{claim['source']}: {claim['paper']}"]
        lines = _grouped([compared for compared in comparisons if compared.seeds])
        text += ["\n".join(f"- {line}" for line in lines)]
        text += [claim.get("note")]
    return "\n\n".join(filter(None, [*text, *_trainings(content, rows)])) + "\n"


def _grouped(comparisons: Sequence[Compared]) -> List[str]:
    """Return a line for each part, figure and expectation, with all that is compared in it."""
    groups: Dict[str, List[str]] = {}
    for compared in comparisons:
        heading = f"{compared.spec['part']}, {_briefly(compared)}"
        if compared.spec["expect"] != "no verdict":
            heading += f" ({_expected(compared)})"
        groups.setdefault(heading, []).append(_line(compared))
    return [f"{heading}: {'; '.join(lines)}." for heading, lines in groups.items()]


def _line(compared: Compared) -> str:
    row, base = compared.names()
    base = base if compared.spec.get("base") is None else f"{base} {_number(compared.base)}"
    beside = [f"n={compared.seeds}"]
    if compared.bits:
        beside.append(f"bits {'/'.join(f'{value:.3g}' for value in compared.bits)}")
    said = "" if compared.spec["expect"] == "no verdict" else f", {_verdict(compared)}"
    difference = f"**{compared.difference()}** ({', '.join(beside)})"
    return f"{row} {_number(compared.row)} less {base}: {difference}{said}"


def _briefly(compared: Compared) -> str:
    return re.sub(r" at (\S+) words", r" \1", title(compared.spec["figure"]))


def _expected(compared: Compared) -> str:
    return EXPECTED[compared.spec["expect"]].format(f"{compared.spec['margin']:g}")


def _number(value: Any) -> str:
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def _trainings(content: Content, rows: Sequence[Row]) -> List[str]:
    """Return what each row reached: validation loss, BLEU, length of outputs."""
    text = [
        "## What the trainings reached",
        "Validation loss in bits per token with its 95 % interval over n seeds, and how far it "
        "fell in the last quarter of the updates; BLEU by range of lengths, and the length of "
        "outputs in % of the references'.",
    ]
    tables = []
    for part in content["parts"]:
        for anew, of_run in _runs(rows, part):
            ranges = _ranges(of_run[0])
            lines = [["row", "n", "loss", "fell", *ranges, *(["length"] if ranges else [])]]
            lines += [_reached(row, ranges) for row in of_run]
            tables += [f"{part}{anew}, {of_run[0].updates:,} updates\n{_columns(lines)}"]
    return [*text, _plain("\n\n".join(tables))]


def _plain(text: str) -> str:
    return f"```text\n{text}\n```"


def _columns(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _reached(row: Row, ranges: Sequence[str]) -> List[str]:
    fell = f"{row.fall[0]:.3f}" if row.fall else "-"
    figures = [row.by_length[name] for name in ranges if name in row.by_length]
    bleu = [f"{scores['bleu'][0]:.1f}" for scores in figures]
    ratios = [scores["ratio"] for scores in figures if scores.get("ratio") is not None]
    length = ["/".join(f"{value:.0f}" for value in ratios) or "-"] if ranges else []
    return [row.row, str(row.seeds), f"{row.loss[0]:.3f} ± {row.loss[1]:.3f}", fell, *bleu, *length]
