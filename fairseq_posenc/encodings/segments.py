"""Segments: telling a model which of several texts a token belongs to, with any position encoding.

A module of segments serves one stack, as an encoding does. It takes the terms of the position
encoding and numbers ``(batch, length)``, the segment of each token, and returns the terms with its
own added. ``SEGMENT_MODULES`` has them by the values of ``--position-segments``.
"""

from dataclasses import replace
from typing import Callable, Dict

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import AttentionTerms, StackConfig, Terms


class NoSegments(nn.Module):
    """All tokens are alike, whatever their segment."""

    def __init__(self, stack: StackConfig, segments: int = 2):
        super().__init__()

    def forward(self, terms: Terms, numbers: Tensor) -> Terms:
        """Return the terms as they are."""
        return terms


class SegmentEmbeddings(nn.Module):
    """A vector per segment, added to the embeddings (Devlin et al. 2019: BERT).

    Parameter ``weight`` ``(segments, channels)``, drawn like a table of positions: from
    N(0, ``stack.table_std``²).

    Args:
        segments: number of segments, at least 1.
    """

    def __init__(self, stack: StackConfig, segments: int = 2):
        super().__init__()
        _check(segments)
        self.weight = nn.Parameter(torch.empty(segments, stack.channels))
        nn.init.normal_(self.weight, std=stack.table_std or stack.channels**-0.5)

    def forward(self, terms: Terms, numbers: Tensor) -> Terms:
        """Return the terms with each token's vector added to those at the input."""
        vectors = nn.functional.embedding(numbers, self.weight)  # (batch, length, channels)
        return replace(terms, input=vectors if terms.input is None else terms.input + vectors)


class SegmentScalars(nn.Module):
    """A scalar per pair of segments, added to the scores (Chen et al. 2021, eq. 9 to 11).

    To the score of query ``i`` and key ``j`` of a head, after the scale, is added ::

        S[i, j] = scalars[layer, head, segment of i, segment of j]

    Parameter ``scalars`` ``(layers or 1, heads or 1, segments, segments)``, drawn from
    N(0, 0.02²): k² per head and layer (section 3).

    Args:
        segments: number of segments k, at least 1.
        sharing: see :meth:`StackConfig.table_shape` (``none``, the paper).
    """

    def __init__(self, stack: StackConfig, segments: int = 2, sharing: str = "none"):
        super().__init__()
        _check(segments)
        self.layers = stack.layers
        self.scalars = nn.Parameter(torch.empty(*stack.table_shape(sharing), segments, segments))
        nn.init.normal_(self.scalars, std=0.02)

    def forward(self, terms: Terms, numbers: Tensor) -> Terms:
        """Return the terms with every layer's scalars beside those of its attention."""
        # one_hot: (batch, length, segments); scalars: (heads or 1, segments, segments)
        one_hot = nn.functional.one_hot(numbers, self.scalars.size(-1)).to(self.scalars.dtype)
        attention = {}
        for layer in range(self.layers):
            scalars = self.scalars[layer if self.scalars.size(0) > 1 else 0]
            own = terms.attention.get(layer, AttentionTerms())
            attention[layer] = replace(own, segments=one_hot, segment_scalars=scalars)
        return replace(terms, attention=attention)


SEGMENT_MODULES: Dict[str, Callable[..., nn.Module]] = {
    "none": NoSegments,
    "input": SegmentEmbeddings,
    "per_head": SegmentScalars,
}


def _check(segments: int) -> None:
    if not (isinstance(segments, int) and segments >= 1):
        raise ValueError(f"segments must be a whole number, 1 or more, not {segments}")
