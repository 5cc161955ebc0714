"""One scalar per distance, head and layer (Chen et al. 2021: REL-SCALAR)."""

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import StackConfig
from fairseq_posenc.encodings.by_distance import ByDistance, scalars_of


class RelScalar(ByDistance):
    """A scalar per distance, without buckets, and by default without clipping, added to the scores.

    Chen et al. 2021, section 3, eq. (8), with queries ``q`` and keys ``k`` of a head of width d::

        A[i, j] = q[i] · k[j] / √d + R[i - j]

    Segment scalars, eq. (9) to (11), are in ``segments.py``. They go with any encoding.

    There are scalars for distances below ``n = max_length``, or ``max_distance + 1`` if that is
    less. Beyond them the paper has no rule: a distance of ``n`` or more takes the scalar of
    ``n - 1``, and one of ``-n`` or less that of ``1 - n``. Distances that training has not seen
    keep what was drawn for them, which is nearly 0.

    Parameter ``scalars``, drawn from N(0, 0.02²): ``(layers or 1, heads or 1, 2 n - 1)`` in an
    encoder, index ``n - 1 + d`` for distance ``d`` from ``1 - n`` to ``n - 1``, and ``(…, n)`` in a
    decoder, index ``d`` for distance ``d`` from 0 to ``n - 1``.

    Args:
        sharing: see :meth:`StackConfig.table_shape` (``none``, the paper; others in its section
            4.4).
        max_distance: larger distances are not told apart (0, the paper: no such limit). Our
            extension: with a limit within the trained lengths, all scalars are trained.
    """

    def __init__(self, stack: StackConfig, sharing: str = "none", max_distance: int = 0):
        super().__init__(stack)
        if stack.max_length < 1:
            raise ValueError(f"a table of distances cannot be {stack.max_length} positions long")
        if not (isinstance(max_distance, int) and max_distance >= 0):
            raise ValueError(f"max distance must be a whole number, 0 or more, not {max_distance}")
        reach = min(stack.max_length, max_distance + 1) if max_distance else stack.max_length
        self.index_of_zero = 0 if stack.decoder else reach - 1
        scalars = torch.empty(*stack.table_shape(sharing), self.index_of_zero + reach)
        self.scalars = nn.Parameter(nn.init.normal_(scalars, std=0.02))

    def bias_by_distance(self, queries: int, keys: int) -> Tensor:
        """Return the scalars of the distances, those at the table's ends for all beyond."""
        distances = torch.arange(keys - 1, -queries, -1, device=self.scalars.device)
        # rows of the table: (Q + K - 1,)
        rows = (distances + self.index_of_zero).clamp_(0, self.scalars.size(-1) - 1)
        return scalars_of(self.scalars, rows)
