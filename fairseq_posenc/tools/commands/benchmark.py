"""Time every position encoding against `sinusoidal` (BERT: `learned`) and stock fairseq.

All are timed in turn, round after round, so that a machine whose speed drifts slows all alike; the
tables give the median over rounds of each round's ratio of times (below 1 is faster), its
quartiles, and the peak memory of a step. With `OMP_NUM_THREADS=1` on a CPU each has a process of
its own; otherwise all share one.

    posenc benchmark --quick                                    a first look, under a minute
    posenc benchmark training --dropout 0,0.1 --output a.json   whole training steps;
                                                                    interrupted, it continues
    posenc benchmark cost --help                                the papers' tables of cost
"""

import argparse
import logging
import sys

import torch

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import SUBJECTS, Column, Setting, measure
from fairseq_posenc.tools.benchmark.arguments import at_least, numbers, probabilities
from fairseq_posenc.tools.benchmark.cost.command import main as cost
from fairseq_posenc.tools.benchmark.record import Record
from fairseq_posenc.tools.benchmark.report import render
from fairseq_posenc.tools.benchmark.setting import SHAPES
from fairseq_posenc.tools.hardware import hardware
from fairseq_posenc.version import __version__


def parse() -> argparse.Namespace:
    """Read the command line; `--quick` only changes defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(SUBJECTS)} (default: all)")
    add("--encodings", default=",".join(names()), help="comma-separated (default: all)")
    add("--lengths", type=numbers,
        help="tokens per sentence, comma-separated (default: the subject's)")  # fmt: skip
    add("--dropout", type=probabilities, default="0", help="comma-separated (default: 0)")
    add("--shape", choices=SHAPES, help="size of the models (default: base; bert: bert_base)")
    add("--tokens", type=at_least(1), default=1024, help="tokens per batch (default: 1024)")
    add("--rounds", type=int, default=9, help="timed rounds, 5 or more (default: 9)")
    add("--device", choices=["cpu", "cuda"], help="default: cuda if there is a GPU")
    add("--dtype", choices=["float32", "bfloat16"], default="float32")
    add("--quick", action="store_true", help="small models, two short lengths, 5 rounds")
    add("--output", metavar="FILE", help="JSON with all figures, written column by column; what "
        "it holds already of these settings and this machine is not measured again")  # fmt: skip
    args = parser.parse_args()
    if args.quick:
        parser.set_defaults(shape="tiny", lengths="16,64", tokens=256, rounds=5)
        args = parser.parse_args()
    check(args)
    return args


def check(args: argparse.Namespace) -> None:
    """Refuse what cannot be measured."""
    unknown = [name for name in args.subjects if name not in SUBJECTS]
    unknown += [name for name in args.encodings.split(",") if name not in names()]
    if unknown:
        raise UsageError(f"unknown: {', '.join(unknown)}; see --help")
    if args.rounds < 5:
        raise UsageError(f"--rounds must be 5 or more, not {args.rounds}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: no GPU is at hand")
    if args.device is None:
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
        if args.device == "cpu":
            print("no GPU: timing the CPU")


def settings(args: argparse.Namespace, subject: str):
    """Yield what to time a subject with."""
    encodings = list(dict.fromkeys([SUBJECTS[subject].base, *args.encodings.split(",")]))
    shape = args.shape or ("bert_base" if subject == "bert" else "base")
    for dropout in args.dropout:
        for length in args.lengths or SUBJECTS[subject].lengths:
            yield Setting(shape, encodings, length, args.tokens, dropout, args.device, args.dtype)


def main() -> None:
    """Measure and print."""
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    if sys.argv[1:2] == ["cost"]:
        cost(sys.argv[2:])
        return
    args = parse()
    versions = f"torch {torch.__version__}, fairseq_posenc {__version__}"
    machine = f"{hardware(torch.device(args.device))}, {versions}"
    columns = [
        Column(subject, setting, args.rounds, machine)
        for subject in args.subjects or SUBJECTS
        for setting in settings(args, subject)
    ]
    print(render(Record(args.output).complete(columns, measure)))
