"""The command-line options of scoring, for every script that scores translations."""

import argparse
from typing import List, Tuple

from fairseq_posenc.tools.results.lengths import SIDES, UNITS
from fairseq_posenc.tools.results.texts import BPE_SYMBOLS


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Add the options that are arguments of :func:`fairseq_posenc.tools.results.score.evaluate`.

    ``notes`` is parsed as a list of pairs.
    """
    add = parser.add_argument
    add("--remove-bpe", default="@@ ", choices=BPE_SYMBOLS, help="subwords of fairseq's output")
    add_languages(parser)
    split = parser.add_mutually_exclusive_group()
    split.add_argument("--bins", type=_edges, metavar="10,20,30", help="edges of length bins")
    split.add_argument("--percentiles", action="store_true", help="cut at 33 %% and 66 %%")
    add("--length-of", choices=SIDES, help="default: source for bins, reference for percentiles")
    add("--length-unit", choices=UNITS, default="words", help="default: words")
    add(
        "--without-token",
        metavar="TOKEN",
        help="score once more without it, as '<sep>' between joined sentences",
    )
    add("--note", type=key_value, action="append", default=[], metavar="KEY=VALUE", dest="notes")


def add_languages(parser: argparse.ArgumentParser) -> None:
    """Add the options that tell the languages, and what the model was trained on."""
    add = parser.add_argument
    add("--data", metavar="FOLDER", help="binarised; tells languages and trained lengths")
    add("--language", help="target language (default: that of --data, or of fairseq's log)")
    add("--source-language", help="to tokenise raw sources (default: likewise)")


def key_value(text: str) -> Tuple[str, str]:
    """Parse ``KEY=VALUE``."""
    if "=" not in text[1:]:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    key, _, value = text.partition("=")
    return key, value


def _edges(text: str) -> List[int]:
    return [int(edge) for edge in text.split(",")]
