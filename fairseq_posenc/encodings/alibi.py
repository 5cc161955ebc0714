"""Scores that fall with the distance (Press et al. 2022: ALiBi)."""

from typing import List

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import StackConfig
from fairseq_posenc.encodings.by_distance import ByDistance


def slope_exponents(heads: int) -> List[float]:
    """Return ``e`` of the slope ``2 ** -e`` of each head.

    ``8 h / heads`` for head ``h`` from 1 on if their number is a power of two; otherwise those of
    the next smaller power of two, then every other one of its double, as in the authors' code.
    """
    power = 2 ** (heads.bit_length() - 1)
    first = [8 * h / power for h in range(1, power + 1)]
    return first + [4 * h / power for h in range(1, 2 * (heads - power), 2)]


class Alibi(ByDistance):
    """A bias that falls linearly with the distance, by a slope per head (Press et al. 2022).

    Section 3 of the paper. With queries ``q`` and keys ``k`` of head ``h`` of width d::

        A[i, j] = q[i] · k[j] / √d - slope[h] · |i - j|

    In an encoder the bias is symmetric: the paper is about decoders only. All layers have the same
    slopes, ``2 ** -e`` (:func:`slope_exponents`). There are no parameters, and any length can be
    encoded.
    """

    exponents: Tensor

    def __init__(self, stack: StackConfig):
        super().__init__(stack)
        # few binary digits, which half precision holds exactly; slopes would be rounded
        values = torch.tensor(slope_exponents(stack.heads))
        self.register_buffer("exponents", values, persistent=False)

    def bias_by_distance(self, queries: int, keys: int) -> Tensor:
        """Return the penalties, of all layers alike."""
        dtype = torch.promote_types(self.exponents.dtype, torch.float32)
        slopes = torch.pow(2, -self.exponents.to(dtype))
        # slopes: (heads,); distances: (Q + K - 1,); penalties: (1, heads, Q + K - 1)
        distances = torch.arange(keys - 1, -queries, -1, device=slopes.device)
        return (slopes.unsqueeze(-1) * -distances.abs()).unsqueeze(0)
