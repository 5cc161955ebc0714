"""The one entrance to attention with position terms: it takes the first way that supports a case.

=====  ==========================  ===========================================================
order  way                         takes
=====  ==========================  ===========================================================
1      :class:`OnGpu`              on a GPU, and under ``torch.compile``: terms that fit into
                                   one mask, as they do not depend on the queries
2      :class:`Torch`              on a CPU: such terms, where torch's own attention is faster
                                   than ours
3      :class:`ByHand`             on a CPU in float32: all other trainings
4      :class:`Lean`               on a GPU in half precision: whole sequences with other terms
5      :class:`Plain`              everything, anywhere; alone it returns the weights
=====  ==========================  ===========================================================

A new way is a class with ``supports`` and ``attend``, and a place in :data:`WAYS`. All are tested
against :mod:`.plain`.
"""

from dataclasses import replace
from typing import Optional, Tuple

from torch import Tensor
from torch.compiler import is_compiling

from fairseq_posenc.attention import cpu, fused, lean, plain
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms

# These limits are measured: forward and backward, or forward alone, heads 64 wide, lengths from 12
# to 1500. Below so many queries, as when decoding step by step, the number of operations counts.
_FEW_QUERIES = 16
# Between these lengths our own way is at least as fast as torch's. Above, it is too in training,
# but torch's does not keep the weights, so it needs less memory.
_SHORT, _LONG = 64, 1024
# From this length on, our own causal attention saves the time of the future, mask or not.
_LONG_CAUSAL = 256


class OnGpu:
    """torch's attention on a GPU, with the same mask for all sentences.

    Under ``torch.compile`` it goes so on a CPU, too: what is written by hand would break the graph
    in every layer.
    """

    @staticmethod
    def supports(inputs: Inputs) -> bool:
        """Tell whether this is the way."""
        return (inputs.queries.is_cuda or is_compiling()) and fused.supports(inputs)

    @staticmethod
    def attend(inputs: Inputs) -> Tensor:
        """Return the outputs ``(B, H, Q, d)``."""
        return fused.attend(fused.with_one_mask(inputs))


class ByHand:
    """Our own attention on a CPU, in chunks that fit the cache; see :mod:`.cpu`."""

    @staticmethod
    def supports(inputs: Inputs) -> bool:
        """Tell whether this is a way, and faster than the plain one."""
        if inputs.queries.is_cuda or is_compiling() or not cpu.supports(inputs):
            return False
        # With dropout the way must not depend on gradients: activation checkpointing computes this
        # twice, first without gradients, and both times the same weights must be dropped.
        learns = cpu.needs_gradient(inputs) or inputs.dropout_p > 0
        return learns or inputs.queries.size(2) >= _FEW_QUERIES

    @staticmethod
    def attend(inputs: Inputs) -> Tensor:
        """Return the outputs ``(B, H, Q, d)``."""
        return cpu.attend(inputs)


class Torch:
    """torch's attention on a CPU, where it is faster than ours: it can neither drop weights fast
    nor learn a bias fast, and knows no segments.
    """

    @staticmethod
    def supports(inputs: Inputs) -> bool:
        """Tell whether this is the way."""
        terms, length = inputs.terms, inputs.keys.size(2)
        if not fused.supports(inputs) or terms.segments is not None or inputs.dropout_p:
            return False
        if terms.bias_by_distance is not None:  # a matrix in memory is what it is to save
            return False
        if not ByHand.supports(inputs):  # what is left is the plain way's
            return False
        learns = cpu.needs_gradient(inputs)
        if learns and terms.bias is not None and terms.bias.requires_grad:
            return False
        if inputs.causal and length >= _LONG_CAUSAL:
            return False
        if learns or (terms.bias is not None and inputs.padding_mask is not None):
            return length < _SHORT or (length >= _LONG and terms.bias is None)
        return True

    @staticmethod
    def attend(inputs: Inputs) -> Tensor:
        """Return the outputs ``(B, H, Q, d)``."""
        return fused.attend(inputs)


class Lean:
    """The plain way on a GPU in half precision, which keeps 2 bytes per score instead of 7."""

    @staticmethod
    def supports(inputs: Inputs) -> bool:
        """Tell whether this is the way."""
        return inputs.queries.is_cuda and not is_compiling() and lean.supports(inputs)

    @staticmethod
    def attend(inputs: Inputs) -> Tensor:
        """Return the outputs ``(B, H, Q, d)``."""
        return lean.attend(inputs)


class Plain:
    """As the papers write it, in plain operations."""

    @staticmethod
    def supports(inputs: Inputs) -> bool:
        """Tell that it takes everything."""
        return True

    @staticmethod
    def attend(inputs: Inputs) -> Tensor:
        """Return the outputs ``(B, H, Q, d)``."""
        return plain.attend(inputs)[0]


WAYS = (OnGpu, Torch, ByHand, Lean, Plain)


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
    way = next(way for way in WAYS if way.supports(inputs))
    return way.attend(inputs), None
