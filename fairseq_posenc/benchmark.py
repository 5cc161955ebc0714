"""How long a training step takes with each position encoding, as a ratio in one run."""

import platform
import statistics
import time
from argparse import Namespace
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, base_architecture
from tqdm import tqdm

from fairseq_posenc import encodings
from fairseq_posenc.models.transformer import PosencTransformerModel

STOCK = "stock transformer"
BASELINE = "sinusoidal"
SHAPES: Dict[str, Dict[str, int]] = {
    "small": {"width": 256, "ffn": 1024, "layers": 3, "heads": 4, "types": 6000},
    "base": {"width": 512, "ffn": 2048, "layers": 6, "heads": 8, "types": 32000},
}


def _build(name: str, shape: str, device: str):
    sizes = SHAPES[shape]
    args = Namespace(share_all_embeddings=True, attention_dropout=0.1)
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_embed_dim", sizes["width"])
        setattr(args, f"{side}_ffn_embed_dim", sizes["ffn"])
        setattr(args, f"{side}_layers", sizes["layers"])
        setattr(args, f"{side}_attention_heads", sizes["heads"])
    base_architecture(args)
    dictionary = Dictionary()
    for index in range(sizes["types"]):
        dictionary.add_symbol(f"w{index}")
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(1)
    if name == STOCK:
        return TransformerModel.build_model(args, task).to(device).train()
    args.position_encoding = name
    return PosencTransformerModel.build_model(args, task).to(device).train()


def _step(model, source: torch.Tensor, target: torch.Tensor) -> Callable[[], None]:
    """Return a whole training step: forward, loss, backward, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        optimiser.zero_grad()
        logits = model(source, None, target)[0]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        optimiser.step()

    return step


def _seconds(step: Callable[[], None], device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    started = time.perf_counter()
    step()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def training_speed(
    shape: str, lengths: List[int], tokens: int, rounds: int, device: str
) -> Dict[str, Any]:
    """Time one training step of each model in turn, for several sentence lengths.

    A quarter of the sources are left-padded by a quarter of their length.

    Args:
        shape: one of ``SHAPES``.
        lengths: tokens per sentence on either side.
        tokens: tokens per batch and side.
        rounds: how many times each model is timed.
        device: ``cpu`` or ``cuda``.

    Returns:
        settings, hardware, and per length and model: median seconds, and the quartiles of the
        speed as a share of the baseline's (above 1 is faster).
    """
    names = [STOCK, *encodings.names()]
    models = {name: _build(name, shape, device) for name in names}
    table = {}
    for length in lengths:
        batch = max(1, tokens // length)
        source, target = torch.randint(4, SHAPES[shape]["types"], (2, batch, length)).to(device)
        source[: batch // 4, : length // 4] = 1
        steps = {name: _step(models[name], source, target) for name in names}
        seconds: Dict[str, List[float]] = {name: [] for name in names}
        for step in steps.values():
            step()
        for turn in tqdm(range(rounds), desc=f"length {length}", mininterval=1):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                seconds[name].append(_seconds(steps[name], device))
        table[str(length)] = {name: _summary(seconds[name], seconds[BASELINE]) for name in names}
    hardware = torch.cuda.get_device_name() if device != "cpu" else platform.processor() or "CPU"
    return {
        "shape": shape,
        "tokens": tokens,
        "rounds": rounds,
        "hardware": f"{hardware}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "lengths": table,
    }


def _summary(seconds: List[float], baseline: List[float]) -> Dict[str, float]:
    low, middle, high = statistics.quantiles([b / s for s, b in zip(seconds, baseline)], n=4)
    return {
        "seconds": statistics.median(seconds), "low": low, "speed": middle, "high": high
    }  # fmt: skip


def render(result: Dict[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    lengths = result["lengths"]
    lines = [
        f"Training speed, share of {BASELINE}: median (quartiles) of {result['rounds']} rounds; "
        f"{result['shape']}, {result['tokens']} tokens; {result['hardware']}",
        "",
        "| | " + " | ".join(f"length {length}" for length in lengths) + " |",
        "|---|" + "---:|" * len(lengths),
    ]
    for name in next(iter(lengths.values())):
        cells = [_cell(figures[name]) for figures in lengths.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(figures: Dict[str, float]) -> str:
    return f"{figures['speed']:.3f} ({figures['low']:.2f}-{figures['high']:.2f})"
