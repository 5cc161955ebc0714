"""What `posenc benchmark` does with its command line: measure what is missing, print the tables."""

import logging
import sys
from argparse import Namespace
from typing import Any, Dict, Iterable, Sequence

import torch

from fairseq_posenc import encodings
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import tables
from fairseq_posenc.tools.benchmark.record import Record, render
from fairseq_posenc.tools.benchmark.settings import SHAPES
from fairseq_posenc.tools.benchmark.timing import measure
from fairseq_posenc.tools.hardware import hardware
from fairseq_posenc.version import __version__

DTYPES = ("float32", "bfloat16", "float16")
DEFAULTS = {"dtypes": ["float32"], "rounds": 9, "warm_up": 1, "tokens": 1024}
COST_DEFAULTS: Dict[str, Dict[str, Any]] = {
    "cpu": {**DEFAULTS, "dtypes": ["float32", "bfloat16"]},
    "cuda": {"dtypes": ["float16", "float32"], "rounds": 100, "warm_up": 10},
}
QUICK = {"shape": "tiny", "rounds": 5, "tokens": 64}


def complete(args: Namespace) -> None:
    """Check the names of a command line; what it leaves open depends on the device."""
    has_gpu = torch.cuda.is_available()
    args.device = args.device or ("cuda" if has_gpu else "cpu")
    defaults = COST_DEFAULTS[args.device] if args.cost else DEFAULTS
    if args.quick:
        defaults = {**defaults, **QUICK, **({"encodings": []} if args.cost else {})}
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    _check(args.tables, tables.names() if args.cost else tables.SPEED)
    _check(args.encodings or [], encodings.names())
    _check([args.shape] if args.shape else [], SHAPES)
    _check(args.dtypes, DTYPES)
    if args.device == "cuda" and not has_gpu:
        raise UsageError("--device cuda: no GPU is at hand")
    if args.device == "cpu" and "float16" in args.dtypes:
        raise UsageError("--dtype float16 needs a GPU; on a CPU take bfloat16")
    versions = f"torch {torch.__version__}, fairseq_posenc {__version__}"
    args.hardware = f"{hardware(torch.device(args.device))}, {versions}"


def _check(chosen: Sequence[str], known: Iterable[str]) -> None:
    for name in chosen:
        if name not in known:
            raise UsageError(f"unknown: {name}; choose from {', '.join(known)}")


def run(args: Namespace) -> None:
    """Measure what has not been measured yet, and print the tables."""
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    complete(args)
    if args.cost:
        chosen = {name: tables.load(name) for name in args.tables or tables.names()}
    else:
        names = args.tables or tables.SPEED
        chosen = {name: tables.with_columns(tables.SPEED[name], args) for name in names}
    plans = {name: tables.plan(name, table, args) for name, table in chosen.items()}
    for name, settings in plans.items():
        if not settings:
            lengths = dict.fromkeys(str(c["length"]) for c in chosen[name].columns.values())
            print(f"{name}: no such column; lengths are {', '.join(lengths)}", file=sys.stderr)
    if not any(plans.values()):
        raise UsageError("no table has a column of these --lengths and --dtype")
    record = Record(args.output)
    record.complete([setting for settings in plans.values() for setting in settings], measure)
    results = {name: record.find(settings) for name, settings in plans.items() if settings}
    print("\n\n".join(render(chosen[name], found) for name, found in results.items()))
