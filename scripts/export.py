#!/usr/bin/env python3
"""Write a trained translation model for another program.

    scripts/export.py --path checkpoints/average.pt --to fairseq --output stock.pt

makes a stock `transformer` of fairseq, which needs no --user-dir: of every encoding that acts at
the input (none, sinusoidal, learned, shape, cape).
"""

import argparse
import logging

from fairseq_posenc.export.stock import to_fairseq


def main() -> None:
    """Parse the command line, write, and print what to know of the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--path", required=True, metavar="FILE", help="checkpoint")
    add("--to", required=True, choices=["fairseq"])
    add("--output", required=True, metavar="FILE")
    add("--force", action="store_true", help="replace what is there")
    add(
        "--bos-in-text",
        action="store_true",
        help="fairseq: export models trained with --prepend-source-bos; their sources must then "
        "start with '<s> '",
    )
    args = parser.parse_args()
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    notes = to_fairseq(args.path, args.output, args.bos_in_text, args.force)
    print("\n".join([f"{args.output}: written", *notes]))


if __name__ == "__main__":
    main()
