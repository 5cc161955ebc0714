"""Normalise punctuation and tokenise text as Moses does (sacremoses); reads .gz files too."""

import argparse
import os

from fairseq_posenc.data.tokenise import tokenise

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", required=True, help="for example de")
    parser.add_argument("--input", required=True, help="UTF-8 text, one sentence a line")
    parser.add_argument("--output", required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    tokenise(arguments.input, arguments.output, arguments.language, arguments.workers)
