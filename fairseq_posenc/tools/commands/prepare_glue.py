"""Binarise a task of GLUE, or XNLI, from its official files.

    posenc prepare glue --task MNLI --input glue/MNLI --subwords text --output bin/MNLI

--subwords is a folder that posenc prepare text wrote. Splits: train, valid and, where there is
a file without labels, test; valid1 and test1 for MNLI mismatched, and ax for the diagnostic set,
AX.tsv in MNLI's folder or beside it; valid-de, test-de and so on for XNLI, to whose folder every
model that was trained on MNLI with the same subwords can be applied. MRPC: GLUE's train.tsv and so
on, or msr_paraphrase_train.txt, msr_paraphrase_test.txt and mrpc_dev_ids.tsv. MNLI and XNLI: also
the folder xnli of XTREME's download, which has train-en.tsv, dev-de.tsv and so on, and takes the
labels of tests away. A malformed line of a test set is an error: a leaderboard wants a prediction
of every row.
"""

import sys

from fairseq_posenc.tools.arguments import add_workers, command_parser
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.output_options import FOLDER, add_output


def main() -> None:
    """Parse the command line, prepare, and print how many examples there are."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--task", required=True, choices=TASKS)
    add("--input", required=True, metavar="FOLDER", help="with the official .tsv files")
    add("--subwords", required=True, metavar="FOLDER", help="with subword model and dict.txt")
    add_output(parser, FOLDER, required=True, metavar="FOLDER")
    add_workers(add)
    add(
        "--skip-malformed",
        action="store_true",
        help="leave malformed lines of training and development sets out, and name them",
    )
    args = parser.parse_args()
    from fairseq_posenc.tools.bert.glue import prepare, unknown_summary

    examples, problems = prepare(
        TASKS[args.task], args.input, args.subwords, args.output, args.workers, args.skip_malformed
    )
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    counts = ", ".join(f"{split} {count}" for split, count in examples.items())
    print(f"{args.output}: {args.task}, {counts}")
    for line in unknown_summary(TASKS[args.task], args.output, examples):
        print(line, file=sys.stderr if line.startswith("warning") else sys.stdout)
