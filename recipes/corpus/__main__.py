"""Write a parallel English-German corpus of any size, made by a grammar.

    python -m recipes.corpus --output corpus --train 20000 --train-length 4-20 --valid 500 \\
        --test 250 --test-lengths 4-20,21-30,31-45,46-70

writes train, valid and test as <split>.en and <split>.de, line by line. Lengths are those of the
English sentence, words and punctuation marks. No sentence occurs in two splits. Of each line,
<split>.docs has the number of its document, and <split>.clauses, for posenc score --group-by, the
number of its clauses.
"""

from fairseq_posenc.tools.arguments import command_parser
from recipes.corpus import Range, Split, write_corpus


def main() -> None:
    """Parse the command line and write."""
    parser = command_parser(__doc__, prog="python -m recipes.corpus")
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER")
    add("--seed", type=int, default=1, help="default: 1")
    add("--train", type=int, default=20000, metavar="LINES", help="default: 20000")
    add("--train-length", default="4-20", metavar="LOW-HIGH", help="default: 4-20; also of valid")
    add("--valid", type=int, default=500, metavar="LINES", help="default: 500")
    add("--test", type=int, default=250, metavar="LINES", help="for each range; default: 250")
    add("--test-lengths", metavar="LOW-HIGH,...", help="default: the training length")
    add("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args()
    trained = Range.parse(args.train_length)
    tested = [Range.parse(part) for part in (args.test_lengths or args.train_length).split(",")]
    splits = [
        Split("test", args.test, tested),
        Split("valid", args.valid, [trained]),
        Split("train", args.train, [trained]),
    ]
    write_corpus(args.output, args.seed, splits, quiet=args.quiet)


if __name__ == "__main__":
    main()
