"""Print the tables of docs/export.md and docs/huggingface.md: what exported models do elsewhere.

    python -m recipes.exports classes --python env5/bin/python --python env4/bin/python
    python -m recipes.exports precisions --path checkpoints/average.pt --data bin

Each interpreter is that of an environment with transformers; without --python it is this one's.
CTranslate2 is tried in the first. The data are those of posenc prepare translation --test, with
SentencePiece.
"""

import logging
import sys

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive


def main() -> None:
    """Parse the command line, measure, and print."""
    parser = command_parser(__doc__, prog="python -m recipes.exports")
    add = parser.add_argument
    add("table", choices=["classes", "precisions"])
    add("--python", action="append", metavar="FILE", help="an interpreter (default: this one)")
    add("--path", metavar="FILE", help="a checkpoint")
    add("--data", metavar="FOLDER", help="its data")
    add("--sentences", type=positive, default=300, metavar="N", help="of the test (default: 300)")
    args = parser.parse_args()
    for name in ("fairseq", "fairseq_posenc"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if args.table == "classes":
        from recipes.exports import classes

        print(classes.table(args.python or [sys.executable]))
        return
    if not args.path or not args.data:
        raise UsageError("precisions needs --path and --data")
    from recipes.exports import precisions

    print(precisions.table(args.path, args.data, args.sentences))


if __name__ == "__main__":
    main()
