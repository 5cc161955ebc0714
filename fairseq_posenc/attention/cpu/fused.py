"""Attention with position terms for training on a CPU in float32, with a hand-written backward.

On a CPU, torch's own fused attention leaves its fast kernel as soon as a mask needs a gradient or
weights are dropped. Here scores are computed in chunks that stay in the cache while terms, masks,
softmax and dropout pass over them in place. The weights are kept for the backward pass; the sign
of one tells whether it was dropped.
"""

from dataclasses import fields, replace
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention import plain
from fairseq_posenc.attention.cpu import fused_relative
from fairseq_posenc.attention.cpu.fused_pass import NAMES, Pass, Settings, flat
from fairseq_posenc.attention.plain import CoreTerms


def supports(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    terms: CoreTerms,
    causal: bool,
    dropout_p: float,
) -> bool:
    """Tell whether :func:`attend` can take these arguments."""
    tensors = [queries, keys, values] + _tensors(terms)
    if any(t.dtype != torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    if dropout_p >= 1 or 0 in queries.shape or 0 in keys.shape:
        return False
    if terms.segments is not None and terms.segments.requires_grad:
        return False
    tables = [t for t in (terms.relative_keys, terms.relative_values) if t is not None]
    if tables and terms.content_query is not None:
        return False
    return all(
        fused_relative.supports(queries.size(2), keys.size(2), table.size(0)) for table in tables
    )


def needs_gradient(queries: Tensor, keys: Tensor, values: Tensor, terms: CoreTerms) -> bool:
    """Tell whether a backward pass may follow."""
    tensors = [queries, keys, values] + _tensors(terms)
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _tensors(terms: CoreTerms) -> List[Tensor]:
    every = [getattr(terms, field.name) for field in fields(terms)]
    return [term for term in every if isinstance(term, Tensor)]


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    terms: CoreTerms,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    dropout_p: float = 0.0,
) -> Tensor:
    """Return the outputs of attention, as :func:`fairseq_posenc.attention.plain.attend` does.

    The arguments are ones that :func:`supports` likes. The outputs ``(B, H, Q, d)`` lie in memory
    as ``(Q, B, H, d)``, and so do the gradients of queries, keys and values. What is dropped comes
    from torch's generator, and depends on the number of threads. Gradients of gradients are
    computed plainly.
    """
    if terms.content_query is not None:
        queries, terms = _with_content_query(queries, terms)
    keep = needs_gradient(queries, keys, values, terms)
    settings = Settings(terms.scale, causal, dropout_p, keep, torch.get_num_threads())
    tables = [getattr(terms, name) for name in NAMES]
    return _Fused.apply(settings, padding_mask, queries, keys, values, *tables)


def _with_content_query(queries: Tensor, terms: CoreTerms) -> Tuple[Tensor, CoreTerms]:
    """Move the content query into the queries, and out of the position query."""
    shift = terms.position_query
    if terms.distance_keys is not None:
        shift = -terms.content_query if shift is None else shift - terms.content_query
    queries = queries + terms.content_query.unsqueeze(1)
    return queries, replace(terms, content_query=None, position_query=shift)


class _Fused(torch.autograd.Function):
    """Attention; the arguments after the padding mask are differentiable."""

    @staticmethod
    def forward(ctx, settings, padding_mask, queries, keys, values, *tables):
        work = Pass(settings, padding_mask, queries, keys, values, tables)
        outputs = _like(queries, values.size(-1))
        by_matrix = flat(outputs)
        weights, condensed = [], []
        for chunk in work.chunks():
            signed = work.weigh(chunk)
            part, extract = work.blend(work.without_dropped(signed), chunk)
            by_matrix[chunk.flat, chunk.rows] = part
            if settings.keep:
                weights.append(signed)
                condensed.append(extract)
        if settings.keep:
            ctx.settings = settings
            inputs = (padding_mask, queries, keys, values) + tables
            ctx.save_for_backward(*inputs, *weights, *condensed)
        return outputs

    @staticmethod
    def backward(ctx, gradient):
        # Read once: activation checkpointing allows no more.
        saved, split = ctx.saved_tensors, 4 + len(NAMES)
        inputs, number = saved[:split], (len(saved) - split) // 2
        weights, condensed = saved[split : split + number], saved[split + number :]
        if torch.is_grad_enabled():
            wanted = ctx.needs_input_grad[2:]
            return (None, None, *_plainly(ctx.settings, inputs, weights, gradient, wanted))
        work = _pass(ctx.settings, inputs)
        moved = [_like(tensor, tensor.size(-1)) for tensor in inputs[1:4]]
        queries, keys, values = map(flat, moved)
        by_matrix = flat(gradient)
        for chunk, signed, extract in zip(work.chunks(), weights, condensed):
            part = by_matrix[chunk.flat, chunk.rows]
            kept = work.without_dropped(signed)
            work.add(values, kept, part, work.kept_scale, chunk)
            scores = work.unblend(part, kept, extract, chunk)
            scores = work.unweigh(scores, signed, kept)
            work.add(keys, scores, work.asking(chunk), work.settings.scale, chunk)
            queries[chunk.flat, chunk.rows] = work.query_gradient(scores, chunk)
            if ctx.needs_input_grad[5]:
                work.additive.leave(scores, chunk)
        found = work.gradients(values)
        wanted = zip(NAMES, ctx.needs_input_grad[5:])
        return (None, None, *moved, *[found.get(name) if yes else None for name, yes in wanted])


def _pass(settings: Settings, inputs: Sequence[Optional[Tensor]]) -> Pass:
    padding_mask, queries, keys, values, *tables = inputs
    return Pass(settings, padding_mask, queries, keys, values, tables)


def _like(tensor: Tensor, channels: int) -> Tensor:
    """Return new memory ``(B, H, T, channels)``, in the order ``(T, B, H, channels)``."""
    batch, heads, length, _ = tensor.shape
    return tensor.new_empty(length, batch, heads, channels).permute(1, 2, 0, 3)


def _plainly(
    settings: Settings,
    inputs: Sequence[Optional[Tensor]],
    weights: Sequence[Tensor],
    gradient: Tensor,
    wanted: Sequence[bool],
) -> Tuple[Optional[Tensor], ...]:
    """Return the gradients of all inputs but the mask, such that they have gradients in turn."""
    with torch.no_grad():
        work = _pass(settings, inputs)
        factors = torch.zeros(work.layout.shape)
        by_matrix = flat(factors)
        for chunk, signed in zip(work.chunks(), weights):
            kept = torch.signbit(signed).logical_not_()
            by_matrix[chunk.flat, chunk.rows, : chunk.columns] = kept * work.kept_scale
    # An alias each: the same tensor may come in twice.
    aliases = [None if tensor is None else tensor.view_as(tensor) for tensor in inputs[1:]]
    queries, keys, values, *tables = aliases
    terms = CoreTerms(settings.scale, **dict(zip(NAMES, tables)))
    outputs = plain.weigh(queries, keys, terms, inputs[0], settings.causal) * factors
    outputs = plain.blend(outputs, values, terms)
    asked = [alias for alias, is_wanted in zip(aliases, wanted) if is_wanted]
    found = iter(
        torch.autograd.grad(outputs, asked, gradient, create_graph=True, allow_unused=True)
    )
    return tuple(next(found) if is_wanted else None for is_wanted in wanted)
