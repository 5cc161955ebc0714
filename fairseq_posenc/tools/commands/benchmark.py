"""Time every position encoding against `sinusoidal` (BERT: `learned`) and stock fairseq.

All are timed in turn, round after round, so that a machine whose speed drifts slows all alike; the
tables give the median over rounds of each round's ratio of times, its quartiles, and the time, the
tokens/s and the peak memory of a step. With one thread (OMP_NUM_THREADS=1) on a CPU each has a
process of its own; otherwise all share one.

    posenc benchmark --quick                                    a first look, under a minute
    posenc benchmark training --dropout 0,0.1 --output a.json   whole training steps;
                                                                    interrupted, it continues
    posenc benchmark attention --count                          operations and bytes on a GPU,
                                                                    counted without one
    posenc benchmark cost --help                                the papers' tables of cost
"""

import argparse
import logging
import sys
from typing import Any, Callable, Dict, List, Sequence

import torch

from fairseq_posenc import encodings
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive
from fairseq_posenc.tools.benchmark import counting, tables
from fairseq_posenc.tools.benchmark.record import Record, render
from fairseq_posenc.tools.benchmark.settings import SHAPES, Setting
from fairseq_posenc.tools.benchmark.timing import measure
from fairseq_posenc.tools.hardware import hardware
from fairseq_posenc.version import __version__

COST = """\
Measure the papers' tables of what position encodings cost, and print them with the papers' figures.

All rows of a table and stock fairseq are timed in turn, round after round, in one process and with
one set of weights; a figure is the median over rounds of each round's ratio of times, with
quartiles. On a GPU the settings are the papers'; on a CPU batches are cut to 1024 tokens and 9
rounds are timed. With one thread (OMP_NUM_THREADS=1) it is processor time that counts, which other
programs hardly disturb.

    posenc benchmark cost --output cost.json           everything; interrupted, it continues
    posenc benchmark cost cape-9 --lengths 10,100      columns of a table
    posenc benchmark cost --quick                      tiny models, under half a minute
"""
DTYPES = ("float32", "bfloat16", "float16")
SPEED_DEFAULTS = {"dtypes": ["float32"], "rounds": 9, "warm_up": 1, "tokens": 1024}
COUNT_DEFAULTS = {"dtypes": ["bfloat16"], "lengths": [128, 512], "shape": "base", "tokens": 4096}
COST_DEFAULTS: Dict[str, Dict[str, Any]] = {
    "cpu": {"dtypes": ["float32", "bfloat16"], "rounds": 9, "warm_up": 1, "tokens": 1024},
    "cuda": {"dtypes": ["float16", "float32"], "rounds": 100, "warm_up": 10},
}
QUICK = {"shape": "tiny", "rounds": 5, "tokens": 64}


def listed(parse: Callable[[str], Any]) -> Callable[[str], List[Any]]:
    """Return a type of arguments: several of another type, with commas between."""
    return lambda text: [parse(part) for part in text.split(",")]


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """Return a type of arguments: one of some names."""

    def checked(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"unknown: {text}; choose from {', '.join(known)}")
        return text

    return checked


def parser_of(cost: bool) -> argparse.ArgumentParser:
    """Return the parser of `posenc benchmark cost`, or of the other subjects."""
    name = "posenc benchmark cost" if cost else "posenc benchmark"
    parser = command_parser(COST if cost else __doc__, prog=name)
    add = parser.add_argument
    known = tables.names() if cost else list(tables.SPEED)
    add("tables", nargs="*", type=one_of(known), metavar="TABLE" if cost else "SUBJECT",
        help=f"{', '.join(known)} (default: all)")  # fmt: skip
    add("--encodings", type=listed(one_of(encodings.names())), metavar="A,B",
        help="default: all; cost: the table's, beside the papers' rows")  # fmt: skip
    add("--lengths", type=listed(positive), metavar="M,N",
        help="tokens per sentence (default: the subject's; cost: all of the table's)")  # fmt: skip
    if not cost:
        add("--dropout", type=listed(float), default=[0.0], metavar="P,Q", help="default: 0")
        add("--shape", choices=SHAPES, help="of the models (default: base; bert: bert_base)")
        add("--count", action="store_true", help="count what attention asks of a GPU, without "
            "one: operations and bytes; shaw and transformer_xl need Triton")  # fmt: skip
    add("--dtype", type=listed(one_of(DTYPES)), metavar="A,B", dest="dtypes",
        help=f"{', '.join(DTYPES)}; the first is for columns that know no precision (default: "
        "float32; cost: float32,bfloat16, on a GPU float16,float32)")  # fmt: skip
    add("--batch", type=positive, help="sentences per batch (default: as --tokens allows)")
    add("--tokens", type=positive,
        help="per batch at most (default: 1024; cost on a GPU: any)")  # fmt: skip
    add("--warm-up", type=positive, help="untimed rounds (default: 1; cost on a GPU: 10)")
    add("--rounds", type=positive, help="timed rounds (default: 9; cost on a GPU: 100)")
    add("--device", choices=["cpu", "cuda"], help="default: cuda if there is a GPU")
    add("--quick", action="store_true", help="tiny models, short sentences, 5 rounds")
    add("--output", metavar="FILE", help="JSON with all figures, written column by column; what "
        "it holds already of these settings and this machine is not measured again")  # fmt: skip
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what it leaves open depends on the device."""
    cost = list(arguments[:1]) == ["cost"]
    args = parser_of(cost).parse_args(
        arguments[cost:], argparse.Namespace(cost=cost, shape=None, count=False)
    )
    if args.rounds is not None and args.rounds < 5:
        raise UsageError(f"--rounds must be 5 or more, not {args.rounds}")
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if args.count and (args.output or args.tables not in ([], ["attention"])):
        raise UsageError(
            "--count is of attention, and only prints: posenc benchmark attention --count"
        )
    defaults = COST_DEFAULTS[args.device] if cost else SPEED_DEFAULTS
    if args.count:
        defaults = COUNT_DEFAULTS
    if args.quick:
        defaults = {**defaults, **QUICK, **({"encodings": []} if cost else {})}
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if not (cost or all(0 <= dropout < 1 for dropout in args.dropout)):
        raise UsageError("--dropout takes probabilities from 0 to below 1")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: no GPU is at hand")
    if args.device == "cpu" and "float16" in args.dtypes:
        raise UsageError("--dtype float16 needs a GPU; on a CPU take bfloat16")
    versions = f"torch {torch.__version__}, fairseq_posenc {__version__}"
    args.hardware = f"{hardware(torch.device(args.device))}, {versions}"
    return args


def count(args: argparse.Namespace) -> None:
    """Count, and print a table."""
    names = args.encodings or encodings.names()
    of_all = {"dropout": args.dropout[0], "dtype": args.dtypes[0]}
    print(
        counting.table(
            [
                Setting(args.shape, names, n, args.batch or max(1, args.tokens // n), **of_all)
                for n in args.lengths
            ]
        )
    )


def main() -> None:
    """Measure what has not been measured yet, and print the tables."""
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    args = parse(sys.argv[1:])
    if args.count:
        return count(args)
    if args.cost:
        chosen = {name: tables.load(name) for name in args.tables or tables.names()}
    else:
        names = args.tables or tables.SPEED
        chosen = {name: tables.speed_table(name, args) for name in names}
    plans = {name: tables.plan(name, table, args) for name, table in chosen.items()}
    for name, settings in plans.items():
        if not settings:
            lengths = {str(column["length"]): None for column in chosen[name].columns.values()}
            print(f"{name}: no such column; lengths are {', '.join(lengths)}", file=sys.stderr)
    if not any(plans.values()):
        raise UsageError("no table has a column of these --lengths and --dtype")
    record = Record(args.output)
    record.complete([setting for settings in plans.values() for setting in settings], measure)
    results = {name: record.find(settings) for name, settings in plans.items() if settings}
    print("\n\n".join(render(chosen[name], found) for name, found in results.items()))
