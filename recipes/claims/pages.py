"""The two pages of claims in Markdown: what came out, and an appendix of every figure."""

import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

from fairseq_posenc.tools.text_tables import markdown_table
from recipes.claims.claim_figures import title
from recipes.claims.compared import BESIDE, Compared, main_comparison
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
Found = Sequence[Sequence[Compared]]

_PAPERS, _OTHER_PAPERS = ("SHAPE", "CAPE", "Chen et al."), "other papers, and ours"
_PAGE = Path(__file__).with_name("page.md")


def page(content: Content, found: Found, rows: Sequence[Row], pictures: Mapping[str, str]) -> str:
    """Return the page: what came out, how to read it, differences by length, the trainings.

    Args:
        content: ``claims.json``.
        found: what was measured, for each claim, in its order.
        rows: of all parts.
        pictures: of all ``rows``, and of parts, by name, relative to the page.
    """
    trainings = [f"**{name}**: {part['about']}" for name, part in content["parts"].items()]
    return _PAGE.read_text(encoding="utf-8").format(
        apart=APART,
        result=result(content, found),
        glance=_glance(content, found),
        to_run=_to_run(content, found),
        by_chance=_by_chance(found),
        rows=f"![all rows]({pictures['rows']})" if "rows" in pictures else "",
        by_length=_by_length(content, rows, pictures),
        trainings="\n\n".join(trainings),
    )


def result(content: Content, found: Found) -> str:
    """Return how many claims held, by their main comparisons, of each paper and of all."""
    by_paper: Dict[str, List[str]] = {name: [] for name in (*_PAPERS, _OTHER_PAPERS)}
    for claim, compared in zip(content["claims"], found):
        name = claim["source"].partition(",")[0]
        by_paper[name if name in _PAPERS else _OTHER_PAPERS].append(
            main_comparison(compared).verdict
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


def _glance(content: Content, found: Found) -> str:
    lines = [["", "claim", "main comparison", "difference", "verdict"]]
    for number, (claim, compared) in enumerate(zip(content["claims"], found), 1):
        main = main_comparison(compared)
        if not main.seeds:
            continue
        judged = f" ({claim['judged']})" if claim.get("judged") else ""
        judged += "" if main is compared[0] else " (the main comparison is to be run)"
        words, difference = _in_words(content, main), f"{main.difference()} (n = {main.seeds})"
        lines.append([str(number), claim["claim"], words, difference, _verdict(main) + judged])
    return markdown_table(lines, labels=5)


def _in_words(content: Content, one: Compared) -> str:
    """Return a comparison in words, such as *SHAPE less sinusoids, BLEU, 6,000 updates*."""
    row, base = (content["names"].get(name, name) for name in one.names())
    return f"{row} less {base}, {title(one.about['figure'])}, {_short(content, one)}"


def _short(content: Content, one: Compared) -> str:
    return str(content["parts"][one.about["part"]]["short"])


def _verdict(one: Compared) -> str:
    if one.verdict == UNDECIDED and (one.apart or one.still_falling):
        return f"{UNDECIDED} (losses {'differ' if one.apart else 'still fall'})"
    return one.verdict


def _to_run(content: Content, found: Found) -> str:
    """Return main comparisons that are to be run, by the command that measures them."""
    by_command: Dict[str, List[str]] = {}
    for number, (claim, compared) in enumerate(zip(content["claims"], found), 1):
        if not compared[0].seeds:
            how = command(compared[0].about, list(content["parts"]))
            what = f"**{number}** {claim['claim']} ({_expected(compared[0])})"
            by_command.setdefault(how, []).append(what)
    about = "Main comparisons that are to be run, with what is expected:"
    lines = [f"- {how}: {'; '.join(claims)}" for how, claims in by_command.items()]
    return "\n\n".join([about, "\n".join(lines)]) if lines else "No main comparison is to be run."


def command(about: Content, parts: Sequence[str]) -> str:
    """Return what measures a comparison alone: a part may need data or models of ``length``."""
    place, _, base = (about.get("base") or "").partition("@")[0].rpartition("/")
    needed = {about["part"], *filter(None, [place])}
    if needed & {"plain", "deep", "deep_400", "switch", "switch_long"}:
        needed.add("length")
    rows = dict.fromkeys([BASE, *about["row"].split(" less "), *base.split(" less ")])
    whole = {"deep", "deep_400", "speed", "bert"} & needed
    commands = []
    if needed - whole:
        chosen = ",".join(part for part in parts if part in needed - whole)
        # these have no choice of rows; what needs `deep` needs the data of `length` alone
        labels = BASE if whole else ",".join(filter(None, rows))
        commands = [f"`bash recipes/claims.sh --parts {chosen} --rows {labels}`"]
    return ", then ".join([*commands, *(f"`bash recipes/claims.sh --parts {p}`" for p in whole)])


def _by_chance(found: Found) -> str:
    """Return how many comparisons would be clear by chance alone."""
    judged = [one for compared in found for one in compared if one.verdict in JUDGED]
    tried = [one for one in judged if one.about["expect"] in ("more", "less")]
    return (
        f"**Many comparisons.** {len(tried)} of the {len(judged)} comparisons with a verdict "
        "expect a difference. If no encoding differed from another, about "
        f"{0.05 * len(tried):.1f} of these intervals would still leave out 0."
    )


def _by_length(content: Content, rows: Sequence[Row], pictures: Mapping[str, str]) -> str:
    """Return by how much rows differ from sinusoids, by range of lengths, a table a run."""
    text: List[str] = []
    for part, about in content["parts"].items():
        for run in (1, 2) if about.get("table") else ():
            of_run = [one for one in rows if (one.part, one.run) == (part, run)]
            lines = [_difference_cells(one) for one in of_run if _differs(one)]
            if lines:
                ranges = [name for name in of_run[-1].by_length if name != "all"]
                anew = ", trained anew" if run == 2 else ""
                text += [f"`{part}`{anew}:", _plain(_columns([["row", "n", *ranges], *lines]))]
        text += [f"![{part}]({pictures[part]})"] if part in pictures else []
    return "\n\n".join(text)


def _differs(one: Row) -> bool:
    return any(each.get("less_base") for each in one.by_length.values())


def _difference_cells(one: Row) -> List[str]:
    cells = [difference(one, name) for name in one.by_length if name != "all"]
    return [one.row, str(one.seeds), *cells]


def difference(one: Row, name: str) -> str:
    """Return BLEU less that of sinusoids in a range of lengths, as *+1.0 ± 0.5*."""
    mean, low, high = one.by_length[name]["less_base"]
    return f"{mean:+.1f} ± {(high - low) / 2:.1f}"


def appendix(content: Content, found: Found, rows: Sequence[Row]) -> str:
    """Return the page of every comparison, claim by claim, and of what every training reached."""
    text = [
        "# Claims: every figure",
        "Written with the [claims](claims.md), which say how to read it. A line has the "
        "[part](claims.md#trainings), the figure (with words of the source), what is expected of "
        "the difference, both rows, the difference and the verdict. Beside BLEU may stand, of both "
        "rows: BLEU without its brevity penalty, length of outputs in %, bits per token.",
    ]
    for number, (claim, compared) in enumerate(zip(content["claims"], found), 1):
        text += [f"## {number}. {claim['claim']}", f"{claim['source']}: {claim['paper']}"]
        lines = _grouped([one for one in compared if one.seeds], _line)
        text += ["\n".join(f"- {line}" for line in lines)]
        missing = _grouped([one for one in compared[1:] if not one.seeds], _planned)
        to_run = f"Also to be run: {' '.join(missing)}" if missing else None
        text += [" ".join(filter(None, [claim.get("note"), to_run]))]
    return "\n\n".join(filter(None, [*text, *_trainings(content, rows)])) + "\n"


def _grouped(compared: Sequence[Compared], words: Callable[[Compared], str]) -> List[str]:
    """Return a line for each part, figure and expectation, with all that is compared in it."""
    groups: Dict[str, List[str]] = {}
    for one in compared:
        what = f"{one.about['part']}, {_briefly(one)}"
        if one.about["expect"] != "no verdict":
            what += f" ({_expected(one)})"
        groups.setdefault(what, []).append(words(one))
    return [f"{what}: {'; '.join(lines)}." for what, lines in groups.items()]


def _line(one: Compared) -> str:
    row, base = one.names()
    base = base if one.about.get("base") is None else f"{base} {_number(one.base)}"
    beside = [f"n={one.seeds}"]
    for name in BESIDE:
        if one.beside.get(name):
            beside.append(
                f"{BESIDE[name]} {'/'.join(f'{value:.3g}' for value in one.beside[name])}"
            )
    said = "" if one.about["expect"] == "no verdict" else f", {_verdict(one)}"
    difference = f"**{one.difference()}** ({', '.join(beside)})"
    return f"{row} {_number(one.row)} less {base}: {difference}{said}"


def _briefly(one: Compared) -> str:
    return re.sub(r" at (\S+) words", r" \1", title(one.about["figure"]))


def _planned(one: Compared) -> str:
    return " less ".join(one.names())


def _expected(one: Compared) -> str:
    return EXPECTED[one.about["expect"]].format(f"{one.about['margin']:g}")


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
        for run in (1, 2):
            of_run = [one for one in rows if (one.part, one.run) == (part, run)]
            if not of_run:
                continue
            ranges = [name for name in of_run[0].by_length if name != "all"]
            lines = [["row", "n", "loss", "fell", *ranges, *["length"] * bool(ranges)]]
            lines += [_reached(one, ranges) for one in of_run]
            anew = ", trained anew" if run == 2 else ""
            tables += [f"{part}{anew}, {of_run[0].updates:,} updates\n{_columns(lines)}"]
    return [*text, _plain("\n\n".join(tables))]


def _plain(text: str) -> str:
    return f"```text\n{text}\n```"


def _columns(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _reached(one: Row, ranges: Sequence[str]) -> List[str]:
    fell = f"{one.fall[0]:.3f}" if one.fall else "-"
    figures = [one.by_length[name] for name in ranges if name in one.by_length]
    bleu = [f"{each['bleu'][0]:.1f}" for each in figures]
    ratios = [each["ratio"] for each in figures if each.get("ratio") is not None]
    length = ["/".join(f"{value:.0f}" for value in ratios) or "-"] if ranges else []
    return [one.row, str(one.seeds), f"{one.loss[0]:.3f} ± {one.loss[1]:.3f}", fell, *bleu, *length]
