"""Print the test files of XQuAD, MLQA and TyDiQA-GoldP in a folder: split, language, metric, file.

    python -m recipes.lib.find_xtreme raw

The benchmarks' own layouts are known, and that of XTREME's download. Languages that are not in a
benchmark (Romanian in XQuAD's repository, say) are left out; those that lack are named.
"""

import argparse
import sys

from fairseq_posenc.tools.bert.xtreme import find_questions


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--official", action="store_true", help="as if all were there, downloaded")
    found, missing = find_questions(**vars(parser.parse_args()))
    for file in found:
        print(*file)
    for line in missing:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
