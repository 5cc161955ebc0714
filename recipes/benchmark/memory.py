"""Measure the peak memory of updates on batches of random shapes.

Each contestant trains in a process of its own, whose largest resident set is printed: what PyTorch
keeps for one shape of a batch, such as a kernel, counts for all shapes that came before.

    python -m recipes.benchmark.memory --shape tiny --length 8 --tokens 32 --updates 5
"""

import argparse
import multiprocessing
import resource

from fairseq_posenc import encodings
from fairseq_posenc.tools.arguments import command_parser, positive
from recipes.benchmark.settings import SHAPES, STOCK, Setting
from recipes.benchmark.updates import updates


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = command_parser(__doc__, prog="python -m recipes.benchmark.memory")
    add = parser.add_argument
    add("--encoding", choices=encodings.names(), default="sinusoidal", metavar="NAME",
        help="trained in float32 and with --amp (default: sinusoidal)")  # fmt: skip
    add("--shape", choices=list(SHAPES), default="base", help="of models (default: base)")
    add("--length", type=positive, default=32, help="tokens per sentence on average (default: 32)")
    add("--tokens", type=positive, default=512, help="per batch at most (default: 512)")
    add("--dropout", type=float, default=0.1, help="default: 0.1")
    add("--updates", type=positive, default=300, help="default: 300")
    return parser.parse_args()


def peak_memory(contestant: str, args: argparse.Namespace) -> float:
    """Train a contestant on the CPU; return the most MiB that this process has held."""
    batch = max(1, args.tokens // args.length)
    setting = Setting(args.shape, [contestant], args.length, batch, args.dropout)
    step = updates(setting)[contestant]
    for _ in range(args.updates):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # Linux counts in KiB


def main() -> None:
    """Measure one contestant after the other, and print the table."""
    args = read_arguments()
    contestants = [STOCK, args.encoding, f"{args.encoding} --amp"]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        tasks = [(contestant, args) for contestant in contestants]
        megabytes = dict(zip(contestants, pool.starmap(peak_memory, tasks, chunksize=1)))
    print("| | peak | ÷ float32 |\n|---|---:|---:|")
    for contestant, peak in megabytes.items():
        print(f"| {contestant} | {peak:,.0f} MB | {peak / megabytes[args.encoding]:.2f} |")


if __name__ == "__main__":
    main()
