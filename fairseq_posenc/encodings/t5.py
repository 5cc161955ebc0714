"""One scalar per bucket of distances (Raffel et al. 2020: T5), and the buckets."""

from typing import List

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import StackConfig
from fairseq_posenc.encodings.by_distance import ByDistance, scalars_of


class T5(ByDistance):
    """A scalar per bucket of distances, added to the scores (Raffel et al. 2020, section 2.1).

    Chen et al. 2021, eq. (4), with queries ``q`` and keys ``k`` of a head of width d::

        A[i, j] = q[i] · k[j] / √d + scalars[layer, head, bucket(i - j)]

    In an encoder the buckets (:class:`Buckets`) are halved between past and future, in a decoder
    all are for the past. Any length can be encoded: all distances from ``max_distance`` on share
    one bucket.

    Readings: eq. (4) puts the scalar before the scale. It is added after it, as in T5's code and
    in eq. (8). The paper's "logarithmic binning for values larger than 32" is taken for T5's 32
    buckets.

    Parameter ``scalars`` ``(layers or 1, heads or 1, num_buckets)``, drawn from N(0, 0.02²).

    Args:
        num_buckets: even, at least 4 (32).
        max_distance: distances from here on share one bucket (128); more than a quarter of
            ``num_buckets`` in an encoder, than half in a decoder.
        sharing: see :meth:`StackConfig.table_shape` (``layers``, as in T5).
    """

    def __init__(
        self,
        stack: StackConfig,
        num_buckets: int = 32,
        max_distance: int = 128,
        sharing: str = "layers",
    ):
        super().__init__(stack)
        self.buckets = Buckets(stack.decoder, num_buckets, max_distance)
        self.scalars = nn.Parameter(torch.empty(*stack.table_shape(sharing), num_buckets))
        nn.init.normal_(self.scalars, std=0.02)

    def bias_by_distance(self, queries: int, keys: int) -> Tensor:
        """Return the scalars of the distances' buckets."""
        return scalars_of(self.scalars, self.buckets(queries, keys))


class Buckets(nn.Module):
    """From distances to buckets (Raffel et al. 2020, section 2.1; their code for the numbers).

    With ``N`` buckets for one direction, ``E = N // 2`` and the longest distance ``M``::

        bucket(n) = n                                                  if n < E
                  = min(N - 1, E + ⌊log(n / E) / log(M / E) · (N - E)⌋)  otherwise

    In a decoder ``n`` is the distance query minus key, and ``N`` is ``num_buckets``. In an encoder
    ``N`` is half of it, ``n`` is the absolute distance, and keys after the query have the second
    half of the buckets. All distances from ``M`` on (and a little below) are in the last bucket.

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
        starts = torch.tensor(_first_distances(one_way, exact, max_distance))
        self.register_buffer("starts", starts, persistent=False)

    def forward(self, queries: int, keys: int) -> Tensor:
        """Return the buckets ``(Q + K - 1,)``, int64, by falling distance from ``K - 1``."""
        distances = torch.arange(keys - 1, -queries, -1, device=self.starts.device)
        if not self.future:
            return torch.bucketize(distances, self.starts, right=True)
        buckets = torch.bucketize(distances.abs(), self.starts, right=True)
        return buckets + self.future * distances.lt(0)


def _first_distances(buckets: int, exact: int, longest: int) -> List[int]:
    """Return the first distance of each bucket but bucket 0."""
    starts, logarithmic = list(range(1, exact + 1)), buckets - exact
    for m in range(1, logarithmic):
        # begin the search below what floating point says; whole numbers then decide
        start = max(exact, int(exact * (longest / exact) ** (m / logarithmic)) - 1)
        # bucket E + m begins where L · log(n / E) / log(M / E) ≥ m with L = N - E, that is where
        # n^L · E^m ≥ E^L · M^m
        while start**logarithmic * exact**m < exact**logarithmic * longest**m:
            start += 1
        starts.append(start)
    return starts
