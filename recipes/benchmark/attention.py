"""Self-attention of a stack's layers alone: no projections, no embeddings, but the positions."""

from functools import partial
from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import core
from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.attention.plain import rotated
from fairseq_posenc.encodings import Encoding, Positions, StackConfig, build
from fairseq_posenc.encodings.base import AttentionTerms
from recipes.benchmark.settings import PADDING, STOCK, Setting, Step, Steps

NAIVE_SHAW = "shaw by (T, T, d) tensors"

Attend = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Prepare = Callable[[], Attend]


def attention(setting: Setting) -> Steps:
    """Forward and backward passes of an encoder's self-attention, with its padding.

    ``stock`` is ``scaled_dot_product_attention``, which stock fairseq calls. Beside encodings,
    the contestants may be ``NAIVE_SHAW``, Shaw's encoding as it is commonly written.
    """
    tokens = setting.draw_tokens()
    shape = (setting.length, setting.batch, setting.sizes.width)
    dtype = getattr(torch, setting.dtype)
    draw = lambda: torch.randn(shape, device=setting.device, dtype=dtype)  # noqa: E731
    queries, keys, values = inputs = [draw().requires_grad_() for _ in range(3)]
    gradient = draw()

    def forward_and_backward(prepare: Prepare, encoding: Optional[Encoding] = None) -> Step:
        leaves = [*inputs, *(encoding.parameters() if encoding is not None else ())]

        def step() -> None:
            attend = prepare()
            outputs = [attend(queries, keys, values, n) for n in range(setting.sizes.layers)]
            torch.autograd.backward(outputs, [gradient] * len(outputs))
            for leaf in leaves:
                leaf.grad = None

        return step

    stack = StackConfig(
        setting.sizes.width, max_length=max(1024, setting.length),
        layers=setting.sizes.layers, heads=setting.sizes.heads,
    )  # fmt: skip
    steps: Steps = {STOCK: forward_and_backward(lambda: _sdpa(setting, tokens))}
    for name in setting.contestants:
        torch.manual_seed(1)  # both ways of Shaw's encoding get the same weights
        encoding = setting.cast(build("shaw" if name == NAIVE_SHAW else name, stack))
        prepare = our_attention(setting, tokens, encoding)
        if name == NAIVE_SHAW:
            prepare = partial(_naive_shaw, setting, tokens, encoding)
        steps[name] = forward_and_backward(prepare, encoding)
    return steps


def _sdpa(setting: Setting, tokens: Tensor) -> Attend:
    padding = _padding_mask(tokens)
    mask = None if padding is None else ~padding[:, None, None]

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        q, k, v = (_split_heads(setting, x) for x in (q, k, v))
        return _join_heads(F.scaled_dot_product_attention(q, k, v, mask, setting.dropout))

    return attend


def our_attention(setting: Setting, tokens: Tensor, encoding: Encoding) -> Prepare:
    """Return a function that computes the terms of a forward pass and returns its attention."""
    module = setting.cast(SelfAttention(setting.sizes.width, setting.sizes.heads))

    def prepare() -> Attend:
        positions = Positions.of_tokens(tokens, PADDING)
        by_layer = encoding(positions).attention

        def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
            terms = by_layer.get(layer, AttentionTerms())
            if terms.rotation is not None:
                turn = torch.complex(*terms.rotation).unsqueeze(-2)
                q, k = rotated(q, turn), rotated(k, turn)
            q, k, v = (_split_heads(setting, x) for x in (q, k, v))
            core_terms, mask = module.core_terms(terms, dtype=q.dtype), positions.padding_mask
            return _join_heads(core.attend(q, k, v, core_terms, mask, dropout_p=setting.dropout)[0])

        return attend

    return prepare


def _naive_shaw(setting: Setting, tokens: Tensor, encoding: Any) -> Attend:
    """Shaw's encoding with one vector for every pair of positions."""
    padding = _padding_mask(tokens)
    line = torch.arange(setting.length, device=tokens.device)
    limit = encoding.keys.size(1) // 2
    rows = (line[:, None] - line).clamp(-limit, limit) + limit

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        q, k, v = (_split_heads(setting, x) for x in (q, k, v))
        pair_keys, pair_values = encoding.keys[layer][rows], encoding.values[layer][rows]
        scores = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, pair_keys)
        scores = scores * q.size(-1) ** -0.5
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None], float("-inf"))
        weights = F.dropout(scores.softmax(dim=-1), setting.dropout)
        return _join_heads(weights @ v + torch.einsum("bhij,ijd->bhid", weights, pair_values))

    return attend


def _split_heads(setting: Setting, x: Tensor) -> Tensor:
    """Return ``(batch, heads, length, head's width)`` of ``(length, batch, width)``."""
    return x.view(*x.shape[:2], setting.sizes.heads, -1).permute(1, 2, 0, 3)


def _join_heads(x: Tensor) -> Tensor:
    """The inverse of :func:`_split_heads`."""
    return x.permute(2, 0, 1, 3).flatten(2)


def _padding_mask(tokens: Tensor) -> Optional[Tensor]:
    padding = tokens.eq(PADDING)
    return padding if bool(padding.any()) else None
