#!/usr/bin/env python3
"""Draw results: a line per encoding, a metric against the length of sentences.

    scripts/plot.py --by-length shape=runs/shape/score.json sinusoidal=runs/sin/score.json \\
        --trained-up-to 20 --output bleu_by_length.png

Results are given as to scripts/table.py. Bins of sentences longer than any in training lie on a
grey ground.
"""

import argparse

from fairseq_posenc.evaluation.bleu import METRICS
from fairseq_posenc.evaluation.plots import plot_by_length
from fairseq_posenc.evaluation.tables import read_runs


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--by-length", nargs="+", metavar="[NAME=]score.json")
    parser.add_argument("--metric", choices=METRICS, default="sacrebleu", help="default: sacrebleu")
    parser.add_argument(
        "--trained-up-to", type=int, metavar="N", help="longest training sentence, as bins count"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="png, pdf or svg")
    args = parser.parse_args()
    plot_by_length(read_runs(args.by_length), args.output, args.metric, args.trained_up_to)


if __name__ == "__main__":
    main()
