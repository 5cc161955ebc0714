"""One scalar per bucket of distances (Raffel et al. 2020: T5)."""

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import Stack
from fairseq_posenc.encodings.buckets import Buckets
from fairseq_posenc.encodings.by_distance import ByDistance
from fairseq_posenc.encodings.sharing import sets


class T5(ByDistance):
    """A scalar per bucket of distances, added to the scores (Raffel et al. 2020, section 2.1).

    Chen et al. 2021, eq. (4), with queries ``q`` and keys ``k`` of a head of width d::

        A[i, j] = q[i] · k[j] / √d + scalars[layer, head, bucket(i - j)]

    See :class:`Buckets`: in an encoder the buckets are halved between past and future, in a decoder
    all are for the past. Nothing is added to the embeddings or values. Any length can be encoded:
    all distances from ``max_distance`` on share one bucket.

    Readings: eq. (4) puts the scalar before the scale; it is added after it, as in T5's code and
    in eq. (8), of which section 4.3 calls T5 a special form. The paper's "logarithmic binning for
    values larger than 32" is taken for T5's 32 buckets.

    Parameter ``scalars`` ``(layers or 1, heads or 1, num_buckets)``, drawn from N(0, 0.02²).

    Args:
        stack: the stack it serves.
        num_buckets: even, at least 4 (32).
        max_distance: distances from here on are not told apart (128); more than a quarter of
            ``num_buckets`` in an encoder, than half in a decoder.
        sharing: ``layers``, as in T5: every head has its own scalars, for all layers; ``none``: in
            every layer others; ``heads``: the heads of a layer share them.
    """

    def __init__(
        self, stack: Stack, num_buckets: int = 32, max_distance: int = 128, sharing: str = "layers"
    ):
        super().__init__(stack)
        self.buckets = Buckets(stack.decoder, num_buckets, max_distance)
        self.scalars = nn.Parameter(torch.empty(*sets(stack, sharing), num_buckets))
        nn.init.normal_(self.scalars, std=0.02)

    def falling(self, queries: int, keys: int) -> Tensor:
        """Return the scalars of the distances' buckets."""
        return self.scalars.index_select(-1, self.buckets(queries, keys))
