"""Self-attention of a stack's layers alone: no projections, no embeddings, but the positions."""

from functools import partial
from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import core
from fairseq_posenc.attention.attention import SelfAttention, rotated
from fairseq_posenc.encodings import Encoding, Positions, Stack, build
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.encodings.segments import SegmentScalars
from fairseq_posenc.tools.benchmark.setting import PADDING, STOCK, Setting
from fairseq_posenc.tools.benchmark.timing import Steps

SEGMENTS = "rel_scalar, segments"
NAIVE_SHAW = "shaw by (T, T, d) tensors"

Attend = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Prepare = Callable[[], Attend]


def prepare(setting: Setting) -> Steps:
    """Forward and backward passes of an encoder's self-attention, with its padding.

    ``stock`` is ``scaled_dot_product_attention``, which stock fairseq calls. There are a row with
    segment scalars, and one of Shaw's encoding as it is commonly written.
    """
    tokens = setting.draw_tokens()
    shape = (setting.length, setting.sentences, setting.width)
    draw = lambda: torch.randn(shape, device=setting.device, dtype=setting.torch_dtype)  # noqa: E731
    queries, keys, values = inputs = [draw().requires_grad_() for _ in range(3)]
    gradient = draw()

    def contestant(encoding: Optional[Encoding], prepare_pass: Prepare) -> Callable[[], None]:
        leaves = [*inputs, *(encoding.parameters() if encoding is not None else ())]

        def step() -> None:
            attend = prepare_pass()
            outputs = [attend(queries, keys, values, layer) for layer in range(setting.layers)]
            torch.autograd.backward(outputs, [gradient] * len(outputs))
            for leaf in leaves:
                leaf.grad = None

        return step

    stack = Stack(
        setting.width, max_length=max(1024, setting.length),
        layers=setting.layers, heads=setting.heads,
    )  # fmt: skip
    steps: Steps = {STOCK: contestant(None, lambda: _sdpa(setting, tokens))}
    for name in setting.encodings:
        encoding = setting.cast(build(name, stack))
        steps[name] = contestant(encoding, _ours(setting, tokens, stack, encoding))
        if name == "rel_scalar":
            scalars = setting.cast(SegmentScalars(stack, 2))
            steps[SEGMENTS] = contestant(encoding, _ours(setting, tokens, stack, encoding, scalars))
        if name == "shaw":
            steps[NAIVE_SHAW] = contestant(encoding, partial(_naive, setting, tokens, encoding))
    return steps


def _split(setting: Setting, x: Tensor) -> Tensor:
    return x.view(*x.shape[:2], setting.heads, -1).permute(1, 2, 0, 3)


def _join(x: Tensor) -> Tensor:
    return x.permute(2, 0, 1, 3).flatten(2)


def _mask(tokens: Tensor) -> Optional[Tensor]:
    padding = tokens.eq(PADDING)
    return padding if bool(padding.any()) else None


def _sdpa(setting: Setting, tokens: Tensor) -> Attend:
    padding = _mask(tokens)
    mask = None if padding is None else ~padding[:, None, None]

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        q, k, v = (_split(setting, x) for x in (q, k, v))
        return _join(F.scaled_dot_product_attention(q, k, v, mask, setting.dropout))

    return attend


def _ours(
    setting: Setting,
    tokens: Tensor,
    stack: Stack,
    encoding: Encoding,
    scalars: Optional[SegmentScalars] = None,
) -> Prepare:
    """Return a function that computes the terms of a forward pass and returns its attention."""
    module = setting.cast(SelfAttention(setting.width, setting.heads))
    halves = torch.arange(setting.length, device=tokens.device) >= setting.length // 2
    segments = halves.long().expand(tokens.shape)

    def prepare_pass() -> Attend:
        positions = Positions.of_tokens(tokens, PADDING)
        terms = encoding(positions)
        every = (terms if scalars is None else scalars(terms, segments)).attention

        def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
            terms = every.get(layer, AttentionTerms())
            if terms.rotation is not None:
                turn = torch.complex(*terms.rotation)[:, None, None]
                q, k = rotated(q, turn), rotated(k, turn)
            q, k, v = (_split(setting, x) for x in (q, k, v))
            ours, mask = module.core_terms(terms), positions.padding_mask
            return _join(core.attend(q, k, v, ours, mask, dropout_p=setting.dropout)[0])

        return attend

    return prepare_pass


def _naive(setting: Setting, tokens: Tensor, encoding: Any) -> Attend:
    """Shaw's encoding with one vector for every pair of positions."""
    padding = _mask(tokens)
    line = torch.arange(setting.length, device=tokens.device)
    limit = encoding.keys.size(1) // 2
    rows = (line[:, None] - line).clamp(-limit, limit) + limit

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        q, k, v = (_split(setting, x) for x in (q, k, v))
        pair_keys, pair_values = encoding.keys[layer][rows], encoding.values[layer][rows]
        scores = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, pair_keys)
        scores = scores * q.size(-1) ** -0.5
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None], float("-inf"))
        weights = F.dropout(scores.softmax(dim=-1), setting.dropout)
        return _join(weights @ v + torch.einsum("bhij,ijd->bhid", weights, pair_values))

    return attend
