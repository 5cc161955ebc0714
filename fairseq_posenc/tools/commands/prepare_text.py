"""Make binary data for masked language models from raw documents.

    posenc prepare text --train wiki/ books/ --valid valid.txt.gz --output text

learns a WordPiece vocabulary and writes dict.txt, the subword model, train and valid into the
folder text, which fairseq-train --task posenc_masked_lm reads. Many languages, where small ones are
read more often:

    posenc prepare text --kind sentencepiece --train de=german.txt,sw=swahili/ --hold-out 500 \\
        --output text

Texts are plain UTF-8, JSON lines with a member "text" (.json, .jsonl), the files wiki_00 … of
wikiextractor, with or without --json, all of them also .gz, .bz2 or .xz, and .parquet with a column
"text". A run that was broken off goes on when it is started again.
"""

import argparse

from fairseq_posenc.tools.arguments import add_workers, command_parser
from fairseq_posenc.tools.bert import documents, sampling
from fairseq_posenc.tools.output_options import FOLDER, add_output


# fmt: off
def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    add = parser.add_argument_group("text").add_argument
    text = "files or folders, or LANGUAGE=PATH,LANGUAGE=PATH..."
    add("--train", required=True, nargs="+", metavar="TEXT", help=text)
    add("--valid", default=[], nargs="+", metavar="TEXT", help="likewise")
    add("--hold-out", type=int, metavar="N",
        help="instead of --valid: every N-th document of each language")
    add("--language-folders", action="store_true",
        help="the folders given hold one folder for each language")
    add("--documents", choices=documents.BOUNDARIES, default="blank",
        help="what divides documents of plain text: blank lines (default), or title lines "
        "' = Title = ' as in WikiText, which are left out with all other headings; a file that "
        "begins with one is read so in any case")
    add("--split-sentences", action="store_true",
        help="split lines into sentences by punctuation; default: a line is a sentence")
    add = parser.add_argument_group("vocabulary").add_argument
    add("--subwords", metavar="FOLDER", help="take the vocabulary of this folder, learn none")
    add("--kind", choices=["wordpiece", "sentencepiece"], help="default: wordpiece")
    add("--vocabulary-size", type=int, metavar="N",
        help="with the 5 special tokens (default: 30000 for wordpiece, 120000 for sentencepiece); "
        "small texts give fewer")
    add("--vocabulary-lines", type=int, metavar="N",
        help="learn from this many lines, 0: from all (default: 2000000); "
        "sentencepiece holds them in memory")
    add("--cased", action="store_true",
        help="wordpiece: keep case and accents; default: lower case, no accents, as BERT uncased")
    add("--character-coverage", type=float, metavar="SHARE",
        help="sentencepiece: share of characters that get an entry "
        "(default: 0.9995, with several languages 0.99995)")
    add = parser.add_argument_group("languages").add_argument
    add("--sampling-exponent", type=float, default=sampling.EXPONENT, metavar="S",
        help="shares of languages become share^S: 1 as they are, 0 all equal "
        f"(default: {sampling.EXPONENT}, as multilingual BERT)")
    add("--seed", type=int, default=1, help="for the sampling of languages (default: 1)")
    work = parser.add_argument_group("work")
    add_output(work, FOLDER, required=True, metavar="FOLDER")
    add_workers(work.add_argument)
    return parser
# fmt: on


def main() -> None:
    """Parse the command line and run."""
    options = vars(_parser().parse_args())
    # not before: torch takes seconds
    from fairseq_posenc.tools.bert.preparation import Options, prepare

    prepare(Options(**options))
