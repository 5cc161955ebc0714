"""Analyses of the papers, of trained models.

Each prints a table and writes PREFIX.md, PREFIX.json and PREFIX.png:

    posenc analyse shift-invariance --models shape=shape.pt sinusoidal=sin.pt --data bin \\
        --output shift
    posenc analyse swap --models shape=shape.pt sinusoidal=sin.pt --data bin --output swap
    posenc analyse tokens --models sinusoidal=sin.pt shape=shape.pt --data bin --output tokens
    posenc analyse attention --models rel_scalar=rel.pt --data bin --output attention

posenc analyse NAME --help tells the options and what is computed. BLEU by length of sentences is
in posenc table --by-length and posenc plot --by-length.
"""

import argparse
import logging
import warnings
from typing import Callable

from fairseq_posenc.tools.analyses.attention import attention
from fairseq_posenc.tools.analyses.shift_invariance import shift_invariance
from fairseq_posenc.tools.analyses.swap import swap
from fairseq_posenc.tools.analyses.tokens import tokens
from fairseq_posenc.tools.arguments import command_line, command_parser, whole_numbers
from fairseq_posenc.tools.output_options import PREFIX, add_output
from fairseq_posenc.tools.scores.texts import BPE_SYMBOLS, Languages


def _add_common(parser: argparse.ArgumentParser, subset: str, batches: bool = True) -> Callable:
    """Add the options of models and data, and of batches if they are made."""
    add = parser.add_argument
    add("--models", nargs="+", required=True, metavar="NAME=CHECKPOINT", help="named as you like")
    add("--data", required=True, metavar="FOLDER", help="binarised")
    help_text = "of --data that has several pairs, where a checkpoint does not tell"
    add("--source-lang", metavar="LANGUAGE", help=help_text)
    add("--target-lang", metavar="LANGUAGE", help="likewise")
    add("--subset", default=subset, help=f"default: {subset}")
    add("--cpu", action="store_true", help="leave a GPU alone")
    if batches:
        add("--max-tokens", type=int, default=4000, help="of a batch, with padding (default: 4000)")
    return add


def _shift_invariance(parser: argparse.ArgumentParser) -> None:
    add = _add_common(parser, "test")
    add("--offsets", type=whole_numbers, default=[0, 100, 250, 500], help="default: 0,100,250,500")
    add("--sentences", type=int, metavar="N", help="as many, drawn at random (default: all)")
    add("--seed", type=int, default=1, help="of what is drawn (default: 1)")


def _swap(parser: argparse.ArgumentParser) -> None:
    add = _add_common(parser, "train")
    add("--pairs", type=int, default=10_000, help="drawn at random (default: 10000)")
    add("--seed", type=int, default=1, help="of what is drawn (default: 1)")
    add("--separator", default="<sep>", help="token that joins sentences (default: <sep>)")
    add("--beam", type=int, default=4, help="default: 4")
    add("--lenpen", type=float, default=1, help="length penalty; 0: none (default: 1)")
    longest = "longest output: a times the source (default: 1.5)"
    add("--max-len-a", type=float, default=1.5, help=longest)
    add("--max-len-b", type=int, default=10, help="... plus b (default: 10)")
    add("--remove-bpe", choices=BPE_SYMBOLS, help="kind of subwords (default: that of --data)")


def _tokens(parser: argparse.ArgumentParser) -> None:
    add = _add_common(parser, "valid")
    ranks, positions = "5000,15000,25000", "10,20,30,40,50,60,70"
    numbers = {"type": whole_numbers, "metavar": "M,N"}
    add("--frequency-bins", default=ranks, help=f"ranks (default: {ranks})", **numbers)
    add("--position-bins", default=positions, help=f"default: {positions}", **numbers)


def _attention(parser: argparse.ArgumentParser) -> None:
    add = _add_common(parser, "valid", batches=False)
    add("--length", type=int, default=64, help="tokens of the input (default: 64)")
    add("--inputs", type=int, default=8, help="pieces of text (default: 8)")
    add("--threshold", type=float, default=0.01, help="of singular values (default: 0.01)")


ANALYSES = {
    "shift-invariance": (shift_invariance, _shift_invariance),
    "swap": (swap, _swap),
    "tokens": (tokens, _tokens),
    "attention": (attention, _attention),
}


def main() -> None:
    """Parse the command line, analyse, print and write."""
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    shown = {"formatter_class": parser.formatter_class}
    for name, (analysis, add_options) in ANALYSES.items():
        # the part that is for users, its first line a title
        description = analysis.__doc__.partition("    Raises:")[0].replace("\n    ", "\n").strip()
        command = commands.add_parser(
            name, help=description.splitlines()[0], description=description, **shown
        )
        add_options(command)
        output = {"required": True, "metavar": "PREFIX", "help": "of the files"}
        add_output(command, PREFIX, **output)
    options = vars(parser.parse_args())
    name, output = options.pop("name"), options.pop("output")
    options["languages"] = Languages(options.pop("source_lang"), options.pop("target_lang"))
    for logger in ("fairseq", "fairseq_posenc"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq always asks for it
    report = ANALYSES[name][0](**options)
    report.write(output, command=command_line())
    print(report.markdown(), end="")
