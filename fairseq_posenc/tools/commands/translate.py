"""Translate binarised data with CTranslate2 models (posenc export --to ctranslate2).

    posenc translate bin --model ct2 --beam 5 > generate.out

prints what fairseq-generate would print, for posenc score --generated. With a checkpoint,

    posenc translate bin --path average.pt --model ct2 --model ct2_int8 --output compared

fairseq and the models translate every batch in turn; printed is a table of their speed, BLEU, and
how many translations are the same. Their translations are in compared/generate.<model>.out.
"""

import logging
import sys

import torch

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.export.translate import SEARCH, compare, translate
from fairseq_posenc.tools.results.texts import BPE_SYMBOLS


def main() -> None:
    """Parse the command line, translate, and print the translations or the table."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("data", metavar="DATA", help="folder of fairseq-preprocess")
    add("--model", required=True, action="append", metavar="FOLDER", dest="models")
    add("--path", metavar="FILE", help="checkpoint to compare with")
    add("--output", metavar="FOLDER", help="for the translations of a comparison")
    add("--gen-subset", default="test", metavar="SPLIT", help="default: test")
    add("--source-lang", help="default: that of the data")
    add("--target-lang", help="default: that of the data")
    add("--max-tokens", type=int, default=4000, help="of a batch, with padding (default: 4000)")
    search = parser.add_argument_group("search, as fairseq-generate's")
    for name, default in SEARCH.items():
        flag = f"--{name.replace('_', '-')}"
        search.add_argument(flag, type=type(default), default=default, help=f"default: {default}")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--threads", type=int, help="default: PyTorch's, see OMP_NUM_THREADS")
    machine.add_argument("--cpu", action="store_true", help="leave a GPU alone")
    machine.add_argument("--compute-type", default="default", help="CTranslate2's (default: own)")
    score = parser.add_argument_group("scores, as of posenc score")
    score.add_argument("--reference", metavar="FILE", help="raw text of the references")
    score.add_argument("--remove-bpe", default="@@ ", choices=BPE_SYMBOLS)
    args = parser.parse_args()
    if bool(args.path) != bool(args.output):
        parser.error("--path and --output go together")
    if not args.path and len(args.models) > 1:
        parser.error("several models are for a comparison: give --path and --output")
    for name in ("fairseq", "fairseq_posenc"):
        logging.getLogger(name).setLevel(logging.WARNING)
    args.device = "cpu" if args.cpu or not torch.cuda.is_available() else "cuda"
    args.threads = args.threads or torch.get_num_threads()
    if args.path:
        print(compare(args))
    else:
        translate(args, sys.stdout, sys.stderr)
