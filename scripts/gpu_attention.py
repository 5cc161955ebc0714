"""A part of gpu_check.py: is torch's own attention right, and how fast is it?"""

from functools import partial
from typing import Any, Iterator, List, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention import core, plain
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms
from recipes.benchmark.timing import race

# What is added to the scores, with and without padding on the left and the future hidden.
TERMS = ("nothing", "bias", "bias that learns", "segments", "distances")
FORMS = ((False, False), (True, False), (False, True), (True, True))


def cases(length: int, batch: int, device: str) -> Iterator[Tuple[str, Inputs, Tensor]]:
    """Yield the names of cases, their inputs in float64, and gradients of their outputs."""
    torch.manual_seed(1)
    draw = partial(torch.randn, device=device, dtype=torch.float64)
    heads = [draw(length, batch, 8, 64).permute(1, 2, 0, 3) for _ in range(4)]
    halves = torch.arange(length, device=device).ge(length // 2).long().expand(batch, length)
    every = {
        "nothing": AttentionTerms(0.125),
        "bias": AttentionTerms(0.125, bias=draw(8, length, length)),
        "bias that learns": AttentionTerms(0.125, bias=draw(8, length, length).requires_grad_()),
        "segments": AttentionTerms(
            0.125, segments=torch.nn.functional.one_hot(halves).double(),
            segment_scalars=draw(8, 2, 2).requires_grad_(),
        ),
        "distances": AttentionTerms(
            0.125, distance_keys=draw(8, 2 * length - 1, 64).requires_grad_(),
            content_query=draw(8, 64), position_query=draw(8, 64),
        ),
    }  # fmt: skip
    for name, (padded, causal) in ((name, form) for name in TERMS for form in FORMS):
        hidden = torch.arange(length, device=device).lt(length // 4).expand(batch, -1)
        title = f"{name}{', padded' * padded}{', causal' * causal}"
        inputs = Inputs(*heads[:3], every[name], hidden if padded else None, causal)
        # a query that sees no key gets anything
        seen = ~hidden[:, None, :, None] if padded and causal else 1
        yield title, inputs, heads[3] * seen


def cast(inputs: Inputs, dtype: torch.dtype) -> Tuple[Inputs, List[Tensor]]:
    """Return inputs in a precision, and those of them that learn."""

    def copy(x: Any, learns: bool) -> Any:
        return x.detach().to(dtype).requires_grad_(learns) if isinstance(x, Tensor) else x

    heads = [copy(x, True) for x in inputs[:3]]
    terms = {n: copy(x, getattr(x, "requires_grad", False)) for n, x in vars(inputs.terms).items()}
    learned = [x for x in (*heads, *terms.values()) if getattr(x, "requires_grad", False)]
    return Inputs(*heads, AttentionTerms(**terms), *inputs[4:]), learned


def attention(results: Any, tiny: bool) -> None:
    """Part 2: does torch's own attention give what the plain way gives, and how fast is it?"""
    device, dtype = ("cpu", torch.float32) if tiny else ("cuda", torch.bfloat16)

    def torchs(inputs: Inputs) -> Tensor:
        of_queries = inputs.terms.distance_keys is not None
        return (core.QUERY_MASK_SDPA if of_queries else core.SHARED_MASK_SDPA).attend(inputs)

    ways = {"plain": lambda inputs: plain.attend(inputs)[0], "torch": torchs}
    have = {(row["length"], row["terms"]) for row in results.rows("attention")}
    for length in (16,) if tiny else (128, 512, 2048):
        for title, exact, slope in cases(length, 2 if tiny else 4096 // length, device):
            if (length, title) in have:
                continue
            drawn, learned = cast(exact, dtype)

            def step(way: str, inputs: Inputs, leaves: List[Tensor], slope: Tensor) -> List[Tensor]:
                out = ways[way](inputs)
                return [
                    out.detach() * slope.ne(0),
                    *torch.autograd.grad(out, leaves, slope.to(out.dtype)),
                ]

            expected = step("plain", *cast(drawn, torch.float64), slope)
            steps_by_way = {way: partial(step, way, drawn, learned, slope) for way in ways}
            error = {
                way: max(
                    float((x - y).abs().max() / y.abs().max()) for x, y in zip(found(), expected)
                )
                for way, found in steps_by_way.items()
            }
            limit = max(16 * torch.finfo(dtype).eps, 2 * error["plain"])
            rounds = 2 if tiny else 20
            times = race(steps_by_way, device, rounds, "plain", f"{title}, {length}")
            results.add({
                "length": length, "terms": title, "error": error["torch"],
                "verdict": "right" if error["torch"] <= limit else "wrong",
                **{f"{way}, ms": 1000 * times[way]["seconds"] for way in ways},
                "torch / plain": times["torch"]["base"],
            })  # fmt: skip
