"""Attention with position terms, written plainly: right on any device and in any precision.

Every faster way in this folder is tested against this one, and gives way to it where it cannot go.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention.masks import causal_bias, padding_bias


@dataclass
class CoreTerms:
    """What enters the scores and outputs of one attention besides queries, keys and values.

    The same as :class:`fairseq_posenc.encodings.base.AttentionTerms`, where the formula is, except
    that rotation is over and distances are projected: ``distance_keys`` is ``(heads, Q + K - 1,
    head channels)``, by falling distance from ``K - 1`` to ``1 - Q``; when attention is causal
    those below ``-1`` may be left out.
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
    weights = weigh(queries, keys, terms, padding_mask, causal)
    outputs = blend(F.dropout(weights, dropout_p), values, terms)
    return outputs, weights if need_weights else None


def weigh(
    queries: Tensor,
    keys: Tensor,
    terms: CoreTerms,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
) -> Tensor:
    """Return the weights ``(B, H, Q, K)`` of :func:`attend`, before dropout."""
    scores = _scores(queries, keys, terms)
    if padding_mask is not None:
        scores = scores + padding_bias(padding_mask, scores.dtype)
    if causal:
        scores = scores + causal_bias(queries.size(2), scores.dtype, scores.device)
    return scores.softmax(dim=-1)


def blend(weights: Tensor, values: Tensor, terms: CoreTerms) -> Tensor:
    """Return the outputs ``(B, H, Q, d)`` of weights ``(B, H, Q, K)``."""
    outputs = weights.to(values.dtype) @ values
    if terms.relative_values is not None:
        outputs = outputs + _relative_outputs(weights, terms.relative_values.to(values.dtype))
    return outputs


def _scores(queries: Tensor, keys: Tensor, terms: CoreTerms) -> Tensor:
    """Return the scores ``(B, H, Q, K)`` before masks, in float32 at least."""
    dtype = torch.promote_types(queries.dtype, torch.float32)
    queries = queries * terms.scale
    content = _shifted(queries, terms.content_query, terms.scale)
    scores = (content @ keys.transpose(-1, -2)).to(dtype)
    if terms.distance_keys is not None:
        moved = _shifted(queries, terms.position_query, terms.scale)
        by_distance = torch.einsum("bhqd,hcd->bhqc", moved, terms.distance_keys.to(moved.dtype))
        if queries.size(2) > 1:
            columns = (keys.size(2) - 1 - _distances(scores)).clamp(max=by_distance.size(-1) - 1)
            by_distance = by_distance.gather(-1, columns.expand(scores.shape))
        scores = scores + by_distance.to(dtype)
    if terms.relative_keys is not None:
        by_distance = _relative_scores(queries, terms.relative_keys.to(queries.dtype), scores)
        scores = scores + by_distance.to(dtype)
    sums = added(terms, dtype)
    return scores if sums is None else scores + sums


def added(terms: CoreTerms, dtype: torch.dtype) -> Optional[Tensor]:
    """Return what is added to scores whatever the queries and keys: the bias and the segments'.

    ``(batch or 1, heads or 1, Q, K)``, or ``None`` if there is nothing.
    """
    total = None if terms.bias is None else terms.bias.to(dtype).unsqueeze(0)
    if terms.segments is None:
        return total
    segments = terms.segments.to(dtype).unsqueeze(1)
    by_pair = segments @ terms.segment_scalars.to(dtype) @ segments.transpose(-1, -2)
    return by_pair if total is None else total + by_pair


def _shifted(queries: Tensor, shift: Optional[Tensor], scale: float) -> Tensor:
    """Add ``scale · shift``, with a shift ``(heads, head channels)`` or none."""
    return queries if shift is None else queries + (shift * scale).to(queries.dtype).unsqueeze(1)


def _distances(scores: Tensor) -> Tensor:
    """Return the distances ``(Q, K)`` of scores ``(B, H, Q, K)``, query minus key."""
    queries, keys = scores.shape[2:]
    line = torch.arange(keys, device=scores.device)
    return line[keys - queries :, None] - line


def _table_rows(scores: Tensor, rows: int) -> Tensor:
    """Return for each score which row of a table of clipped distances serves it."""
    farthest = rows // 2
    return (_distances(scores).clamp(-farthest, farthest) + farthest).expand(scores.shape)


def _reachable(table: Tensor, keys: int) -> Tensor:
    """Return the middle rows of a table, which serve the distances that there are among keys."""
    beyond = max(table.size(0) // 2 - (keys - 1), 0)
    return table[beyond : table.size(0) - beyond]


def _near(keys: int, table: Tensor) -> Tuple[int, Tensor]:
    """Return what one query at the end needs of a table: its rows by rising key position.

    The first one serves all keys before too, whose number comes first.
    """
    farthest = table.size(0) // 2
    farther = max(keys - 1 - farthest, 0)
    return farther, table[farthest : farthest + keys - farther].flip(0)


def _relative_scores(queries: Tensor, table: Tensor, scores: Tensor) -> Tensor:
    """Return the products of scaled queries with a table's rows, in the shape of the scores."""
    if queries.size(2) > 1:
        table = _reachable(table, scores.size(3))
        rows = _table_rows(scores, table.size(0))
        return (queries @ table.transpose(0, 1)).gather(-1, rows)
    farther, near = _near(scores.size(3), table)
    products = queries @ near.transpose(0, 1)
    return torch.cat([products[..., :1].expand(-1, -1, -1, farther), products], dim=-1)


def _relative_outputs(weights: Tensor, table: Tensor) -> Tensor:
    """Return the sums ``(B, H, Q, d)`` of a table's rows, weighted by ``(B, H, Q, K)``."""
    if weights.size(2) > 1:
        table = _reachable(table, weights.size(3))
        sums = weights.new_zeros(weights.shape[:-1] + table.shape[:1])
        sums = sums.scatter_add(-1, _table_rows(weights, table.size(0)), weights)
        return sums.to(table.dtype) @ table
    farther, near = _near(weights.size(3), table)
    far = weights[..., : farther + 1].sum(dim=-1, keepdim=True)
    return torch.cat([far, weights[..., farther + 1 :]], dim=-1).to(table.dtype) @ near
