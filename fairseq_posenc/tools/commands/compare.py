"""Compare systems by the score.json of their trainings: a report of one HTML file, and its parts.

    posenc compare runs/own/*/seed*/score.json --baseline sinusoidal --output report
    posenc compare runs/glue/*/*/lr*/seed*/score.json --baseline learned --output report

writes into the folder report:

    report.html    in words; by length with intervals and differences; curves; empty, short and long
                   outputs; sentences that differ most; p-values; all that is needed to repeat it
    table.md .csv .tex    the table; LaTeX is for \\usepackage{booktabs}
    table_METRIC.md .csv .tex .svg    of each further metric of --metric sacrebleu,bits
    by_length.svg, curves.svg, curves.md    the pictures, and how far trainings are from their end

Of posenc predict (the second command) the table is by task, the picture by_task.svg, and what is
about translations is left out. Results are given as to posenc table --by-length: NAME=score.json,
or named by their folder; several of one name are seeds. A train.log beside a score.json gives the
curves.
"""

import os

from fairseq_posenc.errors import printable
from fairseq_posenc.tools.arguments import command_line, command_parser
from fairseq_posenc.tools.output_options import FOLDER, add_output


def main() -> None:
    """Parse the command line, write the report, and print what it says in words."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("scores", nargs="+", metavar="[NAME=]score.json")
    help_text = "what has these names in it is replaced"
    add_output(parser, FOLDER, required=True, metavar="FOLDER", help=help_text)
    add("--baseline", metavar="NAME", help="others are compared with it (default: the first)")
    add(
        "--beside",
        metavar="NAME",
        help="show its translations beside the baseline's (default: the best other)",
    )
    help_text = "default: sacrebleu, or the main one of each task; several: sacrebleu,bits"
    add("--metric", metavar="NAME", help=help_text)
    add(
        "--lower-is-better",
        action="store_true",
        help="of a metric of --segment-scores, such as MetricX (of TER it is known)",
    )
    add("--test", metavar="NAME", help="test set of a recipe with several")
    add(
        "--remark",
        action="append",
        default=[],
        metavar="TEXT",
        dest="remarks",
        help="shown first, such as how the training text was chosen; may be given several times",
    )
    options = vars(parser.parse_args())
    # after the options, as it imports torch
    from fairseq_posenc.tools.tables.report import write_report
    from fairseq_posenc.tools.tables.report_content import read_report

    output = options.pop("output")
    report = read_report(options.pop("scores"), **options)
    write_report(report, output, command_line())
    print(*map(printable, report.table.words), os.path.join(output, "report.html"), sep="\n")
