"""Binarise a question answering file in the format of SQuAD 1.1: SQuAD, XQuAD, MLQA, TyDiQA-GoldP.

    posenc prepare squad --input train-v1.1.json --split train --subwords text --output bin
    posenc prepare squad --input xquad.de.json --split valid-de --language de --subwords text \\
        --output bin

The file may also hold records of single questions, as the datasets library exports them: JSON
lines or a list. --subwords is a folder that posenc prepare text wrote. Each run adds one split to
the folder. MLQA is scored by its own rules, --metric mlqa, which need the --language of the
contexts; all others by those of SQuAD, as in XTREME. The English part of TyDiQA-GoldP's training
file: --id-prefix english-

Of several answers, those that are not at their answer_start are named; their texts count in scores,
and they are not trained on. With --skip-malformed, so are questions of which no answer is at its
place, and other malformed questions are left out of splits whose names begin with train. No
question is left out of a set that is scored.
"""

import sys

from fairseq_posenc.metrics.answers import METRICS
from fairseq_posenc.tools.arguments import add_workers, command_parser
from fairseq_posenc.tools.output_options import FOLDER, add_output


def main() -> None:
    """Parse the command line, prepare, and print how much there is."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--input", required=True, dest="file", metavar="FILE", help="JSON or JSON lines")
    add("--split", required=True, metavar="NAME", help="for example train, valid, valid-de")
    subwords = "with subword model and dict.txt"
    add("--subwords", required=True, dest="subwords_folder", metavar="FOLDER", help=subwords)
    add_output(parser, FOLDER, required=True, dest="destination", metavar="FOLDER")
    add("--language", help="of contexts and answers; --metric mlqa needs it")
    add("--metric", default="squad", choices=METRICS, help="rules of scoring (default: squad)")
    prefix = "only questions whose id begins so"
    add("--id-prefix", default="", dest="prefix", metavar="TEXT", help=prefix)
    add_workers(add)
    skip = (
        "keep questions without an answer at its place, leave other malformed ones out of training"
    )
    add("--skip-malformed", action="store_true", help=skip)
    args = parser.parse_args()
    from fairseq_posenc.tools.bert.squad import prepare, unknown_summary

    counts, squad_file, reachable = prepare(**vars(args))
    for problem in squad_file.dropped:
        print(f"left out: {problem}", file=sys.stderr)
    for problem in squad_file.misplaced:
        print(f"counts in scores, is not trained on: {problem}", file=sys.stderr)
    counted = ", ".join(f"{count} {name}" for name, count in counts.items())
    answers = "no answers: they can be predicted, but not scored"
    if reachable is not None:
        answers = f"exact match can reach {reachable:.2f} %"
    print(f"{args.destination}: {args.split}, {counted}, {answers}")
    for line in unknown_summary(args.destination, args.split):
        print(line, file=sys.stderr if line.startswith("warning") else sys.stdout)
