"""Write what GLUE's leaderboard takes, of the models of one row of recipes/glue/run.sh.

    posenc glue-submission runs/glue rel_scalar

Of every task the run with the best score on the development set (of equals the first) has its
predictions of the test set zipped as CoLA.tsv and so on, to <run folder>/<row>/submission.zip. The
model of MNLI predicts AX, too. Scores of STS-B are cut to 0…5. Unless all eleven files can be
written, none is.
"""

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.tables.glue_submission import write


def main() -> None:
    """Parse the command line, write, and print where the files are from."""
    parser = command_parser(__doc__)
    parser.add_argument("folder", metavar="RUNS", help="run folder of the recipe")
    parser.add_argument("row", metavar="ROW", help="its label, a folder there")
    parser.add_argument("--any-size", action="store_true", help="test sets that are not GLUE's")
    for line in write(**vars(parser.parse_args())):
        print(line)
