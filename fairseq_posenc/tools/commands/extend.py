"""Make the tables of learned positions longer, so that a trained model takes longer inputs.

    posenc extend --path checkpoints/average.pt --max-source-positions 2048 --how repeat \\
        --output longer.pt

interpolate stretches the trained rows over the new length; repeat puts them again and again;
sinusoid keeps them and adds sinusoids of their size. Fine-tune on long inputs afterwards, with
--finetune-from-model longer.pt. The checkpoint may be one of stock fairseq's.
"""

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive
from fairseq_posenc.tools.output_options import FILE, add_output


def main() -> None:
    """Parse the command line, write, and print what was done."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--path", required=True, metavar="FILE", help="checkpoint with learned positions")
    add("--max-source-positions", type=positive, metavar="N", help="positions of the encoder")
    add("--max-target-positions", type=positive, metavar="N", help="positions of the decoder")
    add("--max-positions", type=positive, metavar="N", help="positions of a BERT model")
    add("--how", required=True, choices=("interpolate", "repeat", "sinusoid"))
    help_text = "replaced if it is there"
    add_output(parser, FILE, required=True, metavar="FILE", help=help_text)
    args = parser.parse_args()
    from fairseq_posenc.tools.extending import extend

    limits = {name: n for name, n in vars(args).items() if name.startswith("max_") and n}
    if not limits:
        raise UsageError(
            "say how long: --max-source-positions, --max-target-positions or, of a BERT model, "
            "--max-positions"
        )
    print("\n".join([f"{args.output}: written", *extend(args.path, args.output, args.how, limits)]))
