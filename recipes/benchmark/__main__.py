"""Time every position encoding against `sinusoidal` (BERT: `learned`) and stock fairseq.

All are timed in turn, round after round, so that a machine whose speed drifts slows all alike. The
table gives the median over rounds of each round's ratio of times, its quartiles, and the time, the
tokens/s and the peak memory of a step. With one thread (OMP_NUM_THREADS=1) on a CPU it is processor
time that counts, which other programs hardly disturb.

    python -m recipes.benchmark --shape tiny --lengths 8 --tokens 16
    python -m recipes.benchmark training --dropout 0,0.1 --output speed.csv
"""

import argparse
import logging
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence

import torch

from fairseq_posenc import encodings
from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.hardware import hardware
from fairseq_posenc.tools.arguments import comma_separated, command_parser, positive
from fairseq_posenc.tools.output_options import FILE, add_output
from fairseq_posenc.tools.text_tables import csv_table
from fairseq_posenc.tools.writing import replacing
from fairseq_posenc.version import __version__
from recipes.benchmark import attention, papers, steps
from recipes.benchmark.settings import SHAPES, STOCK, Setting, Steps
from recipes.benchmark.timing import race
from recipes.benchmark.updates import amp_variants, updates

FEWEST_ROUNDS = 5  # quartiles of fewer say nothing
DTYPES = ("float32", "bfloat16", "float16")
# what GPUs, their libraries and CPUs say
NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")
Row = Dict[str, Any]


class Subject(NamedTuple):
    """Something that is timed.

    Attributes:
        prepare: makes the steps of a setting's contestants.
        lengths, shape: the defaults.
        base: the encoding that the others are compared with.
        variants: further contestants, timed if the encoding that they begin with is.
        encodings: the contestants by default; all if it is empty.
    """

    prepare: Callable[[Setting], Steps]
    lengths: Sequence[int] = (32, 128, 512)
    shape: str = "base"
    base: str = "sinusoidal"
    variants: Sequence[str] = ()
    encodings: Sequence[str] = ()


SUBJECTS = {
    "training": Subject(steps.training),
    "updates": Subject(
        # each has weights and averages of its own: all encodings would not fit into memory
        updates, lengths=(32, 512), variants=amp_variants(), encodings=["sinusoidal"]
    ),
    "generation": Subject(steps.generation, lengths=(32, 128)),
    "attention": Subject(
        attention.attention, lengths=(32, 128, 512, 2048), variants=[attention.NAIVE_SHAW]
    ),
    "bert": Subject(
        steps.bert_training, shape="bert_base", base="learned",
        variants=["learned --position-segments input", "rel_scalar --position-segments per_head"],
    ),
}  # fmt: skip
PARTS = {  # of models, for the papers' tables
    "encoder": Subject(steps.encoder),
    "decoder": Subject(steps.decoder),
    "bert_inference": Subject(steps.bert_inference),
}


def probabilities(text: str) -> List[float]:
    """Parse dropouts, ``0,0.1``."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [1.0]
    if not all(0 <= value < 1 for value in values):
        raise argparse.ArgumentTypeError(f"expected probabilities below 1, not {text!r}")
    return values


def lengths(text: str) -> List[int]:
    """Parse ``32,128``, all above 0."""
    return [positive(part) for part in text.split(",")]


def read_arguments() -> argparse.Namespace:
    """Read the command line and check its names."""
    parser = command_parser(__doc__, prog="python -m recipes.benchmark")
    add = parser.add_argument
    add("subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(SUBJECTS)} (default: all)")
    add("--encodings", type=comma_separated, metavar="A,B",
        help="default: all; of updates sinusoidal")  # fmt: skip
    add("--table", choices=list(papers.TABLES), help="a paper's table of costs, ours beside it")
    add("--lengths", type=lengths, metavar="M,N", help="tokens per sentence (default: 32,128,512; "
        "generation: 32,128; attention: 32,128,512,2048)")  # fmt: skip
    add("--dropout", type=probabilities, default=[0.0], metavar="P,Q", help="default: 0")
    add("--shape", choices=list(SHAPES), help="of models (default: base; bert: bert_base)")
    add("--dtype", choices=DTYPES, default="float32", help="default: float32")
    add("--tokens", type=positive, default=1024, help="per batch at most (default: 1024)")
    add("--rounds", type=positive, default=9, help="5 or more (default: 9)")
    add("--device", choices=["cpu", "cuda"], help="default: cuda if there is a GPU")
    add_output(parser, FILE, metavar="FILE",
        help="the table, as CSV if the name ends so, written as far as it goes")  # fmt: skip
    args = parser.parse_args()
    has_gpu = torch.cuda.is_available()
    args.device = args.device or ("cuda" if has_gpu else "cpu")
    subjects = args.subjects or list(SUBJECTS)
    check(subjects, SUBJECTS)
    typed = args.subjects or args.encodings or args.shape or args.dropout != [0.0]
    if args.table and (typed or args.dtype != "float32"):
        raise UsageError("--table says itself what is timed: leave out subjects, --encodings, "
                         "--shape, --dropout and --dtype")  # fmt: skip
    if args.table and (args.output or "").endswith(".csv"):
        raise UsageError("--table is written as Markdown: --output has another ending than .csv")
    check(args.encodings or [], encodings.names())
    if args.rounds < FEWEST_ROUNDS:
        raise UsageError(f"--rounds must be {FEWEST_ROUNDS} or more, not {args.rounds}")
    if args.device == "cuda" and not has_gpu:
        raise UsageError("--device cuda: no GPU is at hand")
    if args.device == "cpu" and args.dtype == "float16":
        raise UsageError("--dtype float16 needs a GPU; on a CPU take bfloat16")
    is_half = args.dtype != "float32"
    if args.device == "cpu" and is_half and not args.table and "updates" in subjects:
        raise UsageError("updates are in float32 on a CPU: leave out --dtype, or name subjects "
                         "without it")  # fmt: skip
    return args


def check(chosen: Iterable[str], names: Iterable[str]) -> None:
    """Refuse names that are not known."""
    for name in chosen:
        if name not in names:
            raise UsageError(f"unknown: {name}; choose from {', '.join(names)}")


def settings_of(subject: Subject, args: argparse.Namespace) -> Iterable[Setting]:
    """Yield a setting for every length and dropout of a subject."""
    chosen = args.encodings or subject.encodings or encodings.names()
    contestants = list(dict.fromkeys([subject.base, *chosen]))
    contestants += [variant for variant in subject.variants if variant.split()[0] in contestants]
    for length in args.lengths or subject.lengths:
        for dropout in args.dropout:
            yield Setting(
                args.shape or subject.shape, contestants, length, max(1, args.tokens // length),
                dropout, args.device, args.dtype,
            )  # fmt: skip


def measure(name: str, setting: Setting, rounds: int, base: str = "") -> List[Row]:
    """Time a setting's contestants; return a row for each.

    ``base`` is the one that they are compared with, by default the subject's.
    """
    subject = {**SUBJECTS, **PARTS}[name]
    title = f"{name}, length {setting.length}, dropout {setting.dropout:g}"
    try:
        figures = race(
            subject.prepare(setting), setting.device, rounds, base or subject.base, title
        )
    except (MemoryError, RuntimeError) as error:
        # PyTorch has a class of its own for one of these alone
        if isinstance(error, RuntimeError) and not any(w in str(error) for w in NO_MEMORY):
            raise
        raise UsageError(
            f"{title}: memory does not suffice for {setting.batch} sentences of "
            f"{setting.length} tokens: give fewer --tokens or --encodings ({first_line(error)})"
        ) from None
    of_setting = {
        "subject": name, "shape": setting.shape, "dtype": setting.dtype, "batch": setting.batch,
        "length": setting.length, "dropout": setting.dropout,
    }  # fmt: skip
    return [
        {**of_setting, "encoding": label, **times,
         "tokens_per_second": setting.batch * setting.length / times["seconds"]}
        for label, times in figures.items()
    ]  # fmt: skip


def markdown(rows: Sequence[Row], measured_on: str) -> str:
    """Return the table as Markdown, under what it was measured on."""
    heads = ["timed", "encoding", "÷ base (quartiles)", "÷ stock (quartiles)", "step"]
    lines = [measured_on, "", f"| {' | '.join(heads)} |", "|---|---|---:|---:|---:|"]
    for row in rows:
        base = SUBJECTS[row["subject"]].base
        setting = (
            f"{row['subject']} ÷ {base}, {row['shape']}, {row['dtype']}, "
            f"{row['batch']} x {row['length']}, dropout {row['dropout']:g}"
        )
        ratios = [
            f"{row[ratio]:.3f} ({row[ratio + '_low']:.3f} to {row[ratio + '_high']:.3f})"
            for ratio in ("base", "stock")
        ]
        encoding = "stock fairseq" if row["encoding"] == STOCK else f"`{row['encoding']}`"
        step = (
            f"{1000 * row['seconds']:,.1f} ms, {row['tokens_per_second']:,.0f} tokens/s, "
            f"{row['megabytes']:,.0f} MB"
        )
        lines.append(f"| {' | '.join([setting, encoding, *ratios, step])} |")
    return "\n".join(lines) + "\n"


def to_csv(rows: Sequence[Row], measured_on: str) -> str:
    """Return the table as CSV."""
    return csv_table([[*rows[0], "measured"], *([*row.values(), measured_on] for row in rows)])


def measure_table(name: str, args: argparse.Namespace, measured_on: str) -> str:
    """Measure a paper's table; return it with the paper's figures, as Markdown."""
    table = papers.TABLES[name]
    columns = list(papers.settings_of(table, args.lengths, args.tokens, args.device))
    if not columns:
        have = sorted({column.length for column in table.columns})
        raise UsageError(f"--lengths: {name} has {', '.join(map(str, have))}")
    measured, text = [], ""
    for column, setting in columns:
        measured.append((column, measure(column.subject, setting, args.rounds, table.base)))
        text = papers.markdown(table, measured, measured_on)
        if args.output:
            with replacing(args.output) as stream:
                stream.write(text)
    return text


def main() -> None:
    """Measure setting by setting, and print the table."""
    args = read_arguments()
    logging.getLogger("fairseq_posenc").setLevel(logging.WARNING)
    machine = hardware(torch.device(args.device))
    measured_on = (
        f"Medians (quartiles) of {args.rounds} rounds; {machine}, torch {torch.__version__}, "
        f"fairseq_posenc {__version__}."
    )
    if args.table:
        print(measure_table(args.table, args, measured_on), end="")
        return
    rows: List[Row] = []
    for name in args.subjects or SUBJECTS:
        for setting in settings_of(SUBJECTS[name], args):
            rows += measure(name, setting, args.rounds)
            if args.output:
                render = to_csv if args.output.endswith(".csv") else markdown
                with replacing(args.output) as stream:
                    stream.write(render(rows, measured_on))
    print(markdown(rows, measured_on), end="")


if __name__ == "__main__":
    main()
