#!/usr/bin/env python3
"""Score translations: tokenised BLEU, sacreBLEU (cased and lower-cased) and chrF, also by length.

From an output of fairseq-generate, complete, with or without BPE:

    scripts/score.py --generated generate-test.txt --reference test.de --bins 10,20,30

Its H- and T-lines are taken as Moses tokens and detokenised; --reference (raw text) is better than
detokenised T-lines. With plain text, one sentence a line, tokenised BLEU is computed after Moses'
tokeniser (-no-escape) on both sides:

    scripts/score.py --hypothesis out.txt --reference test.de --source test.en --percentiles
"""

import argparse
import json
import os
import sys
from typing import List

from fairseq_posenc.evaluation.lengths import SIDES, UNITS
from fairseq_posenc.evaluation.score import evaluate, render
from fairseq_posenc.evaluation.texts import BPE_SYMBOLS
from fairseq_posenc.files import replacing


def edges(text: str) -> List[int]:
    """Parse ``10,20,30``."""
    return [int(edge) for edge in text.split(",")]


def key_value(text: str) -> List[str]:
    """Parse ``KEY=VALUE``."""
    if "=" not in text[1:]:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return text.split("=", 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    texts = parser.add_mutually_exclusive_group(required=True)
    texts.add_argument("--generated", metavar="FILE", help="output of fairseq-generate")
    texts.add_argument("--hypothesis", metavar="FILE", help="plain text")
    add("--reference", metavar="FILE", help="raw text of the references")
    add("--source", metavar="FILE", help="raw text of the sources, for splits by length")
    add("--remove-bpe", default="@@ ", choices=BPE_SYMBOLS, help="subwords of --generated")
    add("--language", default="de", help="target language (default: de)")
    add("--source-language", default="en", help="to tokenise --source (default: en)")
    split = parser.add_mutually_exclusive_group()
    split.add_argument("--bins", type=edges, metavar="10,20,30", help="edges of length bins")
    split.add_argument("--percentiles", action="store_true", help="cut at 33 %% and 66 %%")
    add("--length-of", choices=SIDES, help="default: source for bins, reference for percentiles")
    add("--length-unit", choices=UNITS, default="words", help="default: words")
    add("--json", action="store_true", help="print the result as JSON")
    add("--output", metavar="FILE", help="write the result as JSON to this file too")
    add("--note", type=key_value, action="append", default=[], metavar="KEY=VALUE", dest="notes")
    return parser


def main() -> None:
    """Parse the command line, score, print and write."""
    options = vars(_parser().parse_args())
    as_json, output = options.pop("json"), options.pop("output")
    options["notes"] = dict(options["notes"])
    result = evaluate(**options, command=[os.path.basename(sys.argv[0]), *sys.argv[1:]])
    for remark in result["remarks"]:
        print(f"note: {remark}", file=sys.stderr)
    text = json.dumps(result, indent=2, ensure_ascii=False)
    if output:
        with replacing(output) as stream:
            stream.write(text + "\n")
    print(text if as_json else render(result))


if __name__ == "__main__":
    main()
