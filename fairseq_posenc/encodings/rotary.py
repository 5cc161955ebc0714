"""Queries and keys turned by their position (Su et al. 2021: RoPE)."""

import math

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

        angle[i, c] = i · base ** (-2c / d)           c = 0 … d / 2 - 1

    before their product, which thus depends on distances alone. The same for all layers and heads;
    values are left alone and nothing is added to the embeddings. There are no parameters, and any
    length can be encoded. Angles are computed in float32 at least. d must be even.

    A trained model meets sequences ``scale`` times as long with smaller angles, best after some
    fine-tuning. ``scale_method`` says which become smaller; a scale of 1 changes nothing::

        linear:  angle[i, c] = i / scale · base ** (-2c / d)
        ntk:     angle[i, c] = i · (base · scale ** (d / (d - 2))) ** (-2c / d)

    Linear is position interpolation (Chen, Wong et al. 2023, arXiv 2306.15595, eq. 4): all angles
    are divided. NTK-aware scaling (Peng et al. 2024, YaRN, arXiv 2309.00071, section 3.1) raises
    the base instead: the fastest pair (c = 0) turns as before, the slowest as with linear.

    Args:
        base: its powers are the speeds of the pairs; above 1 (10000, Su et al.).
        scale: how many times as long sequences become, 1 or more (1).
        scale_method: ``linear`` or ``ntk`` (linear).
    """

    pairs: Tensor

    def __init__(
        self,
        stack: Stack,
        base: float = 10_000.0,
        scale: float = 1.0,
        scale_method: str = "linear",
    ):
        super().__init__(stack)
        width = stack.head_channels
        if width % 2:
            raise ValueError(f"heads must have an even width to be turned in pairs, not {width}")
        if not 1 < base < math.inf:
            raise ValueError(f"base must be a number above 1, not {base}")
        if not 1 <= scale < math.inf:
            raise ValueError(f"scale must be a number, 1 or more, not {scale}")
        if scale_method not in ("linear", "ntk"):
            raise ValueError(f"scale method must be linear or ntk, not {scale_method}")
        if scale_method == "ntk":
            if width == 2:
                raise ValueError("scale method ntk needs heads wider than 2")
            base, scale = base * scale ** (width / (width - 2)), 1.0
        self.base, self.scale = base, scale
        # whole numbers, which half precision holds exactly
        pairs = torch.arange(width // 2, dtype=torch.float32)
        self.register_buffer("pairs", pairs, persistent=False)

    def forward(self, positions: Positions) -> Terms:
        """Return the rotation of the queries, one object for all layers."""
        frequencies = self.frequencies()  # (d / 2,)
        # angles: (Q, d / 2); rotation: (2, Q, d / 2)
        angles = positions.position_row.to(frequencies.dtype).unsqueeze(-1) * frequencies
        terms = AttentionTerms(rotation=torch.stack([angles.cos(), angles.sin()]))
        return Terms(attention=dict.fromkeys(range(self.stack.layers), terms))

    def frequencies(self) -> Tensor:
        """Return the angles ``(d / 2,)`` by which one position turns each pair."""
        pairs = self.pairs.to(torch.promote_types(self.pairs.dtype, torch.float32))
        return torch.pow(self.base, pairs * (-2 / self.stack.head_channels)) / self.scale

    def portable(self, length: int) -> Portable:
        """Return the angles of one position."""
        return Portable(rotation=self.frequencies())
