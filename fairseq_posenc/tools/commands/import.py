"""Make a checkpoint of a folder that posenc export or transformers has written.

    posenc import --from folder --output model/model.pt

Beside the checkpoint come its dictionaries, and what cuts text into subwords. Of transformers, FSMT
(facebook/wmt19-en-de), NLLB-200, M2M-100, mBART-50, BERT, RoBERTa, XLM-R and RoFormer are read.
Nothing in the folder is run.
"""

import logging

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.output_options import FILE, add_output


def main() -> None:
    """Parse the command line, write, and print what to know of the result."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--from", dest="folder", required=True, metavar="FOLDER", help="what to read")
    help_text = "the checkpoint"
    add_output(parser, FILE, required=True, metavar="FILE", help=help_text)
    add("--force", action="store_true", help="replace what is there")
    help_text = "compare scores and subwords with transformers on the first 50 lines of a text"
    add("--check", metavar="FILE", help=help_text)
    args = parser.parse_args()
    from fairseq_posenc.tools.convert.huggingface.load import import_model

    for name in ("fairseq", "fairseq_posenc"):
        logging.getLogger(name).setLevel(logging.WARNING)
    notes = import_model(args.folder, args.output, args.force, args.check)
    print("\n".join([f"{args.output}: written", *notes]))
