"""Queries and keys turned by their position (Su et al. 2021: RoPE)."""

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import (
    AttentionTerms,
    Encoding,
    Portable,
    Positions,
    Stack,
    Terms,
)


class Rotary(Encoding):
    """Pairs of channels of queries and keys, turned by angles that grow with the position.

    Su et al. 2021, section 3.2.2; not in the papers that this package reproduces. In a head of
    width d, channels ``2c`` and ``2c + 1`` of the query or key at position ``i`` are turned by ::

        angle[i, c] = i · 10000 ** (-2c / d)          c = 0 … d / 2 - 1

    before their product, which thus depends on distances alone. The same for all layers and heads;
    values are left alone and nothing is added to the embeddings. There are no parameters, and any
    length can be encoded. Angles are computed in float32 at least. d must be even.
    """

    pairs: Tensor

    def __init__(self, stack: Stack):
        super().__init__(stack)
        width = stack.head_channels
        if width % 2:
            raise ValueError(f"heads must have an even width to be turned in pairs, not {width}")
        # whole numbers, which half precision holds exactly
        pairs = torch.arange(width // 2, dtype=torch.float32)
        self.register_buffer("pairs", pairs, persistent=False)

    def forward(self, positions: Positions) -> Terms:
        """Return the rotation of the queries, one object for all layers."""
        frequencies = self.frequencies()
        angles = positions.position_row.to(frequencies.dtype).unsqueeze(-1) * frequencies
        terms = AttentionTerms(rotation=torch.stack([angles.cos(), angles.sin()]))
        return Terms(attention=dict.fromkeys(range(self.stack.layers), terms))

    def frequencies(self) -> Tensor:
        """Return the angles ``(d / 2,)`` by which one position turns each pair."""
        pairs = self.pairs.to(torch.promote_types(self.pairs.dtype, torch.float32))
        return torch.pow(10000, pairs * (-2 / self.stack.head_channels))

    def portable(self, length: int) -> Portable:
        """Return the angles of one position."""
        return Portable(rotation=self.frequencies())
