"""Write a trained translation model for another program.

    posenc export --path checkpoints/average.pt --to fairseq --output stock.pt

makes a stock `transformer` of fairseq, which needs no --user-dir: of every encoding that acts at
the input (none, sinusoidal, learned, shape, cape).

    posenc export --path checkpoints/average.pt --to ctranslate2 --data bin --output ct2

makes a CTranslate2 model (pip install ctranslate2): of these, shaw, t5, rel_scalar, rotary and
alibi. docs/export.md shows how to translate with it.
"""

import logging

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive


def main() -> None:
    """Parse the command line, write, and print what to know of the result."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--path", required=True, metavar="FILE", help="checkpoint")
    add("--to", required=True, choices=["fairseq", "ctranslate2"])
    add("--output", required=True, metavar="PATH", help="file, or folder of ctranslate2")
    add("--force", action="store_true", help="replace what is there")
    add = parser.add_argument_group("fairseq").add_argument
    add(
        "--bos-in-text",
        action="store_true",
        help="export models trained with --prepend-source-bos, too; their sources must then start "
        "with '<s> '",
    )
    add = parser.add_argument_group("ctranslate2").add_argument
    add("--data", metavar="FOLDER", help="dictionaries, as in the training's data (required)")
    add("--quantization", help="int8, float16, … (default: float32)")
    longest = "longest sentence in tokens (default: 1024, or the training's if that is more)"
    add("--positions", type=positive, metavar="N", help=longest)
    args = parser.parse_args()
    from fairseq_posenc.tools.export.ct2_model import to_ctranslate2
    from fairseq_posenc.tools.export.stock import to_fairseq

    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    if args.to == "fairseq":
        notes = to_fairseq(args.path, args.output, args.bos_in_text, args.force)
    elif args.data is None:
        raise UsageError("--to ctranslate2 needs --data, the folder of the training's data")
    else:
        notes = to_ctranslate2(
            args.path, args.output, args.data, args.quantization, args.positions, args.force
        )
    print("\n".join([f"{args.output}: written", *notes]))
