"""Parts 1 and 3 of gpu_check.py: are Triton's kernels right, and how fast is attention alone?"""

import itertools
import random
import shutil
import subprocess
import sys
from functools import partial
from typing import Any, Callable, Dict, Iterator, List
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import core, plain
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.errors import first_line
from fairseq_posenc.tools.benchmark.timing import Contestant, race

Case = Dict[str, Any]
KINDS = ("shaw", "transformer_xl")
TYPICAL: Case = {
    "dtype": "bfloat16", "length": 128, "width": 64, "padding": "left", "causal": False,
    "strided": False, "dropout": False, "gpu": 0,
}  # fmt: skip
# One is changed at a time; then several at once.
CHOICES = {
    "dtype": ["float32", "float16"],
    "length": [1, 15, 16, 17, 70, 511, 512, 2048],
    "width": [32, 40, 80, 128],
    "padding": ["none", "right", "all"],
    "causal": [True],
    "strided": [True],
    "dropout": [True],
}
# The interpreter of Triton 3.9 multiplies the bits of bfloat16, not the numbers.
TINY = {**TYPICAL, "dtype": "float32", "length": 17, "width": 8}
TINY_CHOICES = {**CHOICES, "dtype": ["float16"], "length": [1, 16, 33], "width": [5]}
RANDOM_CASES = 40
CLIPPED = 16


def cases(tiny: bool, gpus: int) -> Iterator[Case]:
    """Yield what differs from a typical case in one respect, then random cases, without repeats."""
    typical, choices = (TINY, TINY_CHOICES) if tiny else (TYPICAL, CHOICES)
    choices = {**choices, "gpu": list(range(1, gpus))}
    for kind in KINDS:
        yield {"kind": kind, **typical}
    for (name, values), kind in itertools.product(choices.items(), KINDS):
        for value in values:
            yield {"kind": kind, **typical, name: value}
    draw = random.Random(1)
    for _ in range(0 if tiny else RANDOM_CASES):
        drawn = {name: draw.choice([typical[name], *values]) for name, values in choices.items()}
        yield {"kind": draw.choice(KINDS), **drawn}


class Drawn:
    """Random inputs of a case on a device, and a gradient of the outputs."""

    def __init__(self, case: Case, device: torch.device, batch: int, heads: int):
        length, width = case["length"], case["width"]
        self.case, self.generator = case, torch.Generator().manual_seed(1)

        def draw(*shape: int) -> Tensor:
            return torch.randn(shape, generator=self.generator).to(device)

        # (T, B, H, d), as projections are; every other channel of wider ones where strided
        step = 2 if case["strided"] else 1
        heads_of = ("queries", "keys", "values", "slope")
        self.tensors = {
            name: draw(length, batch, heads, step * width)[..., ::step].permute(1, 2, 0, 3)
            for name in heads_of
        }
        if case["kind"] == "shaw":
            rows = 2 * CLIPPED + 1
            self.terms = {n: draw(rows, width) for n in ("relative_keys", "relative_values")}
        else:
            self.terms = {"distance_keys": draw(heads, 2 * length - 1, width)}
            self.terms.update({n: draw(heads, width) for n in ("content_query", "position_query")})
        self.padding = self._padding(batch, length, device)
        visible = torch.ones(batch, 1, length, length, dtype=torch.bool, device=device)
        if self.padding is not None:
            visible &= ~self.padding[:, None, None]
        # queries that see a key: what the others get is not defined
        self.sighted = (visible.tril() if case["causal"] else visible).any(-1, keepdim=True)

    def _padding(self, batch: int, length: int, device: torch.device) -> Any:
        side, index = self.case["padding"], torch.arange(length, device=device)
        if side == "none":
            return None
        padding = torch.zeros(batch, length, dtype=torch.bool, device=device)
        hidden = {"left": index < length // 3, "right": index >= length - length // 3}
        padding[-1] = hidden.get(side, index >= 0)
        return padding

    def inputs(self, dtype: torch.dtype, dropout: float = 0.0) -> Any:
        """Return leaves by name and the inputs that they make."""
        half = getattr(torch, self.case["dtype"])
        # the reference gets what is left after rounding
        leaves = {
            name: x.to(half).to(dtype).requires_grad_()
            for name, x in {**self.tensors, **self.terms}.items()
            if name != "slope"
        }
        terms = AttentionTerms(self.case["width"] ** -0.5, **{n: leaves[n] for n in self.terms})
        heads = [leaves[name] for name in ("queries", "keys", "values")]
        return leaves, Inputs(*heads, terms, self.padding, self.case["causal"], dropout)

    def run(self, attend: Callable[[Inputs], Tensor], dtype: torch.dtype) -> List[Tensor]:
        """Return outputs and gradients."""
        leaves, inputs = self.inputs(dtype)
        out = attend(inputs)
        slope = (self.tensors["slope"] * self.sighted).to(dtype)
        return [
            out.detach() * self.sighted,
            *torch.autograd.grad(out, list(leaves.values()), slope),
        ]


def error(found: List[Tensor], expected: List[Tensor]) -> float:
    """Return the largest error ÷ the largest entry of its tensor; NaN counts as infinite."""
    ratios = [
        float((x.double() - y).abs().max() / y.abs().max().clamp(min=0.1))
        for x, y in zip(found, expected)
    ]
    return max(ratio if ratio == ratio else float("inf") for ratio in ratios)


def mask_error(drawn: Drawn, attend: Callable[[Inputs], Tensor], dtype: torch.dtype) -> float:
    """Tell how far backward is from dropping what forward dropped: 0 where it is the same.

    With one seed, outputs are linear in the values v: d = out(2 v) − out(v) is what v alone gives,
    so Σ d² is Σ v · (gradient of v for the outputs' gradient d).
    """
    leaves, inputs = drawn.inputs(dtype, 0.3)

    def seeded(values: Tensor) -> Tensor:
        torch.manual_seed(3)
        return attend(inputs._replace(values=values))

    once = seeded(leaves["values"])
    change = ((seeded(2 * leaves["values"]) - once) * drawn.sighted).detach()
    (gradient,) = torch.autograd.grad(once, leaves["values"], change)
    expected = float(change.double().square().sum())
    found = float((gradient.double() * leaves["values"].detach().double()).sum())
    return abs(found / expected - 1)


def check(case: Case, tiny: bool) -> Case:
    """Compare the kernels with the plain way in float64, and say whether they are right."""
    from fairseq_posenc.attention.gpu import relative

    device = torch.device("cpu") if tiny else torch.device("cuda", case["gpu"])
    dtype = getattr(torch, case["dtype"])
    drawn = Drawn(case, device, *((2, 1) if tiny else (4, 4)))
    if not tiny and not relative.supports(drawn.inputs(dtype)[1]):
        return {**case, "verdict": "plain"}  # the kernels do not take it
    plainly = lambda inputs: plain.attend(inputs)[0]  # noqa: E731
    rounding = torch.finfo(torch.float16 if dtype == torch.float32 else dtype).eps
    if case["dropout"]:
        found, limit = mask_error(drawn, relative.attend, dtype), 0.02
    else:
        expected = drawn.run(plainly, torch.float64)
        found = error(drawn.run(relative.attend, dtype), expected)
        limit = max(16 * rounding, 2 * error(drawn.run(plainly, dtype), expected))
    return {
        **case,
        "error": found,
        "limit": limit,
        "verdict": "right" if found <= limit else "wrong",
    }


def kernels(results: Any, tiny: bool) -> None:
    """Part 1: check the kernels in all cases that have not been checked before."""
    torch.backends.cuda.matmul.allow_tf32 = True  # or they leave float32 to the plain way
    seen = [{name: row.get(name) for name in ("kind", *TYPICAL)} for row in results.rows("kernels")]
    for case in cases(tiny, torch.cuda.device_count()):
        if case in seen:
            continue
        seen.append(case)
        try:
            results.add(check(case, tiny))
        except Exception as failure:
            reason = f"{type(failure).__name__}: {first_line(failure)}"
            results.add({**case, "verdict": "failed", "reason": reason})
            if not tiny:
                return  # after a fault nothing can be computed in this process
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer and not tiny:
        code = (
            "import gpu_kernels as k; [k.check({'kind': x, **k.TYPICAL}, False) for x in k.KINDS]"
        )
        command = [sanitizer, "--error-exitcode", "9", sys.executable, "-c", code]
        done = subprocess.run(command, cwd="scripts", stdout=subprocess.DEVNULL)
        verdict = "wrong" if done.returncode else "right"
        results.add({"kind": "compute-sanitizer", "verdict": verdict})


def with_kernels(step: Callable[[], Any]) -> Callable[[], Any]:
    """Return a step of a model that goes by Triton's kernels."""
    from fairseq_posenc.attention.gpu import relative

    def run() -> Any:
        with mock.patch.object(core, "_fused_relative", lambda: relative):
            return step()

    return run


def ways_of_attention(case: Case, device: torch.device, tokens: int) -> Dict[str, Any]:
    """Return steps, forward and backward, by name; all with the same queries, keys and values."""
    length, heads = case["length"], 8
    shaw = Drawn({**case, "kind": "shaw"}, device, max(1, tokens // length), heads)
    leaves, inputs = shaw.inputs(getattr(torch, case["dtype"]))
    slope = shaw.tensors["slope"].to(inputs.queries.dtype)
    tables = Drawn({**case, "kind": "transformer_xl"}, device, 1, heads)
    _, of_distances = tables.inputs(inputs.queries.dtype)
    by_distance = torch.zeros(
        heads, 2 * length - 1, device=device, dtype=slope.dtype, requires_grad=True
    )
    line = torch.arange(length, device=device)
    index = line[:, None] - line + length - 1
    q, k, v = (x.detach().requires_grad_() for x in inputs[:3])
    learned = [q, k, v, by_distance, *inputs.terms.__dict__.values()]
    learned += of_distances.terms.__dict__.values()
    masked = torch.zeros(1, heads, length, length, device=device, dtype=slope.dtype)

    def step(attend: Callable[[], Tensor]) -> Callable[[], None]:
        def run() -> None:
            attend().backward(slope)
            for leaf in learned:
                if isinstance(leaf, Tensor):
                    leaf.grad = None

        return run

    ours = lambda terms, fused: core.attend_on_gpu(Inputs(q, k, v, terms), fused)  # noqa: E731
    sdpa = partial(F.scaled_dot_product_attention, q, k, v)
    ways = {
        "SDPA": step(sdpa),
        "SDPA, mask": step(lambda: sdpa(attn_mask=masked)),
        "bias with gradient, SDPA": step(lambda: sdpa(attn_mask=by_distance[:, index][None])),
        "shaw, plain": step(lambda: ours(inputs.terms, None)),
        "transformer_xl, plain": step(lambda: ours(of_distances.terms, None)),
    }
    if device.type == "cpu":
        return ways
    try:
        from torch.nn.attention.flex_attention import flex_attention

        def score(x: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return x + by_distance[h, i - j + length - 1]

        flexible = torch.compile(flex_attention)
        ways["bias with gradient, FlexAttention"] = step(lambda: flexible(q, k, v, score))
    except ImportError as missing:
        print(f"without FlexAttention: {missing}")
    try:
        from fairseq_posenc.attention.gpu import relative

        ways["shaw, Triton"] = step(lambda: ours(inputs.terms, relative))
        ways["transformer_xl, Triton"] = step(lambda: ours(of_distances.terms, relative))
    except ImportError as missing:
        print(f"without Triton's kernels: {missing}")
    return ways


def attention(results: Any, tiny: bool) -> None:
    """Part 3: time attention alone, all ways in turn."""
    device, name = (torch.device("cpu"), "cpu") if tiny else (torch.device("cuda"), "cuda")
    have = {row["length"] for row in results.rows("attention")}
    for length in [16] if tiny else [x for x in (128, 512, 2048) if x not in have]:
        case = {**TYPICAL, "padding": "none", "length": length}
        contestants, rows = {}, []
        for way, step in ways_of_attention(case, device, 32 if tiny else 4096).items():
            try:
                step()
                contestants[way] = Contestant(step, name)
            except Exception as failure:
                reason = f"{type(failure).__name__}: {first_line(failure)}"
                rows.append({"length": length, "way": way, "reason": reason})
        timed = race(contestants, 2 if tiny else 20, f"attention, {length}", "SDPA")
        rows += [{"length": length, "way": way, **figures} for way, figures in timed.items()]
        results.add(*rows)
