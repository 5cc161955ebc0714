"""Scores of attention taken apart: what positions add by themselves, what content, and ranks."""

import os
from dataclasses import replace
from typing import Any, Callable, Dict, Optional

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings.base import AttentionTerms, Positions
from fairseq_posenc.encodings.by_distance import to_toeplitz
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses.models import LoadedModel

Maps = Dict[int, Tensor]


def position_maps(
    encoder: PosencTransformerEncoder, length: int, segments: Optional[Tensor] = None
) -> Maps:
    """Return the scores of positions alone, for the layers that have any.

    - Scalars per head (T5, TUPE, ABS-SCALAR, REL-SCALAR, ALiBi, KERPLE): what is added to the
      logits.
    - Transformer-XL: its term without content, ``v · W_K R``, scaled.
    - Vectors at the input P (sinusoids, learned, SHAPE, uniform SHAPE, CAPE): in the first layer
      alone ``P W_Qᵀ W_K Pᵀ / √d`` (Chen et al. 2021, section 2.4), without biases and LayerNorms.
    - Random positions: the same as the encoding inside.

    Args:
        encoder: in evaluation, in float64 for exact ranks.
        length: n tokens, without padding.
        segments: ``(n,)`` long, the segment of each token, whose vectors or scalars are added;
            None: positions alone. For BERT's encoder only.

    Returns:
        For each layer, from 0, ``(heads, n, n)``: queries, keys.
    """
    positions = _positions(encoder, length)
    terms = encoder.embed_positions(positions)
    name, every = type(encoder.embed_positions).__name__, list(terms.attention.values())
    if terms.after_layer:
        raise UsageError(f"{name} has no scores of positions: it is a convolution of the content")
    if any(t.rotation is not None or t.relative_keys is not None for t in every):
        raise UsageError(
            f"{name} has no scores of positions alone: they depend on the queries' content"
        )
    if terms.input is None and not every:
        raise UsageError(f"{name} has no scores of positions at all")
    at_input = terms.input is not None
    if segments is not None:
        terms = encoder.terms(replace(positions, segments=segments.unsqueeze(0)))
    if at_input:
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
    # weights are (out, in), as PyTorch's: (b, n, c) -> (b, n, heads, c / heads)
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
    if terms.bias_by_distance is not None:
        scores = scores + to_toeplitz(terms.bias_by_distance, length, length)
    if terms.index_queries is not None and terms.index_keys is not None:
        scores = scores + terms.index_queries @ terms.index_keys.transpose(1, 2)
    if terms.distances is not None:
        # term (d) of Transformer-XL: v · W_K R of each distance, then of each pair of tokens
        core = attention.core_terms(terms, dtype=weight.dtype)
        by_distance = torch.einsum("hd,hkd->hk", core.position_query, core.distance_keys)
        by_pair = to_toeplitz(by_distance, length, length)
        scores = scores + attention.head_dim**-0.5 * by_pair
    if terms.segments is not None and terms.segment_scalars is not None:
        # rows are one-hot, so that s_i · S · s_jᵀ is the scalar of the two tokens' segments
        rows = terms.segments[0]
        scores = scores + rows @ terms.segment_scalars @ rows.transpose(0, 1)
    return scores


@torch.no_grad()
def content_scores(
    encoder: PosencTransformerEncoder, tokens: Tensor, maps: Maps
) -> Dict[str, Maps]:
    """Return the scores of content alone, Q Kᵀ, and the sum with those of positions.

    Args:
        encoder: in evaluation.
        tokens: ``(batch, n)``, without padding.
        maps: of :func:`position_maps` for the same n.

    Returns:
        ``content`` and ``both``: for each layer of ``maps``, ``(batch, heads, n, n)``.
    """
    vectors = input_vectors(encoder, tokens.size(1))
    if vectors is not None:
        first = encoder.layers[0].self_attn
        words = encoder.embed_scale * encoder.embed_tokens(tokens)
        inputs = {"content": words, "both": words + vectors}
        return {name: {0: products(first, x)} for name, x in inputs.items()}
    # encodings inside of attention: run the model, and keep each layer's own queries and keys
    seen: Maps = {}

    def keep_scores(layer: int) -> Callable[[Any, Any], None]:
        def hook(module: Any, inputs: Any) -> None:
            x, terms = inputs[:2]
            queries, keys = module.split(module.q_proj(x)), module.split(module.k_proj(x))
            # TUPE has its own: 1 / √(2 d)
            scale = module.head_dim**-0.5 if terms.scale is None else terms.scale
            seen[layer] = scale * queries @ keys.transpose(2, 3)

        return hook

    handles = [
        layer.self_attn.register_forward_pre_hook(keep_scores(number))
        for number, layer in enumerate(encoder.layers)
    ]
    try:
        encoder(tokens)
    finally:
        for handle in handles:
            handle.remove()
    content = {layer: seen[layer] for layer in maps}
    return {"content": content, "both": {layer: seen[layer] + maps[layer] for layer in maps}}


def running_text(loaded: LoadedModel, subset: str, length: int, count: int) -> Tensor:
    """Return ``count`` pieces ``(count, length)`` of the running text of a subset, or fewer.

    Each is like a sentence: with EOS, and with BOS where the model wants it.
    """
    task = loaded.task
    dictionary = task.source_dictionary
    folder, names = utils.split_paths(task.cfg.data)[0], [subset]
    if isinstance(task, TranslationTask):
        source, target = task.cfg.source_lang, task.cfg.target_lang
        orders = (f"{source}-{target}", f"{target}-{source}")
        names = [f"{subset}.{order}.{source}" for order in orders]
    datasets = (data_utils.load_indexed_dataset(os.path.join(folder, n), dictionary) for n in names)
    sentences = next((dataset for dataset in datasets if dataset is not None), None)
    if sentences is None:
        raise UsageError(f"there is no binarised {names[0]} in {folder}")
    text = torch.cat([sentences[index] for index in range(len(sentences))])
    text = text[text.ne(dictionary.eos()) & text.ne(dictionary.bos())]
    has_bos = getattr(task.cfg, "prepend_source_bos", not isinstance(task, TranslationTask))
    # what is left of the length beside EOS and BOS
    inner = length - 1 - has_bos
    rows = min(count, len(text) // inner) if inner > 0 else 0
    if not rows:
        raise UsageError(f"'{subset}' has {len(text)} tokens, which make no input of {length}")
    bos, eos = (text.new_full((rows, 1), mark) for mark in (dictionary.bos(), dictionary.eos()))
    parts = [*([bos] if has_bos else []), text[: rows * inner].view(rows, inner), eos]
    return torch.cat(parts, dim=1).to(next(loaded.model.parameters()).device)


def singular_values(matrices: Tensor) -> Tensor:
    """Return the singular values ``(…, n)`` of matrices ``(…, n, n)``, in float64, falling."""
    return torch.linalg.svdvals(matrices.double())


def ranks(matrices: Tensor, threshold: float) -> Tensor:
    """Return the numerical ranks ``(…)`` of matrices ``(…, n, n)`` (Chen et al. 2021, Figure 2).

    Our reading, as the paper names no threshold: the number of singular values that are more than
    ``threshold`` times the largest. That of a zero matrix is 0.
    """
    values = singular_values(matrices)
    return (values > threshold * values[..., :1]).sum(dim=-1)
