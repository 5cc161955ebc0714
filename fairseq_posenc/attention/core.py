"""Dispatch of attention with position terms: the first backend that takes a case computes it.

=====  ========================  =============================================================
order  backend                   takes
=====  ========================  =============================================================
1      ``SHARED_MASK_SDPA``      on a GPU, or under ``torch.compile``: terms that fit into
                                 one mask, as they do not depend on the queries
2      ``QUERY_MASK_SDPA``       there: terms that depend on the queries, such as
                                 Transformer-XL's, but Shaw's values
3      ``CPU_SDPA``              on a CPU in float32: terms of one mask, where torch's own
                                 attention is faster than ours
4      ``CPU_CHUNKS``            on a CPU in float32: others with gradients or dropout, and
                                 inference with 16 queries and more, see :mod:`.cpu`
5      ``HALF_PRECISION``        on a GPU in half precision, with 2 bytes per score kept for the
                                 backward pass: self-attention over whole sequences, Shaw's values
6      ``PLAIN``                 everything, anywhere; alone it returns the weights
=====  ========================  =============================================================

A new backend is an :class:`AttentionBackend`, and a place in :data:`BACKENDS`. All are tested
against :mod:`.plain`.
"""

from dataclasses import replace
from typing import Callable, NamedTuple, Optional, Tuple

from torch import Tensor
from torch.compiler import is_compiling

from fairseq_posenc.attention import cpu, fused, half_precision, plain
from fairseq_posenc.attention.cpu.chunks import LONG_CAUSAL
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.encodings.by_distance import LONG

# These limits are measured: forward and backward, or forward alone, heads 64 wide, lengths from 12
# to 1500. Below so many queries, as when decoding step by step, the cost of each operation's
# start outweighs the rest.
_FEW_QUERIES = 16
# With gradients our own attention is at least as fast as torch's between these lengths. From
# LONG it keeps no weights, as torch's, and computes them again in the backward pass, which takes
# longer.
_SHORT = 64


class AttentionBackend(NamedTuple):
    """A way to compute attention.

    Attributes:
        supports: whether it can take these inputs, and is preferred to the backends below it.
        attend: returns the outputs ``(B, H, Q, d)``, for inputs that are supported.
    """

    supports: Callable[[Inputs], bool]
    attend: Callable[[Inputs], Tensor]


def _is_on_gpu_or_compiled(inputs: Inputs) -> bool:
    # what is written by hand for a CPU would break the graph of torch.compile in every layer
    return inputs.queries.is_cuda or is_compiling()


def _is_for_chunks(inputs: Inputs) -> bool:
    """Return whether our own attention on a CPU is faster than the plain backend."""
    if _is_on_gpu_or_compiled(inputs) or not cpu.supports(inputs):
        return False
    # With dropout the choice must not depend on gradients: activation checkpointing computes
    # this twice, first without gradients, and both times the same weights must be dropped.
    trains = cpu.needs_gradient(inputs) or inputs.dropout_p > 0
    return trains or inputs.queries.size(2) >= _FEW_QUERIES


def _is_for_torch(inputs: Inputs) -> bool:
    """Return whether torch's attention on a CPU is faster than ours.

    Dropout and trained biases make it slow, and so does a mask per sequence, which segments need.
    """
    terms, length = inputs.terms, inputs.keys.size(2)
    if not fused.supports(inputs) or terms.segments is not None or inputs.dropout_p:
        return False
    if terms.bias_by_distance is not None or terms.index_queries is not None:
        return False  # torch's would need the (Q, K) matrix that they make
    if not _is_for_chunks(inputs):  # few queries, or what only the plain backend takes
        return False
    has_gradient = cpu.needs_gradient(inputs)
    if has_gradient and terms.bias is not None and terms.bias.requires_grad:
        return False
    if inputs.causal and length >= LONG_CAUSAL:
        return False  # ours leaves out the masked half
    # bias (1, H, Q, K) and padding (B, 1, 1, K) together are a mask (B, H, Q, K) to be read
    if has_gradient or (terms.bias is not None and inputs.padding_mask is not None):
        return length < _SHORT or (length >= LONG and terms.bias is None)
    return True


def _is_half_on_gpu(inputs: Inputs) -> bool:
    return inputs.queries.is_cuda and not is_compiling() and half_precision.supports(inputs)


SHARED_MASK_SDPA = AttentionBackend(
    lambda inputs: _is_on_gpu_or_compiled(inputs) and fused.supports(inputs),
    lambda inputs: fused.attend(fused.with_one_mask(inputs)),
)
QUERY_MASK_SDPA = AttentionBackend(
    lambda inputs: _is_on_gpu_or_compiled(inputs) and fused.supports_queries(inputs), fused.attend
)
CPU_SDPA = AttentionBackend(_is_for_torch, fused.attend)
CPU_CHUNKS = AttentionBackend(_is_for_chunks, cpu.attend)
HALF_PRECISION = AttentionBackend(_is_half_on_gpu, half_precision.attend)
PLAIN = AttentionBackend(lambda inputs: True, lambda inputs: plain.attend(inputs)[0])
BACKENDS = (
    SHARED_MASK_SDPA, QUERY_MASK_SDPA, CPU_SDPA, CPU_CHUNKS, HALF_PRECISION, PLAIN
)  # fmt: skip


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
    # no other backend has all weights at one time
    if need_weights:
        return plain.attend(inputs)
    # there is one: PLAIN, the last, takes everything
    backend = next(backend for backend in BACKENDS if backend.supports(inputs))
    return backend.attend(inputs), None
