"""Time every position encoding against `sinusoidal` (BERT: `learned`) and stock fairseq.

All are timed in turn, round after round, so that a machine whose speed drifts slows all alike. The
tables give the median over rounds of each round's ratio of times, its quartiles, and the time, the
tokens/s and the peak memory of a step. With one thread (OMP_NUM_THREADS=1) on a CPU it is processor
time that counts, which other programs hardly disturb, and each has a process of its own.

    posenc benchmark --quick                     training, generation, attention and bert, tiny
    posenc benchmark training --dropout 0,0.1 --output a.json       interrupted, it continues

The papers' tables of what encodings cost (cape-9, chen2021-3, shape-2), and one of generation, are
printed with the papers' figures. All rows share one process and one set of weights. On a GPU the
settings are the papers'; on a CPU batches are cut to 1024 tokens.

    posenc benchmark cost --output cost.json                        all of these tables
    posenc benchmark cost cape-9 --lengths 10,100                   columns of one
"""

import argparse
from typing import Any, Callable, List, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive
from fairseq_posenc.tools.outputs import CHECKED_FILE, add_output

FEWEST_ROUNDS = 5  # quartiles of fewer say nothing


def listed(parse: Callable[[str], Any]) -> Callable[[str], List[Any]]:
    """Return a type of arguments: several of another type, with commas between."""
    return lambda text: [parse(part) for part in text.split(",")]


def probability(text: str) -> float:
    """Parse a dropout."""
    if not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a probability below 1, not {text}")
    return float(text)


def parse(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Read the command line; ``cost`` says whether the tables are the papers'."""
    parser = command_parser(__doc__, prog="posenc benchmark")
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help="training, generation, attention, bert, or "
        "cost and the names of its tables (default: all of either)")  # fmt: skip
    add("--encodings", type=listed(str), metavar="A,B",
        help="default: all; cost: the table's, beside the paper's rows")  # fmt: skip
    add("--lengths", type=listed(positive), metavar="M,N",
        help="tokens per sentence (default: the table's)")  # fmt: skip
    add("--dropout", type=listed(probability), metavar="P,Q", help="default: 0; cost: the paper's")
    add("--shape", metavar="NAME", help="tiny, small, base, cape, bert_small or bert_base "
        "(default: base; bert: bert_base; cost: the paper's)")  # fmt: skip
    add("--dtype", type=listed(str), metavar="A,B", dest="dtypes",
        help="float32, bfloat16 or float16; the first is for columns that name no precision "
        "(default: float32; cost: float32,bfloat16, on a GPU float16,float32)")  # fmt: skip
    add("--tokens", type=positive, help="per batch at most (default: 1024; cost on a GPU: any)")
    add("--warm-up", type=positive, help="untimed rounds (default: 1; cost on a GPU: 10)")
    add("--rounds", type=positive, help="timed rounds (default: 9; cost on a GPU: 100)")
    add("--device", choices=["cpu", "cuda"], help="default: cuda if there is a GPU")
    add("--quick", action="store_true", help="tiny models, short sentences, 5 rounds")
    add_output(parser, "--output", kind=CHECKED_FILE, metavar="FILE",
        help="JSON with all figures, written column by column; what "
        "it holds already of these settings and this machine is not measured again")  # fmt: skip
    args = parser.parse_args(arguments)
    args.cost = args.tables[:1] == ["cost"]
    args.tables = args.tables[args.cost :]
    if args.cost and (args.dropout or args.shape):
        raise UsageError("--dropout and --shape are not for the papers' tables")
    if args.rounds is not None and args.rounds < FEWEST_ROUNDS:
        raise UsageError(f"--rounds must be {FEWEST_ROUNDS} or more, not {args.rounds}")
    return args


def main() -> None:
    """Read the command line, then measure and print."""
    args = parse()
    # not before: torch and fairseq take seconds
    from fairseq_posenc.tools.benchmark.command import run

    run(args)
