"""T5's buckets: distances that share one scalar."""

from typing import List

import torch
from torch import Tensor, nn


class Buckets(nn.Module):
    """From distances to buckets (Raffel et al. 2020, section 2.1; their code for the numbers).

    With ``N`` buckets for one direction, ``E = N // 2`` and the longest distance ``M``::

        bucket(n) = n                                                  if n < E
                  = min(N - 1, E + ⌊log(n / E) / log(M / E) · (N - E)⌋)  otherwise

    In a decoder ``n`` is the distance query minus key, and ``N`` is ``num_buckets``. In an encoder
    ``N`` is half of it, ``n`` is the absolute distance, and keys after the query have the second
    half of the buckets. All distances from ``M`` on (and a little below) are in the last bucket.
    The first distance of every bucket is computed in whole numbers once, so that no rounding of a
    logarithm moves a distance to the bucket before. There are no parameters.

    Args:
        decoder: whether only the past is seen.
        num_buckets: even, at least 4.
        max_distance: M, more than ``E``.

    Raises:
        ValueError: for other values.
    """

    starts: Tensor

    def __init__(self, decoder: bool, num_buckets: int, max_distance: int):
        super().__init__()
        if not (isinstance(num_buckets, int) and num_buckets >= 4 and num_buckets % 2 == 0):
            raise ValueError(f"num buckets must be even and at least 4, not {num_buckets}")
        one_way = num_buckets if decoder else num_buckets // 2
        exact = one_way // 2
        if not (isinstance(max_distance, int) and max_distance > exact):
            raise ValueError(
                f"max distance must be a whole number above {exact}, the distances that have a "
                f"bucket of their own, not {max_distance}"
            )
        self.future = 0 if decoder else one_way
        starts = torch.tensor(_starts(one_way, exact, max_distance))
        self.register_buffer("starts", starts, persistent=False)

    def forward(self, queries: int, keys: int) -> Tensor:
        """Return the buckets ``(Q + K - 1,)``, int64, by falling distance from ``K - 1``."""
        distances = torch.arange(keys - 1, -queries, -1, device=self.starts.device)
        if not self.future:
            return torch.bucketize(distances, self.starts, right=True)
        buckets = torch.bucketize(distances.abs(), self.starts, right=True)
        return buckets + self.future * distances.lt(0)


def _starts(buckets: int, exact: int, longest: int) -> List[int]:
    """Return the first distance of each bucket but bucket 0."""
    starts, logarithmic = list(range(1, exact + 1)), buckets - exact
    for m in range(1, logarithmic):
        # the power in whole numbers decides, the floating-point one only says where to look
        start = max(exact, int(exact * (longest / exact) ** (m / logarithmic)) - 1)
        while start**logarithmic * exact**m < exact**logarithmic * longest**m:
            start += 1
        starts.append(start)
    return starts
