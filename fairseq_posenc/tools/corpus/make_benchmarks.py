"""Write small generated benchmarks in the layouts of the official downloads, and raw text.

    python -m fairseq_posenc.tools.corpus.make_benchmarks --output benchmarks

writes text/ and text-multilingual/ (documents for masked-LM training), glue/ (the nine tasks),
xnli/, squad/, xquad/, mlqa/ and tydiqa/. The sentences come from the package's English-German
grammar; "Arabic", "Thai" and "Chinese" are invented languages in those scripts. They are for
trying a recipe without a download; scores on them say nothing about a model.
"""

import argparse

from tqdm import tqdm

from fairseq_posenc.tools.corpus.benchmarks import Plan, write_benchmarks


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER")
    add("--seed", type=int, default=1, help="default: 1")
    add(
        "--examples",
        type=int,
        default=300,
        metavar="N",
        help="training examples of each task; other files have a third (default: 300)",
    )
    args = parser.parse_args()

    def show(files):
        return tqdm(files, desc="benchmarks", unit=" files", disable=None)

    write_benchmarks(args.output, Plan(args.seed, args.examples), progress=show)


if __name__ == "__main__":
    main()
