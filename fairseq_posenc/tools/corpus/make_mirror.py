"""Write a small generated copy of WMT's download sites, to run the WMT recipes without a network.

    python -m fairseq_posenc.tools.corpus.make_mirror --output mirror
    python -m fairseq_posenc.tools.corpus.serve mirror

writes the archives of the corpora at their paths (mirror/wmt13/test.tgz), with the real members
and formats and generated text; "French" and "Czech" are invented. Some training lines are empty,
too long, lopsided, or have odd characters. What is there is left alone.
"""

import argparse

from tqdm import tqdm

from fairseq_posenc.tools.corpus.mirror import DEFAULT, Sizes, write_mirror
from fairseq_posenc.tools.prepare.parallel.corpora import CORPORA


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER")
    add("--corpora", default=",".join(CORPORA), metavar="NAME,...", help="default: %(default)s")
    add(
        "--pairs",
        type=int,
        default=DEFAULT.pairs,
        metavar="N",
        help="lines of a training file (%(default)s)",
    )
    add(
        "--test-pairs",
        type=int,
        default=DEFAULT.test_pairs,
        metavar="N",
        help="lines of a test set (%(default)s)",
    )
    add("--seed", type=int, default=DEFAULT.seed, help="default: %(default)s")
    args = parser.parse_args()

    def show(paths):
        return tqdm(paths, desc="mirror", unit=" archives", disable=None)

    sizes = Sizes(args.pairs, args.test_pairs, args.seed)
    write_mirror(args.output, args.corpora.split(","), sizes, show)


if __name__ == "__main__":
    main()
