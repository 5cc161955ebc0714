"""torch's own attention, one fused kernel, with everything that is added to the scores as a mask.

On a GPU it is the fast backend for all terms of the scores. What depends on the queries needs a
mask per sequence; for the rest there is one for all. On a CPU ``core`` knows when it is fast.
"""

import math
from dataclasses import replace
from typing import Any, Dict, List

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import plain
from fairseq_posenc.attention.plain import Inputs

# What a further channel gives to the scores of masked keys; exact in half precision.
_MASK_VALUE = -(2.0**14)
# Fused kernels take widths that are multiples of this.
_ALIGNMENT = 8


def supports(inputs: Inputs) -> bool:
    """Return whether all terms can be put into one mask, as they do not depend on the queries."""
    terms = inputs.terms
    of_queries = (terms.relative_keys, terms.distance_keys, terms.content_query)
    return supports_queries(inputs) and all(term is None for term in of_queries)


def supports_queries(inputs: Inputs) -> bool:
    """Return whether all terms can be put into a mask, which may depend on the queries."""
    return inputs.terms.relative_values is None  # these are not added to the scores


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs ``(B, H, Q, d)`` of attention, for inputs that are supported."""
    queries, keys, values, terms, padding_mask, causal, dropout_p = inputs
    options: Dict[str, Any] = {}
    if abs(terms.scale * math.sqrt(queries.size(-1)) - 1) > 1e-9:
        options["scale"] = terms.scale  # torch divides by √d
    # mask: (B or 1, H or 1, Q or 1, K), added to the scores, or None; torch wants it in the type of
    # the queries, so that in half precision the bias is rounded, which plain does not
    mask = plain.additive_bias(terms, queries.dtype)
    if not supports(inputs):
        for scores in plain.scores_of_positions(queries * terms.scale, terms, keys.size(2)):
            mask = scores.to(queries.dtype) if mask is None else mask + scores.to(queries.dtype)
        queries = plain.plus(queries, terms.content_query, 1.0)  # torch multiplies by the scale
    if padding_mask is not None:
        padding = plain.padding_bias(padding_mask, queries.dtype)
        mask = padding if mask is None else mask + padding
    # torch takes a mask or is_causal, not both
    if causal and mask is not None:
        mask = mask + plain.causal_bias(queries.size(2), queries.dtype, queries.device)
    is_causal = causal and mask is None
    width = values.size(-1)
    widened = mask is None and queries.size(-1) > width
    if widened:  # flash attention, which takes no mask, takes one width alone
        values = F.pad(values, (0, queries.size(-1) - width))
    outputs = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal, **options
    )
    return outputs[..., :width] if widened else outputs


def with_one_mask(inputs: Inputs) -> Inputs:
    """Return inputs that need no mask ``(B, H, Q, K)``: one for all sequences, or of padding alone.

    On a GPU torch's attention is fastest with a mask ``(1, H, Q, K)`` or without one; padding and
    segments would need ``(B, H, Q, K)``. So they become further channels of queries and keys, whose
    product is what the mask would have added to the score: the segments' scalar, or at padding a
    number that hides the key. What is left for the mask is the bias; without a bias causal
    attention stays torch's own.

    It does not pay where padding alone needs a small mask ``(B, 1, 1, K)``: in attention that has
    no bias and is not causal, and for a single query.
    """
    queries, keys, values, terms, padding_mask, causal, dropout_p = inputs
    # of either, the mask has a row per query; padding alone is the same for all queries
    needs_large_mask = causal or terms.bias is not None
    padding_is_cheap = padding_mask is None or not needs_large_mask or queries.size(2) == 1
    if terms.segments is None and padding_is_cheap:
        return inputs
    of_queries: List[Tensor] = []
    of_keys: List[Tensor] = []
    if terms.segments is not None:
        # product of query i and key j: scalars[segment of i, segment of j] / scale, as attention
        # multiplies all products by the scale; segments: (B, 1, T, S) one-hot
        segments = terms.segments.to(queries.dtype).unsqueeze(1)
        scalars = (terms.segment_scalars / terms.scale).to(queries.dtype)
        of_queries, of_keys = [segments @ scalars], [segments]
    if padding_mask is not None:
        # 1 / scale times 0 at tokens, _MASK_VALUE at padding; masked: (B, 1, K, 1)
        masked = padding_mask[:, None, :, None].to(keys.dtype) * _MASK_VALUE
        of_queries.append(torch.full_like(masked, 1 / terms.scale))
        of_keys.append(masked)
    queries, keys = _with_channels(queries, of_queries), _with_channels(keys, of_keys)
    terms = replace(terms, segments=None, segment_scalars=None)
    return Inputs(queries, keys, values, terms, None, causal, dropout_p)


def _with_channels(x: Tensor, further: List[Tensor]) -> Tensor:
    """Add channels ``(B, H or 1, T, …)`` to ``(B, H, T, d)``, and zeros up to a whole width."""
    parts = [part.expand(*x.shape[:3], -1) for part in further]
    width = sum(part.size(-1) for part in parts)
    return torch.cat([x, *parts, x.new_zeros(1).expand(*x.shape[:3], -width % _ALIGNMENT)], dim=-1)
