"""Print a table of results as Markdown; write it as Markdown, CSV or LaTeX.

One row per encoding. Of posenc score --output, one column per bin of length; of posenc predict, one
per task and subset:

    posenc table --by-length shape=runs/shape/score.json sinusoidal=runs/sin/score.json
    posenc table --by-length runs/quickstart/*/seed*/score.json --output table.md
    posenc table --results runs/glue/*/*/lr*/seed*/score.json --output table.md table.tex

Without NAME=, a run is named by its folder. Several results of one name are seeds, and give their
mean. Intervals are of the paired bootstrap over sentences; of several seeds, Student's t over seeds
with the variance by sentences added, where differences are of pairs of equal seeds (posenc score
--note seed=1, as recipes do; without it, in order). A score.json of the WMT and IWSLT recipes has
several test sets; --test names one:

    posenc table --by-length runs/iwslt14/de-en/*/seed*/score.json --test iwslt14

A table of a paper with ours in it, from the folder of a recipe: of recipes/shape, recipes/cape and
recipes/rel_scalar/translate.sh (means over seeds), of recipes/glue and recipes/xtreme (medians):

    posenc table --paper shape-2 --runs runs/shape --output table.md table.csv
    posenc table --paper chen2021-4 --runs runs/glue
"""

import os

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.output_options import FILE, add_output
from fairseq_posenc.tools.tables import papers
from fairseq_posenc.tools.tables.cells import read_cells
from fairseq_posenc.tools.tables.comparison import compare
from fairseq_posenc.tools.tables.latex import best_rows, latex
from fairseq_posenc.tools.tables.tasks import table_of
from fairseq_posenc.tools.writing import replacing

FORMATS = (".md", ".csv", ".tex", ".txt", "")  # all but .csv and .tex are Markdown


def main() -> None:
    """Parse the command line, print and write the table."""
    parser = command_parser(__doc__)
    tables = parser.add_mutually_exclusive_group(required=True)
    tables.add_argument("--by-length", "--results", nargs="+", metavar="[NAME=]score.json")
    names = [*papers.names(translation=True), *papers.names()]
    tables.add_argument("--paper", choices=names, help="PAPER-TABLE")
    add = parser.add_argument
    add("--runs", metavar="FOLDER", help="with --paper: the results of a recipe")
    add("--test", metavar="NAME", help="with --by-length: test set of a recipe")
    add("--note", default=[], action="append", help="with --paper: printed below it")
    add("--metric", metavar="NAME", help="default: sacrebleu, or the main one of each task")
    help_text = "write it to these too: .csv as CSV, .tex as LaTeX for booktabs, .md as Markdown"
    files = {"metavar": "FILE", "nargs": "+", "default": [], "help": help_text}
    add_output(parser, FILE, **files)
    args = parser.parse_args()
    if bool(args.paper) != bool(args.runs):
        parser.error("--paper and --runs belong together")
    if args.test and not args.by_length:
        parser.error("--test belongs to --by-length")
    for path in args.output:
        ending = os.path.splitext(path)[1]
        if ending not in FORMATS:
            endings = ", ".join(FORMATS[:3])
            parser.error(f"{path}: cannot write {ending}; choose an ending of {endings}")
    if args.by_length:
        table = table_of(args.by_length, args.metric, args.test)
        formats = {".csv": table.csv, ".tex": lambda: latex(table, best_rows(table))}
    else:
        paper = papers.load(args.paper)
        table = compare(paper, read_cells(args.runs, paper.fine_tuning), args.note)
        formats = {".csv": table.csv, ".tex": table.latex}
    for path in args.output:
        text = formats.get(os.path.splitext(path)[1], table.markdown)()
        with replacing(path) as stream:
            stream.write(text)
    print(table.markdown(), end="")
