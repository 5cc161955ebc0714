"""Write a trained model for another program.

    posenc export --path checkpoints/average.pt --to fairseq --output stock.pt

makes a stock `transformer` of fairseq, which needs no --user-dir: of every encoding that acts at
the input (none, sinusoidal, learned, shape, unifpe, cape, and randomized with sinusoids inside).

    posenc export --path checkpoints/average.pt --to ctranslate2 --data bin --output ct2

makes a CTranslate2 model (pip install ctranslate2): of these, shaw, t5, rel_scalar, rotary, alibi
and kerple. docs/export.md shows how to translate with it.

    posenc export --path checkpoints/average.pt --to huggingface --data bin --output folder

makes a folder for Hugging Face's transformers, of translation models with positions at the input,
of BERT with these, rotary or t5, and of language models with these, rotary or alibi: safetensors,
configuration, tokenizer, model card.

    posenc export --path checkpoints/average.pt --to safetensors --data bin --output folder

makes a folder of any model, which posenc import and fairseq_posenc.nn.load read without a pickle.
"""

import argparse
import logging
from typing import List

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive
from fairseq_posenc.tools.output_options import OutputType, add_output

# options that one program alone has
_OPTIONS_OF = {
    "bos_in_text": "fairseq",
    "quantization": "ctranslate2",
    "positions": "ctranslate2",
    "check": "huggingface",
}


def main() -> None:
    """Parse the command line, write, and print what to know of the result."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--path", required=True, metavar="FILE", help="checkpoint")
    add("--to", required=True, choices=["fairseq", "ctranslate2", "huggingface", "safetensors"])
    help_text = "file of fairseq, or folder of the others"
    either = OutputType(is_folder=None, writes=("*",))
    add_output(parser, either, required=True, metavar="PATH", help=help_text)
    add("--data", metavar="FOLDER", help="the training's data (required but for fairseq)")
    add("--force", action="store_true", help="replace what is there")
    add = parser.add_argument_group("fairseq").add_argument
    add(
        "--bos-in-text",
        action="store_true",
        help="export models trained with --prepend-source-bos, too; their sources must then start "
        "with '<s> '",
    )
    add = parser.add_argument_group("ctranslate2").add_argument
    add("--quantization", help="int8, float16, … (default: float32)")
    longest = "longest sentence in tokens (default: 1024, or the training's if that is more)"
    add("--positions", type=positive, metavar="N", help=longest)
    add = parser.add_argument_group("huggingface").add_argument
    add(
        "--check",
        action="store_true",
        help="compare scores with fairseq's on sentences of --data; needs transformers",
    )
    args = parser.parse_args()
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    print("\n".join([f"{args.output}: written", *write(args)]))


def write(args: argparse.Namespace) -> List[str]:
    """Write what is asked for, and return what to know of it."""
    from fairseq_posenc.tools.convert.ctranslate2.model import to_ctranslate2
    from fairseq_posenc.tools.convert.huggingface.export import to_huggingface, to_safetensors
    from fairseq_posenc.tools.convert.stock_fairseq import to_fairseq

    for option, program in _OPTIONS_OF.items():
        if getattr(args, option) and args.to != program:
            raise UsageError(f"--{option.replace('_', '-')} is for --to {program}")
    if args.to == "fairseq":
        return to_fairseq(args.path, args.output, args.bos_in_text, args.force)
    if args.data is None:
        raise UsageError(f"--to {args.to} needs --data, the folder of the training's data")
    if args.to == "ctranslate2":
        return to_ctranslate2(
            args.path, args.output, args.data, args.quantization, args.positions, args.force
        )
    if args.to == "huggingface":
        return to_huggingface(args.path, args.output, args.data, args.force, args.check)
    return to_safetensors(args.path, args.output, args.data, args.force)
