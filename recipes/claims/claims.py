"""Write the page of claims: what the papers say, what our trainings say, and a verdict.

    python -m recipes.claims.claims --claims recipes/claims/claims.json \\
        --runs runs/claims --output runs/claims/claims.md

Beside it, it writes ``claims_each.md`` and ``claims_each_2.md``, with every comparison,
``claims_tables.md``, the tables of the trainings, and in ``gallery`` the pictures. ``--kept
recipes/claims/kept.json`` has what earlier runs have measured: a comparison that these runs lack,
or have with fewer seeds, is taken from there, and what they add is written there.

``claims.json`` has, for each claim, the paper's words and figures and our comparisons, of a row
with another row or with a number, in one figure, by seed. A difference has a 95 % interval over
seeds, for BLEU also over sentences, and where it lies gives the verdict: see :mod:`.verdicts`. The
first comparison of a claim is its main one, whose verdict is the claim's.
"""

import argparse
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, Maybe, read_shaped
from fairseq_posenc.tools.tables.layout import markdown_table
from fairseq_posenc.tools.writing import replacing
from recipes.claims.claim_figures import FIGURES
from recipes.claims.compared import BESIDE, Compared, compare, read_kept, write_kept
from recipes.claims.pictures import draw_all_rows, draw_differences
from recipes.claims.verdicts import EXPECTED, JUDGED

_COMPARISON = {
    "part": str, "figure": str, "row": str, "base": Maybe(str), "than": Maybe(float),
    "expect": str, "margin": float, "names": Maybe([str]),
}  # fmt: skip
_CLAIM = {"claim": str, "source": str, "paper": str, "ours": [_COMPARISON], "note": Maybe(str)}
_CLAIMS = {
    "introduction": [str],
    "columns": [str],
    "parts": Each({"about": str, "picture": Maybe(bool)}),
    "claims": [_CLAIM],
}
# the rows of the table of validation losses: name, seeds, updates
_SEEDS = r"^\| (\S+) +\| +(\d+) \| +\d+ \|"
_ANEW = "### Trained anew"
_ABOUT_ANEW = (
    "A later run. On another machine the same data, options and seed give another model, "
    "so that these rows are compared with one another, and not with those above."
)
Content = Dict[str, Any]
Found = List[List[Compared]]


def page(content: Content, found: Found, tables: str, pictures: Mapping[str, str] = {}) -> str:
    """Return the page: verdicts at a glance, differences by length, the trainings.

    Args:
        content: ``claims.json``.
        found: what was measured, for each claim, in its order.
        tables: the page of tables.
        pictures: of all ``rows``, and of parts, by name, relative to the page.
    """
    glance = [["", "claim", "main comparison", "difference", "n", "verdict"]]
    for number, (claim, compared) in enumerate(zip(content["claims"], found), 1):
        main = compared[0]
        what = f"{main.about['part']}: {' against '.join(main.names())}, {_figure(main)}"
        seeds = str(main.seeds or "-")
        glance.append([str(number), claim["claim"], what, main.difference(), seeds, main.verdict])
    text = ["# Claims", "\n".join([*content["introduction"], "", *_by_chance(found)])]
    text.append(markdown_table(glance, labels=6))
    half = _half(content)
    text.append(
        f"All comparisons, claim by claim: [1 to {half}](claims_each.md), "
        f"[{half + 1} to {len(found)}](claims_each_2.md)."
    )
    if "rows" in pictures:
        text.append(f"![all rows]({pictures['rows']})")
    text += _by_length(tables, pictures)
    text.append("## Trainings")
    text.append("Scores by length and curves of validation loss: [tables](claims_tables.md).")
    for name, part in content["parts"].items():
        text.append(f"**{name}**: {part['about']}\n`bash recipes/claims.sh --parts {name}`")
    return "\n\n".join(text) + "\n"


def _half(content: Content) -> int:
    """Return how many claims the first page of comparisons has: the half."""
    return (len(content["claims"]) + 1) // 2


def every_claim(content: Content, found: Found) -> List[str]:
    """Return the two pages of all claims, with all their comparisons."""
    sections = []
    for number, (claim, compared) in enumerate(zip(content["claims"], found), 1):
        command = _command(claim["ours"][0], list(content["parts"]))
        sections.append(_section(number, claim, compared, command))
    half, columns = _half(content), "\n".join(content["columns"])
    pages = ((1, sections[:half]), (half + 1, sections[half:]))
    return [
        "\n\n".join([f"# Claims {n} to {n + len(part) - 1}, one by one", columns, *part]) + "\n"
        for n, part in pages
    ]


def _command(about: Content, parts: Sequence[str]) -> str:
    """Return what measures a comparison alone: a part may need data or models of ``length``."""
    place, _, base = (about.get("base") or "").partition("@")[0].rpartition("/")
    needed = {about["part"], *filter(None, [place])}
    if needed & {"plain", "deep", "switch", "switch_long"}:
        needed.add("length")
    rows = dict.fromkeys(["sinusoidal", *about["row"].split(" less "), *base.split(" less ")])
    whole = {"deep", "speed", "bert"} & needed
    if needed - whole:
        chosen = ",".join(part for part in parts if part in needed - whole)
        # these have no choice of rows; what needs `deep` needs the data of `length` alone
        labels = "sinusoidal" if whole else ",".join(filter(None, rows))
        commands = [f"`bash recipes/claims.sh --parts {chosen} --rows {labels}`"]
    else:
        commands = []
    return ", then ".join([*commands, *(f"`bash recipes/claims.sh --parts {p}`" for p in whole)])


def _by_length(tables: str, pictures: Mapping[str, str]) -> List[str]:
    """Return by how much rows differ from sinusoids in each part, in words and pictures."""
    text = []
    for name, section in sections(tables).items():
        for title, run in zip((f"`{name}`", f"`{name}`, trained anew"), section.split(_ANEW)):
            lines = re.findall(r"^.*, against sinusoidal: .*$", run, re.M)
            seeds = re.findall(r"^Trainings \(seeds\): (.*)\.$", run, re.M)
            if lines:
                text += [f"In {title} (n: {'; '.join(seeds)}):"]
                text += ["\n".join(f"- {line}" for line in lines)]
        text += [f"![{name}]({pictures[name]})"] if name in pictures else []
    about = "BLEU on ranges of lengths, the first within the trained ones, 95 % intervals of each. "
    about += "Each row is compared with the sinusoids of its own run."
    return ["## Which encoding for which length", about, *text] if text else []


def _by_chance(found: Found) -> List[str]:
    """Return how many rows would be clear by chance alone."""
    rows = [one for compared in found for one in compared if one.verdict in JUDGED]
    tried = [one for one in rows if one.about["expect"] in ("more", "less")]
    return [
        f"**Many comparisons.** {len(rows)} comparisons, of {len(found)} claims, have a verdict. "
        f"{len(tried)} of these comparisons expect a difference. If no encoding differed",
        f"from another, about {0.05 * len(tried):.1f} of their intervals would still leave out 0, "
        "half of these on the paper's side. Comparisons share trainings, so that such errors come "
        "together.",
    ]


def _section(number: int, claim: Dict[str, Any], compared: Sequence[Compared], command: str) -> str:
    shown = [name for name in BESIDE if any(one.beside.get(name) for one in compared)]
    titles = ["part: figure", "n", "row", "compared with", *map(BESIDE.get, shown)]
    lines = [[*map(str, titles), "difference", "expected", "verdict"]]
    for one in (one for one in compared if one.seeds):
        row, base = one.names()
        base = "" if one.about.get("base") is None else base
        lines.append(
            [
                f"{one.about['part']}: {_figure(one)}",
                str(one.seeds),
                f"{row} {_number(one.row)}".strip(),
                f"{base} {_number(one.base)}".strip(),
                *(_both(one.beside.get(name, ())) for name in shown),
                one.difference(),
                _expected(one),
                one.verdict,
            ]
        )
    text = [f"## {number}. {claim['claim']}", f"{claim['source']}: {claim['paper']}"]
    to_run = [
        f"- {one.about['part']}: {' against '.join(one.names())}, {_figure(one)}: {_expected(one)}"
        for one in compared
        if not one.seeds
    ]
    text += [markdown_table(lines)] if len(lines) > 1 else []
    text += ["To be run, with what is expected:", "\n".join(to_run)] if to_run else []
    text += [f"The first comparison alone: {command}."]
    return "\n\n".join([*text, *filter(None, [claim.get("note")])])


def _expected(one: Compared) -> str:
    return EXPECTED[one.about["expect"]].format(f"{one.about['margin']:g}")


def _both(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.3g}" for value in values) or "-"


def _figure(one: Compared) -> str:
    kind, _, name = one.about["figure"].partition(":")
    words = name.replace("_", " ")
    if kind == "share":
        words = "ranks by frequency: {}, positions: {}".format(*name.split())
    return FIGURES[kind][2].format(words).replace("source words all", "all sentences").strip()


def _number(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def tables_page(content: Content, runs: str, before: str) -> str:
    """Return the tables of the trainings: scores by length and the like, validation loss.

    Args:
        runs: the folder of the recipe.
        before: the page as it was, whose sections stay where a part was not run.
    """
    kept = sections(before)
    text = ["# Tables of the trainings behind the [claims](claims.md)"]
    for name, part in content["parts"].items():
        blocks: List[str] = []
        short: List[str] = []  # without the groups of sentences
        for file in ("table", "clauses", "agreement", "curves"):
            if os.path.exists(f"{runs}/{name}/{file}.md"):
                found = "\n".join(read_lines(f"{runs}/{name}/{file}.md")).split("\n\n")
                # with a picture all is shown, otherwise the title and the figures
                shown = found[: None if file == "table" and part.get("picture") else 2]
                blocks += shown
                short += shown if file in ("table", "curves") else []
        section = _both_runs(kept.get(name, "").strip(), *map("\n\n".join, (blocks, short)))
        text += [f"## {name}", section] if section else []
    return "\n\n".join(text) + "\n"


def _both_runs(earlier: str, later: str, short: str) -> str:
    """Return the tables of a part of two runs, which are never mixed.

    A later run that has every row, with as many seeds, stands alone; otherwise it stands below,
    ``short``.
    """
    first = earlier.partition(_ANEW)[0].strip()
    had, has = (dict(re.findall(_SEEDS, run, re.M)) for run in (first, later))
    if not later:
        return earlier
    if all(int(has.get(row, 0)) >= int(seeds) for row, seeds in had.items()):
        return later
    return "\n\n".join([first, _ANEW, _ABOUT_ANEW, short])


def sections(tables: str) -> Dict[str, str]:
    """Return what the page of tables has of each part."""
    return dict(re.findall(r"^## (\w+)\n\n(.*?)(?=\n## |\Z)", tables, re.M | re.S))


def main() -> None:
    """Parse the command line and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", required=True, metavar="claims.json")
    parser.add_argument("--runs", required=True, metavar="FOLDER", help="of recipes/claims.sh")
    parser.add_argument("--kept", metavar="FILE", help="what earlier runs have measured")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    content = read_shaped(args.claims, _CLAIMS, "recipes/claims")
    if not os.path.isdir(args.runs):
        raise UsageError(f"{args.runs} is no folder: --runs takes the --run-dir of claims.sh")
    kept = read_kept(args.kept) if args.kept else []
    found = [[compare(args.runs, one, kept) for one in c["ours"]] for c in content["claims"]]
    folder, name = os.path.split(os.path.splitext(args.output)[0])
    tables_file = os.path.join(folder, f"{name}_tables.md")
    before = "\n".join(read_lines(tables_file)) if os.path.exists(tables_file) else ""
    tables = tables_page(content, args.runs, before)
    os.makedirs(os.path.join(folder, "gallery"), exist_ok=True)
    pictures = {}
    drawn_parts = [part for part, about in content["parts"].items() if about.get("picture")]
    for part in ["rows", *drawn_parts]:
        picture = f"gallery/{name}_{part}.png"
        place = os.path.join(folder, picture)
        drawn = (
            draw_all_rows(found, place)
            if part == "rows"
            else draw_differences(sections(tables).get(part, ""), place)
        )
        pictures.update({part: picture} if drawn else {})
    text = page(content, found, tables, pictures)
    if args.kept:
        write_kept(args.kept, [one for compared in found for one in compared])
    with replacing(tables_file) as stream:
        stream.write(tables)
    for ending, each in zip(("each", "each_2"), every_claim(content, found)):
        with replacing(os.path.join(folder, f"{name}_{ending}.md")) as stream:
            stream.write(each)
    with replacing(args.output) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
