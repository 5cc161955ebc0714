"""Go from raw parallel text to binarised data for fairseq-train, in one call.

    posenc prepare translation --source-lang en --target-lang fr --train train --valid valid \\
        --test test --output bin

reads train.en and train.fr, valid.en … (UTF-8, plain, .gz, .bz2 or .xz, a sentence a line): learns
SentencePiece of both languages together, cuts the raw text into pieces, of which every character
can be had back, drops training pairs that are empty, too long or too different in length, and
writes the folder bin, with the model that PosencTransformerModel.from_pretrained cuts new sentences
by. With --bpe text is tokenised (Moses) and cut by byte pair encoding instead.

    posenc prepare translation --source-lang en --target-lang fr --train talks --valid-lines 500 \\
        --subwords bin --output bin-talks

takes subwords and dictionary of another such folder: to fine-tune, or to translate more text. A run
that was broken off goes on when it is started again.
"""

import argparse

from fairseq_posenc.tools.arguments import add_workers, command_parser
from fairseq_posenc.tools.output_options import FOLDER, add_output


# fmt: off
def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    add = parser.add_argument_group("text").add_argument
    add("--source-lang", required=True, metavar="LANG", help="translate from, for example en")
    add("--target-lang", required=True, metavar="LANG", help="translate to, for example fr")
    add("--train", metavar="PREFIX",
        help="PREFIX.<language> for both languages, plain, .gz, .bz2 or .xz")
    add("--valid", metavar="PREFIX", help="likewise, to validate on")
    add("--valid-lines", type=int, metavar="N", help="instead: take N pairs out of --train")
    add("--test", metavar="PREFIX", help="likewise, to translate")
    add = parser.add_argument_group("subwords").add_argument
    add("--sentencepiece", type=int, metavar="N",
        help="so many pieces (default: 4000, from 100,000 pairs on 10000, from a million on 32000, "
        "and one for each character)")
    add("--bpe", type=int, nargs="?", const=10_000, metavar="N",
        help="instead: Moses' tokens and so many operations of byte pair encoding (default: 10000)")
    add("--normalise-punctuation", action="store_true",
        help="with --bpe: before, „ “ to plain quotes, – to a hyphen and so on; scores against raw "
        "references suffer")
    add("--moses", metavar="FOLDER",
        help="with --bpe: the Perl scripts of this mosesdecoder (default: sacremoses)")
    add("--subwords", metavar="FOLDER",
        help="instead: those of this folder, with its dictionary; learn none")
    add = parser.add_argument_group("cleaning of training pairs").add_argument
    add("--max-length", type=int, default=250, metavar="N",
        help="subwords of either side (default: 250)")
    add("--ratio", type=float, default=3.0, metavar="R",
        help="of the longer side to the shorter, in subwords (default: 3)")
    add("--clean-valid", action="store_true",
        help="clean --valid, too, so that a training is validated on the lengths that it learns")
    work = parser.add_argument_group("work")
    add_output(work, FOLDER, required=True, metavar="FOLDER",
        help="for fairseq-train: new, empty, or begun by this command")
    add_workers(work.add_argument)
    return parser
# fmt: on


def main() -> None:
    """Parse the command line and run."""
    options = vars(_parser().parse_args())
    # not before: torch takes seconds
    from fairseq_posenc.tools.translation.preparation import TranslationOptions, prepare

    prepare(TranslationOptions(**options))
