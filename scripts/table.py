#!/usr/bin/env python3
"""Print a table of results as Markdown: one row per encoding, one column per bin of length.

    scripts/table.py --by-length shape=runs/shape/score.json sinusoidal=runs/sin/score.json
    scripts/table.py --by-length runs/quickstart/*/seed*/score.json --output table.md

Results are those of scripts/score.py --output. Without NAME=, a run is named by its folder. Several
results of one name (seeds) give mean and sample standard deviation.
"""

import argparse

from fairseq_posenc.evaluation.bleu import METRICS
from fairseq_posenc.evaluation.tables import by_length, read_runs
from fairseq_posenc.files import replacing


def main() -> None:
    """Parse the command line, print and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--by-length", nargs="+", metavar="[NAME=]score.json")
    parser.add_argument("--metric", choices=METRICS, default="sacrebleu", help="default: sacrebleu")
    parser.add_argument("--output", metavar="FILE", help="write the table to this file too")
    args = parser.parse_args()
    text = by_length(read_runs(args.by_length), args.metric).markdown()
    if args.output:
        with replacing(args.output) as stream:
            stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
