"""Scores that fall with the logarithm of the distance (Chi et al. 2022: KERPLE)."""

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import StackConfig
from fairseq_posenc.encodings.by_distance import ByDistance


class Kerple(ByDistance):
    """A trained bias that falls with the logarithm of the distance (Chi et al. 2022, KERPLE).

    The paper's log kernel. With queries ``q`` and keys ``k`` of head ``h`` of width d::

        A[i, j] = q[i] · k[j] / √d - r1[h] · log(1 + r2[h] · |i - j|)          r1, r2 > 0

    In an encoder the bias is symmetric: the paper is about decoders only. Any length can be
    encoded. As in the authors' code, r1 starts uniform between 0 and 2, r2 between 0 and 1, both
    at least 0.01.

    Parameter ``log_scalars`` ``(layers or 1, 2, heads or 1)``: the logarithms of r1 and r2, so that
    both stay positive. (The authors' code trains r1 and r2 themselves, cut off at 0.01.)

    Args:
        sharing: see :meth:`StackConfig.table_shape` (``none``, as in the authors' code: each layer
            has its own).
    """

    def __init__(self, stack: StackConfig, sharing: str = "none"):
        super().__init__(stack)
        layers, heads = stack.table_shape(sharing)
        start = torch.rand(layers, 2, heads) * torch.tensor([[2.0], [1.0]])
        self.log_scalars = nn.Parameter(start.clamp(min=0.01).log())

    def bias_by_distance(self, queries: int, keys: int) -> Tensor:
        """Return the penalties ``(layers or 1, heads or 1, Q + K - 1)``."""
        precise = torch.promote_types(self.log_scalars.dtype, torch.float32)
        # each (layers or 1, heads or 1, 1)
        r1, r2 = self.log_scalars.to(precise).exp().unsqueeze(-1).unbind(1)
        distances = torch.arange(keys - 1, -queries, -1, device=r1.device).abs()
        return -r1 * torch.log1p(r2 * distances)
