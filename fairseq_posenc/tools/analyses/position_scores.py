"""The scores that an encoding adds by itself, as maps of queries and keys."""

from dataclasses import replace
from typing import Dict, Optional

import torch
from torch import Tensor

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings.base import AttentionTerms, Positions, Terms
from fairseq_posenc.encodings.by_distance import to_toeplitz
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses.loading import table_size

Maps = Dict[int, Tensor]


def position_maps(
    encoder: PosencTransformerEncoder, length: int, segments: Optional[Tensor] = None
) -> Maps:
    """Return the scores of positions alone, for the layers that have any.

    - Scalars per head (T5, TUPE, ABS-SCALAR, REL-SCALAR, ALiBi): what is added to the logits.
    - Transformer-XL: its term without content, ``v · W_K R``, scaled.
    - Vectors at the input P (sinusoids, learned, SHAPE, CAPE): in the first layer alone
      ``P W_Qᵀ W_K Pᵀ / √d`` (Chen et al. 2021, section 2.4), without biases and LayerNorms.

    Args:
        encoder: in evaluation, in float64 for exact ranks.
        length: n tokens, without padding.
        segments: ``(n,)`` long, the segment of each token, whose vectors or scalars are added;
            None: positions alone. For BERT's encoder only.

    Returns:
        For each layer, from 0, ``(heads, n, n)``: queries, keys.

    Raises:
        UsageError: the encoding's scores depend on the content, or it has none, or its table is
            shorter than ``length``.
    """
    rows = table_size(encoder.embed_positions)
    if rows is not None and length > rows:
        raise UsageError(f"--length {length}: the table has {rows} positions only")
    positions = _positions(encoder, length)
    alone = terms = encoder.embed_positions(positions)
    _check_defined(type(encoder.embed_positions).__name__, alone)
    if segments is not None:
        terms = encoder.terms(replace(positions, segments=segments.unsqueeze(0)))
    if alone.input is not None:
        attention, of_layer = encoder.layers[0].self_attn, terms.attention.get(0, AttentionTerms())
        return {0: _of_attention(attention, of_layer, length) + products(attention, terms.input)[0]}
    return {
        layer: _of_attention(encoder.layers[layer].self_attn, of_layer, length)
        for layer, of_layer in terms.attention.items()
    }


def input_vectors(encoder: PosencTransformerEncoder, length: int) -> Optional[Tensor]:
    """Return the vectors ``(1, n, channels)`` that the encoding adds to the embeddings, if any."""
    return encoder.embed_positions(_positions(encoder, length)).input


def _positions(encoder: PosencTransformerEncoder, length: int) -> Positions:
    numbers = torch.arange(length, device=encoder.embed_tokens.weight.device)
    return Positions(numbers.double().unsqueeze(0))


def products(attention: SelfAttention, vectors: Tensor) -> Tensor:
    """Return ``X W_Qᵀ W_K Xᵀ / √d`` ``(batch, heads, n, n)`` of X ``(batch, n, channels)``."""
    queries, keys = (
        (vectors @ projection.weight.transpose(0, 1)).unflatten(-1, (-1, attention.head_dim))
        for projection in (attention.q_proj, attention.k_proj)
    )
    return torch.einsum("bqhd,bkhd->bhqk", queries, keys) * attention.head_dim**-0.5


def _of_attention(attention: SelfAttention, terms: AttentionTerms, length: int) -> Tensor:
    """Return what the terms of a layer add to all scores, ``(heads, n, n)``."""
    weight = attention.q_proj.weight
    scores = weight.new_zeros(attention.num_heads, length, length)
    if terms.bias is not None:
        scores = scores + terms.bias
    if terms.distances is not None:
        core = attention.core_terms(terms)
        by_distance = torch.einsum("hd,hkd->hk", core.position_query, core.distance_keys)
        by_pair = to_toeplitz(by_distance, length, length)
        scores = scores + attention.head_dim**-0.5 * by_pair
    if terms.segments is not None and terms.segment_scalars is not None:
        rows = terms.segments[0]
        scores = scores + rows @ terms.segment_scalars @ rows.transpose(0, 1)
    return scores


def _check_defined(name: str, terms: Terms) -> None:
    """Refuse encodings that have no scores of positions alone."""
    every = list(terms.attention.values())
    if terms.after_layer:
        raise UsageError(f"{name} has no scores of positions: it is a convolution of the content")
    if any(t.rotation is not None or t.relative_keys is not None for t in every):
        raise UsageError(
            f"{name} has no scores of positions alone: they depend on the queries' content"
        )
    if terms.input is None and not every:
        raise UsageError(f"{name} has no scores of positions at all")
