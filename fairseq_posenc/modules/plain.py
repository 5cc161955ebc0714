"""Attention with position terms, written plainly: right on any device and in any precision.

Every faster way in this folder is tested against this one, and gives way to it where it cannot go.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass
class CoreTerms:
    """What enters the scores and outputs of one attention besides queries, keys and values.

    The same as :class:`fairseq_posenc.encodings.base.AttentionTerms`, where the formula is, except
    that rotation is over and distances are projected: ``distance_keys`` is ``(heads, Q + K - 1,
    head channels)``, by falling distance from ``K - 1`` to ``1 - Q``.
    """

    scale: float
    bias: Optional[Tensor] = None
    segments: Optional[Tensor] = None
    segment_scalars: Optional[Tensor] = None
    relative_keys: Optional[Tensor] = None
    relative_values: Optional[Tensor] = None
    distance_keys: Optional[Tensor] = None
    content_query: Optional[Tensor] = None
    position_query: Optional[Tensor] = None


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    terms: CoreTerms,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """Return the outputs ``(B, H, Q, d)`` of attention, and its weights if they are asked for.

    Args:
        queries: ``(B, H, Q, d)``, the last ``Q`` of ``K`` positions; not scaled yet.
        keys: ``(B, H, K, d)``.
        values: ``(B, H, K, d)``.
        terms: the scale and what the encoding adds.
        padding_mask: ``(B, K)`` bool, true where a key must not be looked at. A query that may look
            at nothing gets some finite output.
        causal: whether a query sees no later key; ``Q = K``.
        dropout_p: probability that a weight is dropped; 0 when not training.
        need_weights: whether to return the weights ``(B, H, Q, K)``, before dropout, in float32 at
            least; otherwise ``None`` stands in their place.
    """
    scores = _scores(queries, keys, terms)
    lowest = torch.finfo(scores.dtype).min
    if padding_mask is not None:
        scores = scores.masked_fill(padding_mask[:, None, None], lowest)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, lowest)
    weights = scores.softmax(dim=-1)
    kept = F.dropout(weights, dropout_p)
    outputs = kept.to(values.dtype) @ values
    if terms.relative_values is not None:
        table = terms.relative_values.to(values.dtype)
        nothing = kept.new_zeros(kept.shape[:-1] + (table.size(0),))
        by_distance = nothing.scatter_add(-1, _table_rows(kept.shape, table), kept)
        outputs = outputs + by_distance.to(values.dtype) @ table
    return outputs, weights if need_weights else None


def _scores(queries: Tensor, keys: Tensor, terms: CoreTerms) -> Tensor:
    """Return the scores ``(B, H, Q, K)`` before masks, in float32 at least."""
    dtype = torch.promote_types(queries.dtype, torch.float32)
    batch, heads, length, _ = queries.shape
    every = (batch, heads, length, keys.size(-2))
    scores = (_scaled(queries, terms.content_query, terms.scale) @ keys.transpose(-1, -2)).to(dtype)
    if terms.distance_keys is not None:
        moved = _scaled(queries, terms.position_query, terms.scale)
        by_distance = torch.einsum("bhqd,hcd->bhqc", moved, terms.distance_keys.to(moved.dtype))
        columns = keys.size(-2) - 1 - _distances(*every[2:], keys.device)
        scores = scores + by_distance.gather(-1, columns.expand(every)).to(dtype)
    if terms.relative_keys is not None:
        table = terms.relative_keys.to(queries.dtype)
        by_distance = _scaled(queries, None, terms.scale) @ table.transpose(0, 1)
        rows = _table_rows(every, table)
        scores = scores + by_distance.gather(-1, rows).to(dtype)
    if terms.bias is not None:
        scores = scores + terms.bias.to(dtype)
    if terms.segments is not None:
        segments = terms.segments.to(dtype).unsqueeze(1)
        by_pair = segments @ terms.segment_scalars.to(dtype) @ segments.transpose(-1, -2)
        scores = scores + by_pair
    return scores


def _scaled(queries: Tensor, shift: Optional[Tensor], scale: float) -> Tensor:
    """Return ``scale · (queries + shift)``, with a shift ``(heads, head channels)`` or none."""
    if shift is not None:
        queries = queries + shift.to(queries.dtype).unsqueeze(1)
    return queries * scale


def _distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return the distances ``(Q, K)``, query minus key."""
    line = torch.arange(keys, device=device)
    return line[keys - queries :, None] - line


def _table_rows(shape: Tuple[int, int, int, int], table: Tensor) -> Tensor:
    """Return which row of a table of clipped distances serves each score, in their shape."""
    limit = table.size(0) // 2
    distances = _distances(shape[2], shape[3], table.device)
    return (distances.clamp(-limit, limit) + limit).expand(shape)
