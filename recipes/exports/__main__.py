"""Print the tables of docs/export.md and docs/huggingface.md: what exported models do elsewhere.

    python -m recipes.exports classes --python env5/bin/python --python env4/bin/python

Each interpreter is that of an environment with transformers; without --python it is this one's.
CTranslate2 is tried in the first.
"""

import logging
import sys

from fairseq_posenc.tools.arguments import command_parser
from recipes.exports import classes


def main() -> None:
    """Parse the command line, measure, and print."""
    parser = command_parser(__doc__, prog="python -m recipes.exports")
    add = parser.add_argument
    add("table", choices=["classes"])
    add("--python", action="append", metavar="FILE", help="an interpreter (default: this one)")
    args = parser.parse_args()
    for name in ("fairseq", "fairseq_posenc"):
        logging.getLogger(name).setLevel(logging.WARNING)
    print(classes.table(args.python or [sys.executable]))


if __name__ == "__main__":
    main()
