"""Prepare parallel text for translation, from WMT's archives to subwords, step by step.

    posenc prepare pairs files wmt16_en_de
    posenc prepare pairs text wmt16_en_de --raw raw --output text
    posenc prepare pairs ready wmt16_en_de --input ott --raw raw --output text
    posenc prepare pairs bpe-learn --input text/train.tok.en text/train.tok.de \\
        --operations 32000 --output codes
    posenc prepare pairs bpe-apply --codes codes --input text/train.tok.en --output bpe/train.en
    posenc prepare pairs clean wmt14_en_fr --input bpe/train --output clean/train
    posenc prepare pairs bpe-keep wmt14_en_fr --codes codes --output bin
    posenc prepare pairs setting extrapolate --languages en,de --input bpe/train --output short

Text is UTF-8, one sentence a line. `files` prints what to download: address, checksum (MD5, SHA-256
or -), the name to save it under in the folder --raw, and bytes (or -).
"""

import argparse
import importlib
import json
from functools import partial
from typing import Any, Callable, Tuple

from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import add_workers, command_parser, positive
from fairseq_posenc.tools.output_options import FILE, FOLDER, PREFIX, add_output
from fairseq_posenc.tools.translation import cleaning, shape_data
from fairseq_posenc.tools.translation.corpora import CORPORA, Corpus, named

_BINARISED = FOLDER._replace(writes=("codes", "tokeniser.json"))

# Modules are imported where they are used: sacremoses and sacreBLEU take long.


def languages(text: str) -> Tuple[str, str]:
    """Parse ``en,de``."""
    first, comma, second = text.partition(",")
    if not (first and second) or "," in second or first == second:
        raise argparse.ArgumentTypeError(f"expected two languages such as en,de, not {text!r}")
    try:
        for language in (first, second):
            check_language(language, "--languages")
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return first, second


def print_files(corpus: Corpus, tests_only: bool) -> None:
    """Print what must be downloaded."""
    from fairseq_posenc.tools.translation.sources import downloads

    for file in downloads(corpus._replace(train=[]) if tests_only else corpus):
        print(file.url, file.checksum or "-", file.name, file.size or "-", sep="\t")


def _imported(name: str) -> Callable[..., Any]:
    """Return a function of ``tools/translation`` whose module is imported when it is called."""

    def run(**options: Any) -> Any:
        module, _, function = name.partition(".")
        path = f"fairseq_posenc.tools.translation.{module}"
        return getattr(importlib.import_module(path), function)(**options)

    return run


def clean(corpus: Corpus, **options) -> None:
    """Drop pairs and print how many."""
    options["languages"] = options["languages"] or (corpus.source, corpus.target)
    left, dropped = cleaning.clean(**options, cleaning=corpus.after_bpe)
    reasons = "".join(f", {count} {reason}" for reason, count in sorted(dropped.items()))
    print(f"{left} pairs kept, {sum(dropped.values())} dropped{reasons}")


def write_setting(**options) -> None:
    """Write text of a setting and print how much."""
    read, written = shape_data.write_setting(**options)
    print(f"{read} pairs read, {written} written")


# fmt: off
def _command(among, name, run, text, corpus=False, **about_corpus):
    """Add a command; return what adds its options, and what adds its ``--output``."""
    made = among.add_parser(name, help=text, description=text)
    made.set_defaults(run=run)
    if corpus:
        names = f"{', '.join(CORPORA)}, or reversed"
        made.add_argument("corpus", metavar="CORPUS", help=names, **about_corpus)
    return made.add_argument, partial(add_output, made, required=True)


def _add_pairs(add, add_output, required=True):
    add("--input", required=True, dest="prefix", metavar="PREFIX", help="before .<language>")
    add_output(PREFIX, metavar="PREFIX")
    add("--languages", required=required, type=languages, metavar="en,de")


def _add_commands(commands) -> None:
    add, _ = _command(commands, "files", print_files, "print the files to download", corpus=True)
    add("--tests-only", action="store_true", help="for `ready`: not the training text")
    text = "print the number of BPE operations"
    _command(commands, "operations", lambda corpus: print(corpus.operations), text, corpus=True)
    text = "tokenise and clean the text of archives"
    add, add_output = _command(commands, "text", _imported("text.prepare_text"), text, corpus=True)
    add("--raw", required=True, metavar="FOLDER", help="the downloads, named as `files` says")
    add_output(FOLDER, metavar="FOLDER")
    add("--add", action="append", default=[], dest="added", metavar="PREFIX",
        help="further training text, PREFIX.en and PREFIX.de, say, or with .gz, .bz2 or .xz behind")
    add("--moses", dest="checkout", metavar="FOLDER",
        help="tokenise by the Perl scripts of this mosesdecoder (default: sacremoses)")
    add_workers(add)
    text = "take text that is tokenised or cut into subwords already, in place of the archives"
    add, add_output = _command(commands, "ready", _imported("ready.take_ready"), text, corpus=True)
    add("--input", required=True, dest="ready", metavar="FOLDER",
        help="train.bpe.en, newstest2013.bpe.en … and codes, or train.tok.en …, or the files of "
        "Google's wmt16_en_de, train.tok.clean.bpe.32000.en …; or train.raw.en …, raw text")
    add("--raw", required=True, metavar="FOLDER", help="the test sets, named as `files` says")
    add_output(FOLDER, metavar="FOLDER")
    add_workers(add)
    text = "learn one byte pair encoding from all files together"
    add, add_output = _command(commands, "bpe-learn", _imported("bpe.learn"), text)
    add("--input", required=True, nargs="+", dest="inputs", metavar="FILE")
    add("--operations", required=True, type=positive, metavar="N")
    add_output(FILE, dest="codes", metavar="CODES")
    add_workers(add)
    text = f"cut words into subwords; {shape_data.SEPARATOR} stays whole"
    add, add_output = _command(commands, "bpe-apply", _imported("bpe.apply"), text)
    add("--codes", required=True)
    add("--input", required=True, dest="source", metavar="FILE")
    add_output(FILE, dest="destination", metavar="FILE")
    add_workers(add)
    text = (
        "leave the codes, and how text was tokenised, beside binarised data, where from_pretrained "
        "looks for them; without a corpus: by posenc prepare tokenise"
    )
    keep = _imported("segmentation.keep")
    add, add_output = _command(commands, "bpe-keep", keep, text, corpus=True, nargs="?")
    add("--codes", required=True)
    help_text = "of fairseq-preprocess"
    add_output(_BINARISED, dest="folder", metavar="FOLDER", help=help_text)
    add("--normalise-punctuation", action="store_true",
        help="without a corpus: posenc prepare tokenise had this option")
    text = "drop pairs as the corpus asks for text with BPE; if it does not, keep all"
    _add_pairs(*_command(commands, "clean", clean, text, corpus=True), required=False)


def _add_settings(commands) -> None:
    text = "make a data setting of SHAPE, section 3.1, of text with BPE"
    forms = commands.add_parser("setting", help=text, description=text).add_subparsers(
        required=True, dest="name", metavar="SETTING"
    )
    add, add_output = _command(forms, "extrapolate", write_setting, "drop long pairs")
    _add_pairs(add, add_output)
    add("--longest", type=positive, default=shape_data.LONGEST, metavar="N",
        help=f"subwords of either side (default: {shape_data.LONGEST})")
    add, add_output = _command(forms, "interpolate", write_setting, "join neighbours")
    _add_pairs(add, add_output)
    add("--neighbours", type=positive, default=shape_data.NEIGHBOURS, metavar="N",
        help=f"pairs to join (default: {shape_data.NEIGHBOURS})")
    add("--separator", default=shape_data.SEPARATOR, metavar="TOKEN",
        help=f"between them, '' for a space alone (default: {shape_data.SEPARATOR})")
    add("--keep-rest", action="store_true",
        help="keep what is left over at the end, as a shorter one: for validation and test sets")
# fmt: on


def main() -> None:
    """Parse the command line and run the command."""
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_commands(commands)
    _add_settings(commands)
    options = vars(parser.parse_args())
    run = options.pop("run")
    if options.get("corpus"):
        options["corpus"] = named(options["corpus"])
    counts = run(**options)
    if counts:
        print(json.dumps(counts, indent=2))
