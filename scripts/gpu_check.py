"""Test and time the plugin on a GPU, part by part: see gpu.sh, which runs this.

Every part is a process of its own with a limit in time: after a fault of CUDA the next part still
runs. Rows are written as they are measured, and a part that was cut goes on behind those it has.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import gpu_attention
import gpu_programs
import torch

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.hardware import hardware
from fairseq_posenc.tools.text_tables import markdown_table
from fairseq_posenc.tools.writing import replacing
from recipes.benchmark import steps
from recipes.benchmark.settings import Setting
from recipes.benchmark.timing import race

# Each part's share of the time; what one leaves goes to those behind it.
SHARES = {"encodings": 60, "attention": 10, "programs": 15, "quickstart": 15}
TITLES = {
    "encodings": "A step of every encoding beside stock fairseq (bfloat16)",
    "attention": "Torch's own attention against the plain way (bfloat16, 4,096 tokens, 8 heads)",
    "programs": "Losses of fairseq-train: largest difference from the CPU's in float32, ÷ the loss",
    "quickstart": "Trainings of the quickstart in bfloat16",
}
# Name, what prepares its steps, shape, lengths and tokens of a batch, rounds.
TIMED = [
    ("training", steps.training, "base", (32, 512), 32768, 5),
    ("bert training", steps.bert_training, "bert_base", (128,), 32768, 5),
    ("generation", steps.generation, "base", (32,), 1024, 3),
]
# Relative to stock fairseq: within these bounds a step takes as long.
FASTER, SLOWER = 0.97, 1.03
# Largest difference from a CPU in float32, ÷ the largest entry of outputs or gradients.
DIFFERENCE = 1e-3
Row = Dict[str, Any]


class Results:
    """What is known so far, in a file that is written after every row."""

    def __init__(self, path: Path, part: str = ""):
        self.path, self.part = path, part
        self.content: Dict[str, Any] = {"parts": {}}
        if path.exists():
            self.content = json.loads(path.read_text(encoding="utf-8"))

    def rows(self, part: str) -> List[Row]:
        """Return the rows of a part."""
        return self.content["parts"].get(part, {}).get("rows", [])

    def state(self, part: str) -> str:
        """Return whether a part is done, was cut or failed, or was not run."""
        return self.content["parts"].get(part, {}).get("state", "not run")

    def add(self, *rows: Row) -> None:
        """Keep rows of this part."""
        self.content["parts"][self.part]["rows"] += rows
        self.save()

    def save(self) -> None:
        """Write the file anew."""
        with replacing(str(self.path)) as stream:
            json.dump(self.content, stream, indent=1)


def waits(step: Callable[[], Any], device: str) -> Optional[int]:
    """Return how often the host waits for the GPU in a step, or None without a GPU."""
    if device == "cpu":
        return None
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


def difference(name: str, device: str) -> float:
    """Return how far a tiny model's outputs and gradients in float32 are from those on the CPU."""
    found = []
    for place in ("cpu", device):
        setting = Setting("tiny", [name], 24, 4, device=place)
        torch.manual_seed(2)
        source, target = setting.draw_tokens(left=True), setting.draw_tokens()
        model = steps.build_transformer(name, setting).eval()  # in training some encodings draw
        output = model(source, None, target)[0]
        output.square().mean().backward()
        gradients = [x.grad for x in model.parameters() if x.grad is not None]
        found.append([x.detach().cpu() for x in (output, *gradients)])
    here, there = found
    # some gradients are 0 but for rounding: all are measured by the largest entry of any
    largest = [here[0].abs().max(), *[max(x.abs().max() for x in here[1:])] * (len(here) - 1)]
    ratios = [(x - y).abs().max() / most for x, y, most in zip(here, there, largest)]
    return float(torch.stack(ratios).max())  # NaN stays NaN


def encodings(results: Results, tiny: bool) -> None:
    """Part 1: is every encoding right, and how long does a step take beside stock fairseq's?"""
    device = "cpu" if tiny else "cuda"
    have = {row.get("step", row["encoding"]) for row in results.rows("encodings")}
    for name in (name for name in names() if name not in have):
        found = difference(name, device)
        verdict = "right" if found <= DIFFERENCE else "wrong"
        results.add({"encoding": name, "difference": found, "verdict": verdict})
    for subject, prepare, shape, lengths, tokens, rounds in TIMED:
        for length in (8,) if tiny else lengths:
            title = f"{subject}, {length}"
            if title in have:
                continue
            setting = Setting(
                "tiny" if tiny else shape, names(), length, 2 if tiny else tokens // length,
                0.1, device, "float32" if tiny else "bfloat16",
            )  # fmt: skip
            prepared = prepare(setting)
            base = "learned" if "bert" in subject else "sinusoidal"
            figures = race(prepared, device, 2 if tiny else rounds, base, title)
            results.add(*(
                {"encoding": name, "step": title, "waits": waits(step, device), **figures[name]}
                for name, step in prepared.items()
            ))  # fmt: skip
            del prepared
            torch.cuda.empty_cache()


def quickstart(results: Results, tiny: bool) -> None:
    """Part 4: two rows of the quickstart to their BLEU; cut, it goes on where it was."""
    folder = results.path.parent / "quickstart"
    few = "--train 300 --test 4 --updates 6 --test-lengths 4-20,21-30 --device cpu"
    options = few if tiny else "--device cuda -- --bf16"
    command = ["bash", "recipes/quickstart.sh", "--run-dir", str(folder), "--stage", "2", "--seeds",
               "1", "--encodings", "sinusoidal,shaw", *options.split()]  # fmt: skip
    subprocess.run(command, check=True)
    results.add({"text": (folder / "table.md").read_text(encoding="utf-8")})


PARTS: Dict[str, Callable[[Results, bool], None]] = {
    "encodings": encodings,
    "attention": gpu_attention.attention,
    "programs": gpu_programs.programs,
    "quickstart": quickstart,
}


def run_part(part: str, path: Path, seconds: float, options: List[str]) -> None:
    """Run a part in a process group of its own, which ends with the time, and note how it ended."""
    results = Results(path, part)
    results.content["parts"][part] = {"state": "cut", "rows": results.rows(part)}
    results.save()
    begin = time.monotonic()
    command = [sys.executable, __file__, "--part", part, "--output", str(path.parent), *options]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        state = "failed" if process.wait(timeout=max(1, seconds)) else "done"
    except BaseException as ended:  # also when the user interrupts it
        os.killpg(process.pid, 9)
        process.wait()
        if not isinstance(ended, subprocess.TimeoutExpired):
            raise
        state = "cut"
    results = Results(path, part)
    took = round(time.monotonic() - begin, 1)
    results.content["parts"][part].update(state=state, seconds=took)
    results.save()
    print(f"gpu.sh: {part}: {state} after {took:.0f} s", flush=True)


def ratio(results: Results, name: str) -> Optional[float]:
    """Return the median over the steps of an encoding's time ÷ stock fairseq's."""
    of_name = [row for row in results.rows("encodings") if row["encoding"] == name]
    ratios = [row["stock"] for row in of_name if "stock" in row]
    return statistics.median(ratios) if ratios else None


def speed(found: Optional[float]) -> str:
    """Say a ratio to stock fairseq in words."""
    if found is None:
        return "not timed"
    word = "faster" if found < FASTER else "slower" if found > SLOWER else "as fast"
    return f"{word} ({found:.2f} of stock fairseq's time)"


def attention_verdict(results: Results) -> str:
    """Say whether torch's own attention is right, and how fast."""
    rows = results.rows("attention")
    right = sum(row["verdict"] == "right" for row in rows)
    ratios = [row["torch / plain"] for row in rows]
    times = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "?"
    return (
        f"torch's own attention: {right} of {len(rows)} cases right, in {times} of the plain "
        "way's time"
    )


def verdicts(results: Results) -> List[str]:
    """Return the verdicts of attention, of fairseq-train and of each encoding."""
    rows = results.rows("encodings")
    checked = {row["encoding"]: row["verdict"] for row in rows if "verdict" in row}
    of_encodings = [
        f"{name}: {checked.get(name, 'not tested')}, {speed(ratio(results, name))}"
        for name in names()
    ]
    return [attention_verdict(results), gpu_programs.verdict(results), *of_encodings]


def grid(rows: List[Row]) -> str:
    """Return rows as a table in Markdown; rows with other columns make a further table."""
    tables = []
    for columns, alike in itertools.groupby(rows, list):
        cells = [
            [f"{x:.4g}" if isinstance(x, float) else str(x) for x in row.values()] for row in alike
        ]
        tables.append(markdown_table([columns, *cells]))
    return "\n\n".join(tables)


def page(results: Results) -> str:
    """Return everything as Markdown."""
    content = results.content
    lines = ["### On " + content["hardware"], "", "Verdicts:", ""]
    lines += [f"- {verdict}" for verdict in content["verdicts"]]
    for part, title in TITLES.items():
        known = content["parts"].get(part, {})
        took = f" after {known['seconds']} s" if "seconds" in known else ""
        lines += ["", f"#### {title}", "", f"This part: {results.state(part)}{took}.", ""]
        rows = results.rows(part)
        if rows and "text" in rows[0]:
            lines += [row["text"].replace("\n#", "\n####").lstrip("# ") for row in rows]
        else:
            lines.append(grid(rows))
    return "\n".join(lines).rstrip() + "\n"


def conclude(path: Path) -> Results:
    """Write verdicts and page."""
    results = Results(path)
    results.content["verdicts"] = verdicts(results)
    results.save()
    with replacing(str(path.with_suffix(".md"))) as stream:
        stream.write(page(results))
    return results


def main() -> None:
    """Run the parts that are not done, or one part of them."""
    parser = argparse.ArgumentParser(prog="gpu.sh", allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--started-in", type=Path, default=Path(), help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.dry_run and not torch.cuda.is_available():
        raise UsageError("there is no GPU here; --dry-run tries all parts on the CPU")
    # the user's folder is named from where gpu.sh was started
    path = (args.started_in / args.output if args.output else Path("runs/gpu")) / "gpu.json"
    if args.part:
        PARTS[args.part](Results(path, args.part), args.dry_run)
        return
    results = Results(path)
    name = hardware(torch.device("cpu" if args.dry_run else "cuda"))
    name = f"{name}, torch {torch.__version__}{' (dry run: figures mean nothing)' * args.dry_run}"
    if results.content.setdefault("hardware", name) != name:
        raise UsageError(f"{path} was made on {results.content['hardware']}: name another --output")
    results.save()
    left, end = dict(SHARES), time.monotonic() + 60 * args.minutes
    for part in SHARES:
        seconds = (end - time.monotonic()) * left[part] / sum(left.values())
        del left[part]
        if Results(path).state(part) != "done":
            run_part(part, path, seconds, ["--dry-run"] * args.dry_run)
            conclude(path)
    results = conclude(path)
    print(
        "\n".join([name, *results.content["verdicts"], f"all figures: {path.with_suffix('.md')}"])
    )
    if any(results.state(part) == "failed" for part in SHARES):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{first_line(error)}; its error is above") from None
