#!/usr/bin/env python3
"""Print the test files of XQuAD, MLQA and TyDiQA-GoldP in a folder: split, language, metric, file.

    scripts/find_xtreme.py raw

The benchmarks' own layouts are known, and that of XTREME's download. Languages that are not in a
benchmark (Romanian in XQuAD's repository, say) are left out; those that lack are named.
"""

import argparse
import sys

from fairseq_posenc.data.xtreme import find_questions

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER")
    found, missing = find_questions(parser.parse_args().folder)
    for file in found:
        print(*file)
    for line in missing:
        print(line, file=sys.stderr)
