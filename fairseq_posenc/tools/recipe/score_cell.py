"""Score a finished training on its test sets, and write score.json into its folder.

    python -m fairseq_posenc.tools.recipe.score_cell runs/shape/vanilla/shape/seed1 --language de \\
        --test newstest2014=newstest2014.de --test newstest2015=newstest2015.de

FOLDER/<test>.out is the output of fairseq-generate. Without a reference (--test NAME=) its T-lines
are taken. FOLDER/train.log tells parameters, speed and time of the training.
"""

import argparse
import logging
import os
import sys

from fairseq_posenc.tools.results.score import render
from fairseq_posenc.tools.results.score_cell import score_cell
from fairseq_posenc.tools.results.score_options import add_scoring, key_value


def main() -> None:
    """Parse the command line, score, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER", help="of the training")
    parser.add_argument(
        "--test",
        type=key_value,
        action="append",
        default=[],
        metavar="NAME=REFERENCE",
        dest="tests",
        help="a test set and the raw text of its references; may be given several times",
    )
    add_scoring(parser)
    options = vars(parser.parse_args())
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    for name in ("tests", "notes"):
        options[name] = dict(options[name])
    command = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    for name, result in score_cell(**options, command=command)["tests"].items():
        for remark in result["remarks"]:
            print(f"note: {name}: {remark}", file=sys.stderr)
        print(f"{name}\n{render(result)}\n")


if __name__ == "__main__":
    main()
