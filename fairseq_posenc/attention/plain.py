"""Attention with position terms, written plainly: right on any device and in any precision.

Every faster backend is tested against this one, and leaves to it what it cannot do itself.
"""

from typing import Iterator, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.encodings.by_distance import to_toeplitz


class Inputs(NamedTuple):
    """The arguments of attention.

    Attributes:
        queries: ``(B, H, Q, d)``; in self-attention the last ``Q`` of ``K`` positions, rotated, but
            not scaled yet.
        keys: ``(B, H, K, d)``; in self-attention rotated.
        values: ``(B, H, K, d)``.
        terms: what the encoding adds, with the scale and, if there are distances, their keys.
        padding_mask: ``(B, K)`` bool, true where a key is masked. A query whose keys are all
            masked gets some finite output.
        causal: whether a query sees no later key; ``Q = K``.
        dropout_p: probability that a weight is dropped; 0 where dropout is not active.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    terms: AttentionTerms
    padding_mask: Optional[Tensor] = None
    causal: bool = False
    dropout_p: float = 0.0


def attend(inputs: Inputs) -> Tuple[Tensor, Tensor]:
    """Return the outputs ``(B, H, Q, d)`` of attention, and its weights before dropout."""
    weights = attention_weights(inputs)
    dropped = F.dropout(weights, inputs.dropout_p)
    return weighted_values(dropped, inputs.values, inputs.terms), weights


def rotated(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotate the pairs of channels of ``(length, batch, channels)`` by complex numbers.

    Args:
        x: computed with in float32 at least.
        rotation: ``(length, batch or 1, 1, head channels // 2)``; absolute values stretch. If it
            has the batch first, so has ``x``.
    """
    # channel_pairs: (length, batch, heads, head channels / 2) complex
    # a pair (a, b) as a + ib, times cos θ + i sin θ, is the pair rotated by θ
    precise = x.to(torch.promote_types(x.dtype, torch.float32))
    channel_pairs = torch.view_as_complex(precise.unflatten(-1, (-1, rotation.size(-1), 2)))
    return torch.view_as_real(channel_pairs * rotation).flatten(-3).to(x.dtype)


def attention_weights(inputs: Inputs) -> Tensor:
    """Return the weights ``(B, H, Q, K)`` before dropout, in float32 at least."""
    return scores_of(inputs).softmax(dim=-1)


def scores_of(inputs: Inputs) -> Tensor:
    """Return the scores ``(B, H, Q, K)``, in float32 at least; masked ones are very low."""
    queries, keys, terms = inputs.queries, inputs.keys, inputs.terms
    dtype = torch.promote_types(queries.dtype, torch.float32)
    # once, so that every product with queries below is scaled
    queries = queries * terms.scale
    # content: scale · (q + u) · k; scores: (B, H, Q, K)
    content = plus(queries, terms.content_query, terms.scale)
    scores = (content @ keys.transpose(-1, -2)).to(dtype)
    for scores_of_pairs in scores_of_positions(queries, terms, keys.size(2)):
        scores += scores_of_pairs.to(dtype)
    # terms without queries: bias and segments (1 or B, 1 or H, Q, K), padding, the future
    bias = additive_bias(terms, dtype)
    if bias is not None:
        scores += bias
    # masked: (B or 1, 1, 1 or Q, K), added once
    masked = None if inputs.padding_mask is None else padding_bias(inputs.padding_mask, dtype)
    if inputs.causal:
        future = causal_bias(queries.size(2), dtype, scores.device)
        masked = future if masked is None else masked + future
    if masked is not None:
        scores += masked
    return scores


def scores_of_positions(queries: Tensor, terms: AttentionTerms, keys: int) -> Iterator[Tensor]:
    """Yield what positions add to scores by the queries, each ``(B, H, Q, K)``.

    Args:
        queries: ``(B, H, Q, d)``, scaled.
        terms: of the attention.
        keys: their number K.
    """
    size = torch.Size([*queries.shape[:3], keys])
    if terms.distance_keys is not None:
        # scale · (q + v) · W_K distances; by_distance: (B, H, Q, distances), from K - 1 down
        position = plus(queries, terms.position_query, terms.scale)
        distance_keys = terms.distance_keys.to(position.dtype)
        by_distance = torch.einsum("bhqd,hcd->bhqc", position, distance_keys)
        if queries.size(2) > 1:
            # distance of each pair to its column; a single query needs all columns in this order.
            # Distances that are missing are those of the future, which the mask hides.
            columns = (keys - 1 - _distances(size, queries.device)).clamp(
                max=by_distance.size(-1) - 1
            )
            by_distance = by_distance.gather(-1, columns.expand(size))
        yield by_distance
    if terms.relative_keys is not None:
        # scale · q · relative_keys
        yield _relative_scores(queries, terms.relative_keys.to(queries.dtype), size)


def weighted_values(weights: Tensor, values: Tensor, terms: AttentionTerms) -> Tensor:
    """Return the outputs ``(B, H, Q, d)`` of weights ``(B, H, Q, K)``."""
    outputs = weights.to(values.dtype) @ values
    if terms.relative_values is not None:
        outputs = outputs + _relative_outputs(weights, terms.relative_values.to(values.dtype))
    return outputs


def additive_bias(terms: AttentionTerms, dtype: torch.dtype) -> Optional[Tensor]:
    """Return the terms that do not depend on queries: the biases and the segments' scalars.

    ``(batch or 1, heads or 1, Q, K)``, or ``None`` if there is nothing.
    """
    total = None if terms.bias is None else terms.bias.to(dtype).unsqueeze(0)
    if terms.bias_by_distance is not None:
        # as many queries as keys, as in whole sequences alone distances stay in a row
        scalars = terms.bias_by_distance.to(dtype)
        length = (scalars.size(-1) + 1) // 2
        matrix = to_toeplitz(scalars, length, length).unsqueeze(0)
        total = matrix if total is None else total + matrix
    if terms.index_queries is not None:
        matrix = terms.index_queries.to(dtype) @ terms.index_keys.to(dtype).transpose(1, 2)
        total = matrix.unsqueeze(0) if total is None else total + matrix
    if terms.segments is None:
        return total
    # one-hot rows pick the scalar of each pair; segments: (B, 1, K, S), by_pair: (B, 1 or H, Q, K)
    segments = terms.segments.to(dtype).unsqueeze(1)
    by_pair = segments @ terms.segment_scalars.to(dtype) @ segments.transpose(-1, -2)
    return by_pair if total is None else total + by_pair


def padding_bias(padding_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the bias ``(B, 1, 1, K)`` of a mask ``(B, K)``, true at padding."""
    bias = torch.zeros(padding_mask.shape, dtype=dtype, device=padding_mask.device)
    return bias.masked_fill_(padding_mask, _mask_value(dtype))[:, None, None]


def causal_bias(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the bias ``(1, length, length)`` that hides the future."""
    return torch.full((1, length, length), _mask_value(dtype), dtype=dtype, device=device).triu_(1)


def _mask_value(dtype: torch.dtype) -> float:
    """Return the bias of a masked key.

    It outweighs any score, and two of them are still finite, so that a query whose keys are all
    masked gets finite weights.
    """
    return torch.finfo(dtype).min / 2


def plus(queries: Tensor, shift: Optional[Tensor], scale: float) -> Tensor:
    """Add ``scale · shift``, with a shift ``(heads, head channels)`` or none."""
    return queries if shift is None else queries + (shift * scale).to(queries.dtype).unsqueeze(1)


def _distances(size: torch.Size, device: torch.device) -> Tensor:
    """Return the distances ``(Q, K)``, query minus key, of scores of this size."""
    queries, keys = size[2:]
    index = torch.arange(keys, device=device)
    return index[keys - queries :, None] - index


def _relative_scores(queries: Tensor, table: Tensor, size: torch.Size) -> Tensor:
    """Return the products of scaled queries with a table's rows, in the size of the scores."""
    if queries.size(2) > 1:
        table, rows = rows_of_pairs(table, size)
        # in float32 before the gradients of clipped distances are summed
        dtype = torch.promote_types(queries.dtype, torch.float32)
        return (queries @ table.transpose(0, 1)).to(dtype).gather(-1, rows)
    # one query: its clipped keys share the first row; products: (B, H, 1, K - num_clipped)
    num_clipped, table = _rows_of_last_query(table, size[3])
    products = queries @ table.transpose(0, 1)
    return torch.cat([products[..., :1].expand(-1, -1, -1, num_clipped), products], dim=-1)


def _relative_outputs(weights: Tensor, table: Tensor) -> Tensor:
    """Return the sums ``(B, H, Q, d)`` of a table's rows, weighted by ``(B, H, Q, K)``."""
    if weights.size(2) > 1:
        # weights of the same row are summed first; sums: (B, H, Q, rows)
        table, rows = rows_of_pairs(table, weights.shape)
        sums = weights.new_zeros(weights.shape[:-1] + table.shape[:1])
        return sums.scatter_add(-1, rows, weights).to(table.dtype) @ table
    # one query: the weights of its clipped keys and of the next one meet in the first row
    num_clipped, table = _rows_of_last_query(table, weights.size(3))
    clipped = weights[..., : num_clipped + 1].sum(dim=-1, keepdim=True)
    return torch.cat([clipped, weights[..., num_clipped + 1 :]], dim=-1).to(table.dtype) @ table


def rows_of_pairs(table: Tensor, size: torch.Size) -> Tuple[Tensor, Tensor]:
    """Return the rows of a table that are used, and for each score ``(B, H, Q, K)`` which one."""
    unused = max(table.size(0) // 2 - (size[3] - 1), 0)
    table = table[unused : table.size(0) - unused]
    max_distance = table.size(0) // 2
    rows = _distances(size, table.device).clamp(-max_distance, max_distance) + max_distance
    return table, rows.expand(size)


def _rows_of_last_query(table: Tensor, keys: int) -> Tuple[int, Tensor]:
    """Return the rows of a table that the last query needs, by rising key position.

    The first row serves the keys before as well, which are clipped. Their number is returned first.
    """
    max_distance = table.size(0) // 2
    num_clipped = max(keys - 1 - max_distance, 0)
    return num_clipped, table[max_distance : max_distance + keys - num_clipped].flip(0)
