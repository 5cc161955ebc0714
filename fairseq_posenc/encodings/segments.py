"""Segment scalars: attention that knows which segments its query and key are in."""

from typing import Dict

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import Stack
from fairseq_posenc.encodings.sharing import sets


class SegmentScalars(nn.Module):
    """A scalar per pair of segments, added to the scores (Chen et al. 2021, eq. 9 to 11).

    To the score of query ``i`` and key ``j`` of a head, after the scale, is added ::

        S[i, j] = scalars[layer, head, segment of i, segment of j]

    Parameter ``scalars`` ``(layers or 1, heads or 1, segments, segments)``, drawn from
    N(0, 0.02²): k² per head and layer (section 3). It goes with any position encoding: the models
    put its terms beside those of the encoding.

    Args:
        stack: the stack it serves.
        segments: number of segments k, at least 1.
        sharing: ``none``: every head of every layer has its own scalars (the paper); ``layers``:
            those of the heads serve all layers; ``heads``: the heads of a layer share them.

    Raises:
        ValueError: for other values.
    """

    def __init__(self, stack: Stack, segments: int, sharing: str = "none"):
        super().__init__()
        if not (isinstance(segments, int) and segments >= 1):
            raise ValueError(f"segments must be a whole number, 1 or more, not {segments}")
        self.scalars = nn.Parameter(torch.empty(*sets(stack, sharing), segments, segments))
        nn.init.normal_(self.scalars, std=0.02)

    def forward(self, layer: int, one_hot: Tensor) -> Dict[str, Tensor]:
        """Return the fields that it fills in a layer's :class:`AttentionTerms`.

        >>> terms = dataclasses.replace(terms, **segment_scalars(layer, one_hot))

        Args:
            layer: number of the layer, from 0.
            one_hot: ``(batch, length, segments)``, a 1 at each token's segment.
        """
        shared = self.scalars.size(0) == 1
        return {"segments": one_hot, "segment_scalars": self.scalars[0 if shared else layer]}
