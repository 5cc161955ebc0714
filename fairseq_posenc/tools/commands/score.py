"""Score translations by sacreBLEU: BLEU, chrF, chrF++, TER and others; also by length.

From an output of fairseq-generate, complete, with or without BPE:

    posenc score --generated generate.out --data bin --reference test.de --bins 10,20,30

--data, the folder of fairseq-preprocess, tells the languages, which choose how to (de)tokenise, and
how long the sentences are that were trained on. H- and T-lines are taken as Moses tokens and
detokenised; --reference (raw text) is better than detokenised T-lines. It can be left out where
posenc prepare translation --test made the folder, which keeps the raw text. With plain text, one
sentence a line, tokenised BLEU is computed after Moses' tokeniser (-no-escape) on both sides:

    posenc score --hypothesis out.txt --reference test.de --source test.en \\
        --language de --source-language en --percentiles

With --group-by test.clauses, bins are not of lengths but of the whole numbers in that file, a line
per sentence, such as how many clauses it has; the file's ending names them in tables and pictures.
"""

import argparse
import logging
import sys
from typing import List, Union

from fairseq_posenc.json_files import write_json
from fairseq_posenc.tools.arguments import (
    add_notes,
    by_key,
    comma_separated,
    command_line,
    command_parser,
    key_value,
    read_notes,
    whole_numbers,
)
from fairseq_posenc.tools.output_options import FILE, add_output
from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS
from fairseq_posenc.tools.scores.scorer import DEFAULT
from fairseq_posenc.tools.scores.texts import BPE_SYMBOLS
from fairseq_posenc.tools.writing import replacing


def _edges(text: str) -> List[Union[int, str]]:
    """Parse ``10,20,30``, ``40,auto`` or ``auto``."""
    *edges, last = comma_separated(text)
    if last != "auto":
        return [*whole_numbers(text)]
    return [*(whole_numbers(",".join(edges)) if edges else ()), last]


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Add the options that are arguments of :func:`fairseq_posenc.tools.scores.score.evaluate`.

    ``notes`` is parsed as a list of pairs.
    """
    add = parser.add_argument
    add("--data", metavar="FOLDER", help="binarised; tells languages and trained lengths")
    add("--language", help="target language (default: that of --data, or of fairseq's log)")
    add("--source-language", help="to tokenise raw sources (default: likewise)")
    add(
        "--remove-bpe",
        choices=BPE_SYMBOLS,
        help="kind of subwords in fairseq's output (default: that of --data, or '@@ ')",
    )
    split = parser.add_mutually_exclusive_group().add_argument
    split(
        "--bins",
        type=_edges,
        metavar="10,20,30",
        help="edges of length bins; 40,auto, or auto alone: further ones by the data, so that the "
        "last, open range does not hold most of the long sentences",
    )
    split("--percentiles", action="store_true", help="cut at 33 %% and 66 %%")
    add(
        "--length-of",
        choices=("source", "reference", "longer"),
        help="what bins count; longer: the longer of both, which a limit of training is about "
        "(default: source for bins, reference for percentiles)",
    )
    add(
        "--length-unit",
        choices=("words", "tokens", "subwords", "characters"),
        help="default: words; characters where no spaces part words, as in Chinese; tokens are "
        "words and marks, as Moses parts them",
    )
    add(
        "--without-token",
        metavar="TOKEN",
        help="score once more without it, as '<sep>' between joined sentences",
    )
    add(
        "--metrics",
        type=comma_separated,
        default=DEFAULT,
        metavar="LIST",
        help=f"of {','.join(SACREBLEU_METRICS)} (default: {','.join(DEFAULT)}); sacrebleu and "
        "tokenised_bleu are always computed",
    )
    add_notes(parser)


def main() -> None:
    """Parse the command line, score, print and write."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    texts = parser.add_mutually_exclusive_group(required=True).add_argument
    texts("--generated", metavar="FILE", help="output of fairseq-generate")
    texts("--hypothesis", metavar="FILE", help="plain text")
    add(
        "--reference",
        action="append",
        metavar="FILE",
        help="raw text of the references; of several, given several times or separated by tabs",
    )
    add("--source", metavar="FILE", help="raw text of the sources, for splits by length")
    add(
        "--group-by",
        metavar="FILE",
        help="make the bins of the whole numbers in FILE, one per sentence, not of lengths",
    )
    add(
        "--segment-scores",
        type=key_value,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="scores of another metric: a number for each sentence, one a line, or what "
        "comet-score --to_json writes; may be given several times",
    )
    add(
        "--reference-scores",
        metavar="FILE",
        help="output of fairseq-generate --score-reference: bits per token of the references",
    )
    help_text = "write the translations as plain text"
    add_output(parser, FILE, "--write-hypotheses", metavar="FILE", help=help_text)
    add("--json", action="store_true", help="print the result as JSON")
    help_text = "write the result as JSON to this file too"
    add_output(parser, FILE, metavar="FILE", help=help_text)
    add_scoring(parser)
    options = vars(parser.parse_args())
    # after the options, as it imports fairseq
    from fairseq_posenc.tools.scores.score import evaluate, render

    logging.getLogger("fairseq").setLevel(logging.WARNING)
    as_json, output = options.pop("json"), options.pop("output")
    read_notes(options)
    options["segment_scores"] = by_key("--segment-scores", options["segment_scores"])
    score = evaluate(**options, command=command_line())
    for remark in score.remarks:
        print(f"note: {remark}", file=sys.stderr)
    if output:
        with replacing(output) as stream:
            write_json(score.to_json(), stream)
    if as_json:
        write_json(score.to_json(), sys.stdout)
    else:
        print(render(score))
