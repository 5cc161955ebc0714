"""The chunked attention as a function that torch can differentiate, once in chunks or twice."""

from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention import plain
from fairseq_posenc.attention.cpu import relative
from fairseq_posenc.attention.cpu.chunk_pass import NAMES, ChunkPass, Settings
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms


def supports(inputs: Inputs) -> bool:
    """Tell whether :func:`attend` can take these inputs."""
    queries, keys, terms = inputs.queries, inputs.keys, inputs.terms
    if any(t.dtype != torch.float32 or t.device.type != "cpu" for t in _tensors(inputs)):
        return False
    if inputs.dropout_p >= 1 or 0 in queries.shape or 0 in keys.shape:
        return False
    if terms.segments is not None and terms.segments.requires_grad:
        return False
    tables = [t for t in (terms.relative_keys, terms.relative_values) if t is not None]
    if tables and terms.content_query is not None:
        return False
    return all(relative.supports(queries.size(2), keys.size(2), table.size(0)) for table in tables)


def needs_gradient(inputs: Inputs) -> bool:
    """Tell whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(inputs))


def _tensors(inputs: Inputs) -> List[Tensor]:
    """Return all tensors but the mask."""
    terms = [term for term in vars(inputs.terms).values() if isinstance(term, Tensor)]
    return [inputs.queries, inputs.keys, inputs.values, *terms]


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs of attention, as :func:`fairseq_posenc.attention.plain.attend` does.

    For inputs that :func:`supports` accepts. The outputs ``(B, H, Q, d)`` lie in memory as
    ``(Q, B, H, d)``, and so do the gradients of queries, keys and values. What is dropped comes
    from torch's generator, and depends on the number of threads. Gradients of gradients are
    computed by the plain implementation.
    """
    queries, terms = inputs.queries, inputs.terms
    if terms.content_query is not None:
        # u goes into the queries, and out of the v that they get for distances
        shift = terms.position_query
        if terms.distance_keys is not None:
            shift = -terms.content_query if shift is None else shift - terms.content_query
        queries = queries + terms.content_query.unsqueeze(1)
        terms = replace(terms, content_query=None, position_query=shift)
    keep, threads = needs_gradient(inputs), torch.get_num_threads()
    settings = Settings(terms.scale, inputs.causal, inputs.dropout_p, keep, threads)
    tables = [getattr(terms, name) for name in NAMES]
    tensors = (inputs.padding_mask, queries, inputs.keys, inputs.values)
    return _ChunkedAttention.apply(settings, *tensors, *tables)


class _ChunkedAttention(torch.autograd.Function):
    """Attention; the arguments after the padding mask are differentiable.

    The weights of all chunks are kept for the backward pass; the sign of one tells whether it was
    dropped.
    """

    @staticmethod
    def forward(ctx, settings, padding_mask, queries, keys, values, *tables):
        work = ChunkPass(settings, padding_mask, queries, keys, values, *tables)
        outputs = _time_first(queries, values.size(-1))
        by_matrix = outputs.flatten(0, 1)
        weights, condensed = [], []
        for chunk in work.chunks():
            part, signed, by_distance = work.forward(chunk)
            by_matrix[chunk.matrices, chunk.rows] = part
            if settings.keep:
                weights.append(signed)
                condensed.append(by_distance)
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
        needs = ctx.needs_input_grad[2:]
        if torch.is_grad_enabled():
            again = _differentiable_gradients(ctx.settings, inputs, weights, gradient, needs)
            return (None, None, *again)
        work = ChunkPass(ctx.settings, *inputs)
        gradients = [_time_first(tensor, tensor.size(-1)) for tensor in inputs[1:4]]
        into, by_matrix = [x.flatten(0, 1) for x in gradients], gradient.flatten(0, 1)
        for chunk, signed, by_distance in zip(work.chunks(), weights, condensed):
            part = by_matrix[chunk.matrices, chunk.rows]
            scores = work.backward(chunk, signed, by_distance, part, into)
            if needs[3]:
                work.additive.backward(scores, chunk)
        found = work.table_gradients(into[2])
        tables = [found.get(name) if yes else None for name, yes in zip(NAMES, needs[3:])]
        return (None, None, *gradients, *tables)


def _time_first(tensor: Tensor, channels: int) -> Tensor:
    """Return new memory ``(B, H, T, channels)``, in the order ``(T, B, H, channels)``."""
    batch, heads, length, _ = tensor.shape
    return tensor.new_empty(length, batch, heads, channels).permute(1, 2, 0, 3)


def _differentiable_gradients(
    settings: Settings,
    inputs: Sequence[Optional[Tensor]],
    weights: Sequence[Tensor],
    gradient: Tensor,
    needs: Sequence[bool],
) -> Tuple[Optional[Tensor], ...]:
    """Return the gradients of all inputs but the mask, such that they have gradients in turn.

    The plain implementation computes them, with the weights dropped that were dropped before.
    """
    with torch.no_grad():
        work = ChunkPass(settings, *inputs)
        factors = torch.zeros(work.layout[:4])
        by_matrix = factors.flatten(0, 1)
        for chunk, signed in zip(work.chunks(), weights):
            kept = torch.signbit(signed).logical_not_()
            by_matrix[chunk.matrices, chunk.rows, : chunk.columns] = kept * work.kept_scale
    # An alias each: the same tensor may come in twice.
    aliases = [None if tensor is None else tensor.view_as(tensor) for tensor in inputs[1:]]
    queries, keys, values, *tables = aliases
    terms = AttentionTerms(settings.scale, **dict(zip(NAMES, tables)))
    again = Inputs(queries, keys, values, terms, inputs[0], settings.causal)
    outputs = plain.weighted_values(plain.attention_weights(again) * factors, values, terms)
    wanted = [alias for alias, needed in zip(aliases, needs) if needed]
    found = iter(
        torch.autograd.grad(outputs, wanted, gradient, create_graph=True, allow_unused=True)
    )
    return tuple(next(found) if needed else None for needed in needs)
