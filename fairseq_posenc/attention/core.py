"""The one entrance to attention with position terms: it picks the fastest way that is right.

The choices are measured: forward and backward, or forward alone, widths of 64 per head, lengths
from 12 to 1500.
"""

import math
import os
from functools import lru_cache
from types import ModuleType
from typing import Optional, Tuple

from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import cpu, plain
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms

# Below this many queries, as when decoding step by step, what counts is the number of operations.
_FEW_QUERIES = 16
# Between these lengths our own way is at least as fast as torch's. Above, it is too in training,
# but torch's does not keep the weights, so it needs less memory.
_SHORT, _LONG = 64, 1024
# From this length on, our own causal attention saves the time of the future, mask or not.
_LONG_CAUSAL = 256


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    terms: AttentionTerms,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """Return the outputs ``(B, H, Q, d)`` of attention, and its weights if they are asked for.

    For the arguments see :class:`fairseq_posenc.attention.plain.Inputs`.

    Args:
        need_weights: whether to return the weights ``(B, H, Q, K)``, before dropout, in float32 at
            least; otherwise ``None`` stands in their place.
    """
    inputs = Inputs(queries, keys, values, terms, padding_mask, causal, dropout_p)
    if need_weights:
        return plain.attend(inputs)
    if queries.is_cuda and _torch_can(terms):
        return _torch_attend(inputs), None
    fused = _fused_relative() if queries.is_cuda else None
    if fused is not None and fused.supports(inputs):
        return fused.attend(inputs), None
    if not cpu.supports(inputs):
        return plain.attend(inputs)[0], None
    learns = cpu.needs_gradient(inputs)
    # With dropout the way must be the same in any case: activation checkpointing goes it twice,
    # first without gradients, and what is dropped must not differ.
    if not learns and not dropout_p and queries.size(2) < _FEW_QUERIES:
        return plain.attend(inputs)[0], None
    if _torch_is_faster(inputs, learns):
        return _torch_attend(inputs), None
    return cpu.attend(inputs), None


def _torch_can(terms: AttentionTerms) -> bool:
    """Tell whether all terms can be put into one mask, as they do not depend on the queries."""
    others = (terms.relative_keys, terms.relative_values, terms.distance_keys, terms.content_query)
    return all(term is None for term in others)


@lru_cache(maxsize=None)
def _fused_relative() -> Optional[ModuleType]:
    """Return the kernels for relative keys, values and distances on a GPU, if they may be used.

    They need Triton, which torch brings for GPUs; ``POSENC_ATTENTION=plain`` switches them off.
    """
    if os.environ.get("POSENC_ATTENTION") == "plain":
        return None
    try:
        from fairseq_posenc.attention.gpu import relative
    except ImportError:
        return None
    return relative


def _torch_is_faster(inputs: Inputs, learns: bool) -> bool:
    """Tell whether torch's own attention is the best way on a CPU."""
    length, terms = inputs.keys.size(2), inputs.terms
    if not _torch_can(terms) or terms.segments is not None or inputs.dropout_p:
        return False
    if learns and terms.bias is not None and terms.bias.requires_grad:
        return False
    if inputs.causal and length >= _LONG_CAUSAL:
        return False
    if learns or (terms.bias is not None and inputs.padding_mask is not None):
        return length < _SHORT or (length >= _LONG and terms.bias is None)
    return True


def _torch_attend(inputs: Inputs) -> Tensor:
    """Call torch's own attention, with everything that is added to scores as one mask."""
    queries, keys, values, terms, padding_mask, causal, dropout_p = inputs
    # Its argument for another scale came with torch 2.1.
    ratio = terms.scale * math.sqrt(queries.size(-1))
    if abs(ratio - 1) > 1e-9:
        queries = queries * ratio
    mask = plain.additive_bias(terms, queries.dtype)
    if padding_mask is not None:
        padding = plain.padding_bias(padding_mask, queries.dtype)
        mask = padding if mask is None else mask + padding
    if causal and mask is not None:
        mask = mask + plain.causal_bias(queries.size(2), queries.dtype, queries.device)
    is_causal = causal and mask is None
    return F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal
    )
