"""The one entrance to attention with position terms: it picks the fastest way that is right.

There are four ways: ``plain`` (everything, anywhere), ``torch`` (its fused attention), ``cpu`` and
``triton`` (ours). The first row that fits counts; lengths are numbers of keys:

=======  =============================================================  ==========================
device   case                                                           way
=======  =============================================================  ==========================
any      the weights are asked for                                      plain
GPU [1]  no relative keys, relative values or distances                 torch
GPU      others, with ``POSENC_ATTENTION=triton``                       triton where it fits
GPU      others                                                         plain
CPU      not float32, or another case that ``cpu.supports`` denies      plain
CPU      no gradients, no dropout, fewer than 16 queries                plain
CPU      dropout, relative keys or values, distances, segments          cpu
CPU      a bias that learns                                             cpu
CPU      causal, length 256 or more                                     cpu
CPU      gradients, or a bias and padding: length below 64              torch
CPU      the same: length from 64 to 1023, or any bias                  cpu
CPU      the same: length 1024 or more, no bias                         torch
CPU      none of these                                                  torch
=======  =============================================================  ==========================

[1] and any device under ``torch.compile``, without Triton's kernels.

The limits are measured: forward and backward, or forward alone, widths of 64 per head, lengths
from 12 to 1500.
"""

import logging
import math
import os
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc import compat
from fairseq_posenc.attention import cpu, plain
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.errors import UsageError

logger = logging.getLogger(__name__)

# Below this many queries, as when decoding step by step, what counts is the number of operations.
_FEW_QUERIES = 16
# Between these lengths our own way is at least as fast as torch's. Above, it is too in training,
# but torch's does not keep the weights, so it needs less memory.
_SHORT, _LONG = 64, 1024
# From this length on, our own causal attention saves the time of the future, mask or not.
_LONG_CAUSAL = 256
# What a further channel gives to the scores of hidden keys; exact in half precision.
_HIDDEN = -(2.0**14)
# Fused kernels take widths that are multiples of this.
_ALIGNMENT = 8


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

    For the arguments see :class:`fairseq_posenc.attention.plain.Inputs`. Weights ``(B, H, Q, K)``
    are those before dropout, in float32 at least.
    """
    if terms.scale is None:
        terms = replace(terms, scale=queries.size(-1) ** -0.5)
    inputs = Inputs(queries, keys, values, terms, padding_mask, causal, dropout_p)
    if need_weights:
        return plain.attend(inputs)
    if compat.is_compiling():  # what is written by hand would break the graph in every layer
        return attend_on_gpu(inputs, None), None
    if queries.is_cuda:
        fused = None if _torch_can(terms) else _fused_relative()
        return attend_on_gpu(inputs, fused), None
    if not cpu.supports(inputs):
        return plain.attend(inputs)[0], None
    learns = cpu.needs_gradient(inputs)
    # With dropout the way must not depend on gradients: activation checkpointing computes this
    # twice, first without gradients, and both times the same weights must be dropped.
    if not learns and not dropout_p and queries.size(2) < _FEW_QUERIES:
        return plain.attend(inputs)[0], None
    if _torch_is_faster(inputs, learns):
        return _torch_attend(inputs), None
    return cpu.attend(inputs), None


def attend_on_gpu(inputs: Inputs, fused: Any) -> Tensor:
    """Return the outputs of attention by one kernel if possible.

    Args:
        inputs: on any device.
        fused: the kernels for what torch cannot, or ``None``; see :mod:`.gpu.relative`.
    """
    if _torch_can(inputs.terms):
        return _torch_attend(_one_mask_for_all(inputs))
    if fused is not None and fused.supports(inputs):
        return fused.attend(inputs)
    return plain.attend(inputs)[0]


def _torch_can(terms: AttentionTerms) -> bool:
    """Tell whether all terms can be put into one mask, as they do not depend on the queries."""
    others = (terms.relative_keys, terms.relative_values, terms.distance_keys, terms.content_query)
    return all(term is None for term in others)


@lru_cache(maxsize=None)
def _fused_relative() -> Optional[ModuleType]:
    """Return the kernels for relative keys, values and distances on a GPU, if they are wanted.

    No GPU has run them yet, so they are off unless ``POSENC_ATTENTION=triton``. The log says once
    which way it is.

    Raises:
        UsageError: the variable says something else, or the kernels cannot be imported.
    """
    way = os.environ.get("POSENC_ATTENTION") or "plain"
    if way not in ("plain", "triton"):
        raise UsageError(f"POSENC_ATTENTION is plain (the default) or triton, not {way}")
    if way == "plain":
        logger.info(
            "attention with relative positions on a GPU: plain PyTorch (POSENC_ATTENTION=triton "
            "switches on kernels that no GPU has run yet)"
        )
        return None
    try:
        from fairseq_posenc.attention.gpu import relative
    except ImportError as error:
        raise UsageError(
            f"POSENC_ATTENTION=triton needs Triton 3 and torch 2.1 ({error}): unset it, or install "
            "them"
        ) from error
    logger.info("attention with relative positions on a GPU: Triton's kernels where they fit")
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
    options: Dict[str, Any] = {}
    # torch divides by √d: another scale is an option, or before torch 2.1 goes into the queries
    ratio = terms.scale * math.sqrt(queries.size(-1))
    if abs(ratio - 1) > 1e-9 and compat.ATTENTION_TAKES_SCALE:
        options["scale"] = terms.scale
    elif abs(ratio - 1) > 1e-9:
        queries = queries * ratio
    # mask: (B or 1, H or 1, Q or 1, K), what is added to the scores, or None
    mask = plain.additive_bias(terms, queries.dtype)
    if padding_mask is not None:
        padding = plain.padding_bias(padding_mask, queries.dtype)
        mask = padding if mask is None else mask + padding
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


def _one_mask_for_all(inputs: Inputs) -> Inputs:
    """Return inputs that need the same mask for every sentence, or none at all.

    torch's attention is fastest with a mask ``(1, H, Q, K)`` or without one; padding and segments
    would need ``(B, H, Q, K)``. So they become further channels of queries and keys, whose product
    is what the mask would have added to the score: the segments' scalar, or at padding a number
    that hides the key. What is left for the mask is the bias; without a bias causal attention
    stays torch's own.

    It does not pay where padding alone needs a small mask ``(B, 1, 1, K)``: without a bias that is
    not causal, and for a single query.
    """
    queries, keys, values, terms, padding_mask, causal, dropout_p = inputs
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
        # 1 / scale times 0 at tokens, _HIDDEN at padding; hidden: (B, 1, K, 1)
        hidden = padding_mask[:, None, :, None].to(keys.dtype) * _HIDDEN
        of_queries.append(torch.full_like(hidden, 1 / terms.scale))
        of_keys.append(hidden)
    queries, keys = _with_channels(queries, of_queries), _with_channels(keys, of_keys)
    terms = replace(terms, segments=None, segment_scalars=None)
    return Inputs(queries, keys, values, terms, None, causal, dropout_p)


def _with_channels(x: Tensor, further: List[Tensor]) -> Tensor:
    """Add channels ``(B, H or 1, T, …)`` to ``(B, H, T, d)``, and zeros up to a whole width."""
    parts = [part.expand(*x.shape[:3], -1) for part in further]
    width = sum(part.size(-1) for part in parts)
    return torch.cat([x, *parts, x.new_zeros(1).expand(*x.shape[:3], -width % _ALIGNMENT)], dim=-1)
