"""The chunked attention as a function that torch can differentiate, once."""

from dataclasses import replace
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention.cpu import relative
from fairseq_posenc.attention.cpu.chunk_pass import NAMES, ChunkPass, Settings
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.by_distance import LONG


def supports(inputs: Inputs) -> bool:
    """Return whether :func:`attend` can take these inputs."""
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
    """Return whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(inputs))


def _tensors(inputs: Inputs) -> List[Tensor]:
    """Return all tensors but the mask."""
    terms = [term for term in vars(inputs.terms).values() if isinstance(term, Tensor)]
    return [inputs.queries, inputs.keys, inputs.values, *terms]


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs of attention, as :func:`fairseq_posenc.attention.plain.attend` does.

    For inputs that :func:`supports` accepts. The outputs ``(B, H, Q, d)`` lie in memory as
    ``(Q, B, H, d)``, and so do the gradients of queries, keys and values. What is dropped comes
    from torch's generator, and depends on the number of threads. There are no gradients of
    gradients.
    """
    queries, terms = inputs.queries, inputs.terms
    if terms.content_query is not None:
        # u goes into the queries, and out of the v that they get for distances
        shift = terms.position_query
        if terms.distance_keys is not None:
            shift = -terms.content_query if shift is None else shift - terms.content_query
        queries = queries + terms.content_query.unsqueeze(1)
        terms = replace(terms, content_query=None, position_query=shift)
    learns, recompute = needs_gradient(inputs), inputs.keys.size(2) >= LONG
    settings = Settings(
        terms.scale, inputs.causal, inputs.dropout_p, learns and not recompute,
        recompute, torch.get_num_threads(),
    )  # fmt: skip
    tables = [getattr(terms, name) for name in NAMES]
    tensors = (inputs.padding_mask, queries, inputs.keys, inputs.values)
    return _ChunkedAttention.apply(settings, *tensors, *tables)


class _ChunkedAttention(torch.autograd.Function):
    """Attention; the arguments after the padding mask are differentiable.

    The signed weights of all chunks are kept for the backward pass: a dropped one is negative.
    Those of long sequences are not, but computed again from the same random numbers, so that memory
    grows with the length and not with its square.
    """

    @staticmethod
    def forward(ctx, settings, padding_mask, queries, keys, values, *tables):
        # before the first draw: the backward pass draws the same again
        if settings.recompute and settings.dropout_p:
            ctx.random_state = torch.get_rng_state()
        work = ChunkPass(settings, padding_mask, queries, keys, values, *tables)
        outputs = _time_first(queries, values.size(-1))  # (B, H, Q, d)
        by_matrix = outputs.flatten(0, 1)  # (B·H, Q, d)
        weights, distance_weights = [], []
        for chunk in work.chunks():
            part, signed, by_distance = work.forward(chunk)
            by_matrix[chunk.matrices, chunk.rows] = part
            if settings.keep:
                weights.append(signed)
                distance_weights.append(by_distance)
        ctx.settings = settings
        inputs = (padding_mask, queries, keys, values) + tables
        ctx.save_for_backward(*inputs, *weights, *distance_weights)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        # ctx.saved_tensors is read once: activation checkpointing allows no more.
        saved, split = ctx.saved_tensors, 4 + len(NAMES)
        inputs, number = saved[:split], (len(saved) - split) // 2
        by_chunk: Iterator[Tuple[Tensor, Any]] = zip(
            saved[split : split + number], saved[split + number :]
        )
        if ctx.settings.recompute:
            by_chunk = _recomputed(ctx, inputs)
        # of the tables, which come after settings, mask, queries, keys and values
        needs = ctx.needs_input_grad[5:]
        work = ChunkPass(ctx.settings, *inputs)
        gradients = [_time_first(tensor, tensor.size(-1)) for tensor in inputs[1:4]]
        into, by_matrix = [x.flatten(0, 1) for x in gradients], gradient.flatten(0, 1)
        for chunk, (signed, by_distance) in zip(work.chunks(), by_chunk):
            part = by_matrix[chunk.matrices, chunk.rows]
            scores = work.backward(chunk, signed, by_distance, part, into)
            if needs[0]:
                work.additive.backward(scores, chunk)
        by_name = work.table_gradients(into[2])
        tables = [by_name.get(name) if yes else None for name, yes in zip(NAMES, needs)]
        return (None, None, *gradients, *tables)


def _recomputed(ctx: Any, inputs: Sequence[Optional[Tensor]]) -> Iterator[Tuple[Tensor, Any]]:
    """Yield the signed weights of each chunk, and those by distance, as in the forward pass."""
    generator = torch.Generator()
    if ctx.settings.dropout_p:
        generator.set_state(ctx.random_state)
    work = ChunkPass(ctx.settings, *inputs, generator=generator)
    for chunk in work.chunks():
        yield work.forward(chunk)[1:]


def _time_first(tensor: Tensor, channels: int) -> Tensor:
    """Return new memory ``(B, H, T, channels)``, in the order ``(T, B, H, channels)``."""
    batch, heads, length, _ = tensor.shape
    return tensor.new_empty(length, batch, heads, channels).permute(1, 2, 0, 3)
