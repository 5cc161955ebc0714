"""Normalise punctuation and tokenise text as Moses does (sacremoses); reads .gz files too."""

import argparse
import os

from fairseq_posenc.tools.prepare.parallel.segmentation import moses
from fairseq_posenc.tools.prepare.parallel.tokens import tokenise_file


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", required=True, help="for example de")
    parser.add_argument("--input", required=True, help="UTF-8 text, one sentence a line")
    parser.add_argument("--output", required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="default: all cores")
    arguments = parser.parse_args()
    how = moses(arguments.language)
    tokenise_file(arguments.input, arguments.output, how, arguments.workers)
