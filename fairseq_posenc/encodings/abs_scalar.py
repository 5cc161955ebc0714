"""Absolute positions per head, by a product of low rank (Chen et al. 2021: ABS-SCALAR)."""

from typing import Optional

import torch
from torch import nn

from fairseq_posenc.encodings.base import AttentionTerms, Encoding, Positions, StackConfig, Terms
from fairseq_posenc.encodings.by_distance import makes_no_matrix
from fairseq_posenc.encodings.learned import check_table_length, rows_of_keys


class AbsScalar(Encoding):
    """A scalar per pair of positions, from a matrix of low rank, added to the scores.

    Chen et al. 2021, section 2.4, eq. (7), with queries ``q`` and keys ``k`` of a head of width d,
    and the rows ``P[i]`` of the head's table::

        A[i, j] = q[i] · k[j] / √d + P[i] · P[j]

    Positions are indices in the sequence, so whole sequences must be padded on the right.

    Reading: "P ∈ R^{n × d_h}" has a row per position, so the paper's PᵀP is the product of rows.

    Parameter ``table`` ``(layers or 1, heads or 1, max_length, rank)``, drawn from N(0, 0.02²).

    Beyond the table there is an error in training. In evaluation every further position has the
    last row.

    Args:
        rank: width of P, at least 1 (None: the width of a head, as in the paper).
        sharing: see :meth:`StackConfig.table_shape` (``none``, the paper).
    """

    by_index = True
    export_error = "its scores are of pairs of absolute positions"

    def __init__(self, stack: StackConfig, rank: Optional[int] = None, sharing: str = "none"):
        super().__init__(stack)
        check_table_length(stack)
        if rank is None:
            rank = stack.head_channels
        if not (isinstance(rank, int) and rank >= 1):
            raise ValueError(f"rank must be a whole number, 1 or more, not {rank}")
        self.table = nn.Parameter(torch.empty(*stack.table_shape(sharing), stack.max_length, rank))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, positions: Positions) -> Terms:
        """Return the biases, or their vectors; one object serves all layers that share a table."""
        rows = rows_of_keys(positions, self.stack, self.training)
        queries = positions.numbers.size(1)
        # vectors: per layer (heads or 1, K, rank); biases: per layer (heads or 1, Q, K)
        # unbound before the product, whose gradient would be as large as all layers' biases
        vectors = self.table.index_select(2, rows).unbind()
        if makes_no_matrix(queries, self.table.device):
            terms = [AttentionTerms(index_queries=keys, index_keys=keys) for keys in vectors]
            return Terms.of_layers(self.stack, terms)
        biases = [keys[:, -queries:] @ keys.transpose(1, 2) for keys in vectors]
        return Terms.of_biases(self.stack, biases)
