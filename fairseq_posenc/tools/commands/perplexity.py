"""How well do language models predict a text, at and beyond the length that they were trained on?

    posenc perplexity --models alibi=alibi.pt sinusoidal=sin.pt --data bin \\
        --lengths 128,256,512 --output perplexity

Prints a table: bits per token, word and byte, and perplexity per token. Several models of one name
are its seeds. ± is half a 95 % interval over seeds and pieces of the text, each as long as the
longest of --lengths. Writes PREFIX.md, PREFIX.json and PREFIX.png.

--mode blocks cuts the text into blocks of --lengths tokens; that is what fairseq-eval-lm does, and
it gives the same figure. The first tokens of a block have little to go by. --mode sliding moves
the window by --stride tokens, and counts the newest: every token sees nearly the whole length.
"""

import logging
import sys
from typing import Any, Dict, List, Optional, Sequence

import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.report import Report
from fairseq_posenc.tools.arguments import (
    command_line,
    command_parser,
    key_value,
    positive,
    whole_numbers,
)
from fairseq_posenc.tools.bert.predict import load_any
from fairseq_posenc.tools.output_options import PREFIX, add_output
from fairseq_posenc.tools.scores import perplexity
from fairseq_posenc.tools.scores.intervals import Estimate
from fairseq_posenc.tools.scores.texts import BPE_SYMBOLS
from fairseq_posenc.tools.tables.plots import line_style, new_figure
from fairseq_posenc.tools.text_tables import markdown_table

HEADER = ["model", "length", "n", "bits per token", "per word", "per byte", "perplexity"]
STRIDE = 64
Results = Dict[str, Dict[int, List[perplexity.Predicted]]]  # by name, length and seed


def main() -> None:
    """Parse the command line, predict, print and write."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--models", nargs="+", required=True, type=key_value, metavar="NAME=CHECKPOINT")
    add("--data", required=True, metavar="FOLDER", help="binarised, with dict.txt")
    add("--subset", default="test", help="default: test")
    add("--text", metavar="FILE", help="the raw lines of the subset, whose words and bytes count")
    add("--remove-bpe", choices=BPE_SYMBOLS, help="kind of subwords (default: that of --data)")
    add("--lengths", type=whole_numbers, default=[128, 256, 512, 1024], metavar="M,N")
    add("--mode", choices=("blocks", "sliding"), default="blocks", help="default: blocks")
    add("--stride", type=positive, help=f"of sliding windows (default: {STRIDE})")
    add("--baseline", metavar="NAME", help="a model: also print the differences to it")
    add("--by-position", type=positive, metavar="N", help="also by position, N at a time")
    add("--max-tokens", type=positive, default=2048, help="of a batch (default: 2048)")
    add("--cpu", action="store_true", help="leave a GPU alone")
    details = {"required": True, "metavar": "PREFIX", "help": "of the files"}
    add_output(parser, PREFIX, **details)
    args = parser.parse_args()
    for logger in ("fairseq", "fairseq_posenc"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    if args.stride and args.mode != "sliding":
        parser.error("--stride is for --mode sliding")
    stride = (args.stride or STRIDE) if args.mode == "sliding" else None
    args.lengths = [*dict.fromkeys(args.lengths)]
    if min(args.lengths) < (stride or 1):
        parser.error(f"--lengths must be at least {'--stride' if stride else 1}")
    names = list(dict.fromkeys(name for name, _ in args.models))
    if args.baseline and args.baseline not in names:
        parser.error(f"--baseline is not one of the models: {', '.join(names)}")
    text, results = predict_all(args, stride)
    report = build_report(args, text, results, stride)
    report.write(args.output, command=command_line())
    print(report.markdown(), end="")


def predict_all(args: Any, stride: Optional[int]) -> Any:
    """Return the text, and what each model predicts at each length."""
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    results: Results = {}
    dictionaries: Dict[str, List[Any]] = {}
    text: Any = None
    for name, path in args.models:
        model, task, task_name = load_any(path, args.data)
        if task_name != "language_modeling":
            raise UsageError(
                f"{path} was trained with --task {task_name}, not with language_modeling"
            )
        dictionary = task.target_dictionary
        dictionaries.setdefault(name, []).append(dictionary)
        perplexity.check_same_symbols(dictionaries)
        text = text or perplexity.read_text(
            args.data, args.subset, dictionary, args.remove_bpe, args.text
        )
        args.lengths = _reached(args.lengths, len(text.tokens))
        bos = dictionary.bos() if getattr(task.args, "add_bos_token", False) else None
        model = model.to(device).eval()
        for length in args.lengths:
            parts = [*perplexity.windows(len(text.tokens), length, stride)]
            predicted = perplexity.predict(
                model,
                text.tokens,
                parts,
                dictionary.eos(),
                args.max_tokens,
                f"{name} {length}",
                bos,
            )
            results.setdefault(name, {}).setdefault(length, []).append(predicted)
    return text, results


def _reached(lengths: Sequence[int], count: int) -> List[int]:
    """Return the lengths that a text of ``count`` tokens has, and say which it has not."""
    beyond = ", ".join(str(length) for length in lengths if length > count)
    if beyond:
        print(f"note: the text has {count} tokens: --lengths {beyond} left out", file=sys.stderr)
    reached = [length for length in lengths if length <= count]
    if not reached:
        raise UsageError(f"the text has {count} tokens: give shorter --lengths")
    return reached


def build_report(
    args: Any, text: perplexity.Text, results: Results, stride: Optional[int]
) -> Report:
    """Return tables and picture of what was predicted."""
    piece, count = max(args.lengths), len(text.tokens)
    table, data = [[*HEADER, *([f"minus {args.baseline}"] if args.baseline else [])]], []
    means: Dict[str, List[Estimate]] = {}
    for name, by_length in results.items():
        for length, seeds in by_length.items():
            mean = perplexity.mean([predicted.bits for predicted in seeds], piece)
            means.setdefault(name, []).append(mean)
            bits, low, high, _ = mean
            units = [bits * count / n if n else None for n in (text.words, text.bytes)]
            row = [name, str(length), str(len(seeds)), _cell(mean)]
            row += ["-" if unit is None else f"{unit:.3f}" for unit in units]
            row.append(f"{2**bits:.2f}")
            if args.baseline:
                row.append(_difference(seeds, results[args.baseline][length], piece))
            table.append(row)
            line = perplexity.signature(length, stride, args.subset, count)
            data.append(
                {
                    "model": name, "length": length, "signature": line,
                    "bits": {"value": bits, "low": low, "high": high},
                    "bits_by_seed": [float(predicted.bits.mean()) for predicted in seeds],
                    "per_word": units[0], "per_byte": units[1],
                    "by_position": perplexity.by_position(seeds, args.by_position or length),
                }
            )  # fmt: skip
    notes = ["± is half a 95 % interval, over seeds (n) and the text; of n = 1, over the text."]
    if count <= piece:
        notes.append(
            f"± is - as the text is one piece of {piece} tokens, which tells nothing of others: "
            "take more text, or shorter --lengths."
        )
    if text.words is None:
        notes.append("The text has unknown tokens: give --text for bits per word and byte.")
    if args.by_position:
        notes.append(_position_table(data))
    return Report(
        title=f"Bits per token of {args.subset}, {count} tokens, {args.mode}",
        table=table,
        data={"rows": data},
        pictures={".png": _draw(args.lengths, means)},
        notes=notes,
    )


def _difference(seeds: Any, base_seeds: Any, piece: int) -> str:
    """Return the difference of two models, paired by seed and text."""
    if seeds is base_seeds:
        return "0"
    if len(seeds) != len(base_seeds):
        return "unequal n"
    paired = [predicted.bits - base.bits for predicted, base in zip(seeds, base_seeds)]
    return _cell(perplexity.mean(paired, piece), sign="+")


def _cell(bits: Estimate, sign: str = "") -> str:
    half = "-" if bits.half is None else f"{bits.half:.3f}"
    return f"{bits.mean:{sign}.3f} ± {half}"


def _position_table(data: Sequence[Any]) -> str:
    """Return bits per token by position in the window, a column per length and model."""
    firsts = sorted({first for row in data for first, _ in row["by_position"]})
    lines = [["from position", *(f"{row['model']}, {row['length']}" for row in data)]]
    for first in firsts:
        bits_of_models = (dict(row["by_position"]).get(first) for row in data)
        lines.append(
            [str(first + 1), *("-" if bits is None else f"{bits:.3f}" for bits in bits_of_models)]
        )
    return markdown_table(lines)


def _draw(lengths: Sequence[int], means: Dict[str, List[Estimate]]) -> Any:
    """Draw bits per token against the length, a line per model."""
    figure = new_figure(6.0, 4.0)
    axes = figure.add_subplot()
    for number, (name, means_of_model) in enumerate(means.items()):
        values = [mean.mean for mean in means_of_model]
        halves = [mean.half or 0 for mean in means_of_model]
        axes.errorbar(lengths, values, yerr=halves, label=name, **line_style(number))
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, lengths)
    axes.set_xlabel("tokens that the model sees at most")
    axes.set_ylabel("bits per token")
    axes.legend()
    return figure
