"""The command line of the tables of cost."""

import argparse
from typing import Any, Dict, Sequence

import torch

from fairseq_posenc import encodings
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark.arguments import at_least, numbers, one_of, some_of
from fairseq_posenc.tools.benchmark.cost.plan import Choice
from fairseq_posenc.tools.benchmark.cost.table import names
from fairseq_posenc.tools.hardware import hardware
from fairseq_posenc.version import __version__

DESCRIPTION = """\
Measure the papers' tables of what position encodings cost, and print them with the papers' figures.

All rows of a table and stock fairseq are timed in turn, round after round; a figure is the median
over rounds of each round's ratio of times, with quartiles. On a GPU the settings are the papers';
on a CPU batches are cut to 1024 tokens and 9 rounds are timed. With one thread (OMP_NUM_THREADS=1)
it is processor time that counts, which other programs hardly disturb. A batch that does not fit
into memory is halved, and the table says so.

    posenc benchmark cost --output cost.json           everything; interrupted, it continues
    posenc benchmark cost cape-9 --lengths 10,100      columns of a table
    posenc benchmark cost --quick                      tiny models, under half a minute
"""
DEFAULTS: Dict[str, Dict[str, Any]] = {
    "cpu": {"dtypes": ["float32", "bfloat16"], "rounds": 9, "warm_up": 1, "tokens": 1024},
    "cuda": {"dtypes": ["float16", "float32"], "rounds": 100, "warm_up": 10},
}
QUICK: Dict[str, Any] = {"rounds": 5, "warm_up": 1, "tokens": 64, "encodings": []}
DTYPES = ("float32", "bfloat16", "float16")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what it leaves open depends on the device."""
    parser = argparse.ArgumentParser(
        prog="posenc benchmark cost",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("tables", nargs="*", type=one_of(names()), metavar="TABLE",
        help=f"{', '.join(names())} (default: all)")  # fmt: skip
    add("--encodings", type=some_of(encodings.names()), metavar="A,B",
        help="measured beside the papers' rows (default: the table's)")  # fmt: skip
    add("--lengths", type=numbers, metavar="M,N", help="of the tables' (default: all)")
    add("--dtype", type=some_of(DTYPES), metavar="A,B", dest="dtypes",
        help=f"{', '.join(DTYPES)}; the first is for tables that know no precision (default: "
        "float32,bfloat16; GPU: float16,float32)")  # fmt: skip
    add("--batch", type=at_least(1), help="sentences per batch (default: the table's)")
    add("--tokens", type=at_least(1), help="per batch at most (default: 1024; GPU: any)")
    add("--warm-up", type=at_least(1), help="untimed rounds (default: 1; GPU: 10)")
    add("--rounds", type=at_least(5), help="timed rounds (default: 9; GPU: 100)")
    add("--device", choices=["cpu", "cuda"], help="default: cuda if there is a GPU")
    add("--quick", action="store_true", help="tiny models, the papers' rows and the first length")
    add("--output", metavar="FILE", help="JSON with all figures, written cell by cell; what it "
        "holds already of these settings and this machine is not measured again")  # fmt: skip
    args = parser.parse_args(arguments)
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    for name, value in {**DEFAULTS[args.device], **(QUICK if args.quick else {})}.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def choice(args: argparse.Namespace) -> Choice:
    """Return what is asked for.

    Raises:
        UsageError: the machine cannot do it.
    """
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: no GPU is at hand")
    if args.device == "cpu" and "float16" in args.dtypes:
        raise UsageError("--dtype float16 needs a GPU; on a CPU take bfloat16")
    machine = hardware(torch.device(args.device))
    return Choice(
        device=args.device,
        dtypes=args.dtypes,
        warm_up=args.warm_up,
        rounds=args.rounds,
        hardware=f"{machine}, torch {torch.__version__}, fairseq_posenc {__version__}",
        encodings=args.encodings,
        lengths=args.lengths,
        batch=args.batch,
        tokens=args.tokens,
        quick=args.quick,
    )
