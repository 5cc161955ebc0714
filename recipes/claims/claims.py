"""Write the pages of claims: what the papers say, what our trainings say, and a verdict.

    python -m recipes.claims.claims --claims recipes/claims/claims.json \\
        --runs runs/claims --output runs/claims/claims.md

Beside it, it writes ``claims_appendix.md``, with every comparison and what each training reached,
and in ``gallery`` the pictures. ``--kept recipes/claims/kept.json`` has what earlier runs have
measured: a comparison that these runs lack, or have with fewer seeds, is taken from there, and what
they add is written there.

``claims.json`` has, for each claim, the paper's words and figures and our comparisons, of a row
with another row or with a number, in one figure, by seed. A difference has a 95 % interval over
seeds, for BLEU also over sentences, and where it lies gives the verdict: see :mod:`.verdicts`, and
:mod:`.compared` on convergence. The first comparison of a claim is its main one, whose verdict is
the claim's. ``registered`` has the commit and the date at which it became that; it does not move
once any comparison of the claim has a figure.
"""

import os
from typing import Dict

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe, load_json
from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.writing import replacing
from recipes.claims import rows as rows_of
from recipes.claims.compared import compare, read_kept, write_kept
from recipes.claims.pages import ByClaim, Content, appendix, page
from recipes.claims.pictures import draw_all_rows, draw_differences

_COMPARISON = {
    "part": str, "figure": str, "row": str, "base": Maybe(str), "than": Maybe(float),
    "expect": str, "margin": float, "names": Maybe([str]),
}  # fmt: skip
_CLAIM = {
    "claim": str, "source": str, "paper": str, "ours": [_COMPARISON], "note": Maybe(str),
    # what the verdict is by, where that is not the paper's own figure
    "judged": Maybe(str),
    # what so many updates give is what is asked
    "budget": Maybe(bool),
    # whether the paper measured this, rather than something like it, or nobody did (true)
    "by_paper": Maybe(bool),
    "registered": {"commit": str, "date": str, "main": [str]},
}  # fmt: skip
_PART = {"about": str, "short": str, "picture": Maybe(bool), "table": Maybe(bool)}
_CLAIMS = {"parts": Each(_PART), "names": Each(str), "claims": [_CLAIM]}


def read_claims(path: str) -> Content:
    """Return ``claims.json``."""
    content: Content = load_json(path, _CLAIMS, "recipes/claims")
    for claim in content["claims"]:
        for comparison in claim["ours"]:
            comparison["by_paper"] = claim.get("by_paper", True)
            comparison["budget"] = claim.get("budget", False)
    return content


def draw(content: Content, by_claim: ByClaim, rows: rows_of.Rows, output: str) -> Dict[str, str]:
    """Draw all comparisons, and the rows of parts by length; return the pictures by name."""
    folder, name = os.path.split(os.path.splitext(output)[0])
    os.makedirs(os.path.join(folder, "gallery"), exist_ok=True)
    pictures = {"rows": f"gallery/{name}_rows.png"}
    drawn = {"rows": draw_all_rows(by_claim, os.path.join(folder, pictures["rows"]))}
    for part, description in content["parts"].items():
        if description.get("picture"):
            pictures[part] = f"gallery/{name}_{part}.png"
            of_part = [row for row in rows if row.part == part]
            drawn[part] = draw_differences(of_part, os.path.join(folder, pictures[part]))
    return {part: picture for part, picture in pictures.items() if drawn[part]}


def main() -> None:
    """Parse the command line and write the pages."""
    parser = plain_parser(__doc__)
    parser.add_argument("--claims", required=True, metavar="claims.json")
    parser.add_argument(
        "--runs", metavar="FOLDER", help="of recipes/claims.sh; without it: what is kept alone"
    )
    parser.add_argument("--kept", metavar="FILE", help="what earlier runs have measured")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    content = read_claims(args.claims)
    if args.runs and not os.path.isdir(args.runs):
        raise UsageError(f"{args.runs} is no folder: --runs takes the --run-dir of claims.sh")
    earlier, earlier_rows = read_kept(args.kept) if args.kept else ([], [])
    runs = args.runs or os.devnull
    measured = {part: rows_of.measure(runs, part) for part in content["parts"]}
    rows = [
        row
        for part, of_run in measured.items()
        for row in rows_of.merge([one for one in earlier_rows if one.part == part], of_run)
    ]
    of_this_run = [row for of_run in measured.values() for row in of_run]
    by_claim = [
        [compare(runs, spec, earlier, of_this_run) for spec in claim["ours"]]
        for claim in content["claims"]
    ]
    pictures = draw(content, by_claim, rows, args.output)
    if args.kept:
        every = [compared for comparisons in by_claim for compared in comparisons]
        write_kept(args.kept, every, rows)
    text = page(content, by_claim, rows, pictures)
    with replacing(f"{os.path.splitext(args.output)[0]}_appendix.md") as stream:
        stream.write(appendix(content, by_claim, rows))
    with replacing(args.output) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
