"""Draw results, a line per encoding: a metric against length, or validation loss against updates.

    posenc plot --by-length shape=runs/shape/score.json sinusoidal=runs/sin/score.json \\
        --output bleu_by_length.png

Results are given as to posenc table, those of posenc predict too, which are drawn by task. The
table's intervals are the bars. Shaded bins hold only sentences
within the trained length, which posenc score knows from --data.

How far are trainings from their end? From logs of fairseq-train --log-format simple, resumed or
not, with several of one name for its seeds; prints a Markdown table, too:

    posenc plot --curves runs/quickstart/*/seed*/train.log --output curves.png
"""

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.output_options import FILE, add_output
from fairseq_posenc.tools.scores.training_log import curves_table, read_curves
from fairseq_posenc.tools.tables.plots import plot_by_length, plot_curves
from fairseq_posenc.tools.tables.tasks import table_of


def main() -> None:
    """Parse the command line and draw."""
    parser = command_parser(__doc__)
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--by-length", "--results", nargs="+", metavar="[NAME=]score.json")
    kinds.add_argument("--curves", nargs="+", metavar="[NAME=]train.log")
    help_text = "with --by-length; default: sacrebleu, or the main one of each task"
    parser.add_argument("--metric", metavar="NAME", help=help_text)
    parser.add_argument("--test", metavar="NAME", help="with --by-length: test set of a recipe")
    parser.add_argument(
        "--differences", action="store_true", help="with --by-length: from the first of them"
    )
    details = {"required": True, "metavar": "FILE", "help": "png, pdf or svg"}
    add_output(parser, FILE, **details)
    args = parser.parse_args()
    if args.by_length:
        table = table_of(args.by_length, args.metric, args.test)
        plot_by_length(table, args.output, args.differences)
        return
    if args.metric or args.test or args.differences:
        parser.error("--metric, --test and --differences are for --by-length")
    curves = read_curves(args.curves)
    plot_curves(curves, args.output)
    print(curves_table(curves), end="")
