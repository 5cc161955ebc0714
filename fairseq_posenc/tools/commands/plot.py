"""Draw results: a line per encoding, a metric against the length of sentences.

    posenc plot --by-length shape=runs/shape/score.json sinusoidal=runs/sin/score.json \\
        --output bleu_by_length.png

Results are given as to posenc table, whose intervals are the bars. Shaded bins hold only sentences
within the trained length, which posenc score knows from --data.
"""

import argparse

from fairseq_posenc.tools.results.bleu import METRICS
from fairseq_posenc.tools.results.plots import plot_by_length
from fairseq_posenc.tools.results.tables import read_runs


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--by-length", nargs="+", metavar="[NAME=]score.json")
    parser.add_argument("--metric", choices=METRICS, default="sacrebleu", help="default: sacrebleu")
    parser.add_argument("--output", required=True, metavar="FILE", help="png, pdf or svg")
    args = parser.parse_args()
    plot_by_length(read_runs(args.by_length), args.output, args.metric)
