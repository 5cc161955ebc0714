"""Untied positions: absolute and bucketed relative scores of their own (Ke et al. 2020: TUPE)."""

from typing import Optional, Tuple

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import AttentionTerms, Encoding, Positions, StackConfig, Terms
from fairseq_posenc.encodings.by_distance import makes_no_matrix, scalars_of, to_toeplitz
from fairseq_posenc.encodings.learned import check_table_length, rows_of_keys
from fairseq_posenc.encodings.t5 import Buckets


class Tupe(Encoding):
    """Scores of position with position, and of distances, apart from content (Ke et al. 2020).

    Chen et al. 2021, eq. (5), and the authors' code for what that leaves open: the scales, the
    LayerNorm in ``p = LayerNorm(table)``, and T5's buckets ``b`` of the distances. Per head of
    width d, with the layer's queries ``q`` and keys ``k``::

        A[i, j] = q[i] · k[j] / √(2 d) + Reset(U_Q p[i] · U_K p[j] / √(2 d) + scalars[b(i - j)])

    ``Reset`` replaces its argument where [CLS], at index 0, takes part: by ``reset[0]`` if the
    query is [CLS], otherwise by ``reset[1]`` if the key is. It is left out in translation.
    Positions are indices in the sequence, so whole sequences must be padded on the right.

    Parameters, all shared by the layers: ``table`` ``(max_length, channels)``, ``norm``, ``query``
    and ``key`` (U_Q and U_K, with biases, split into heads), ``scalars`` ``(heads, num_buckets)``,
    and ``reset`` ``(2, heads)``. All weights are drawn from N(0, 0.02²), as BERT's are (in the
    authors' code the scalars from N(0, 1)); biases are 0.

    Beyond the table there is an error in training. In evaluation every further position has the
    last row.

    Args:
        num_buckets: of the relative term, even, at least 4 (32); see :class:`Buckets`.
        max_distance: distances from here on share one bucket (128); more than a quarter of
            ``num_buckets`` in an encoder, than half in a decoder.
    """

    by_index = True
    export_error = "its scores are of pairs of absolute positions"

    def __init__(self, stack: StackConfig, num_buckets: int = 32, max_distance: int = 128):
        super().__init__(stack)
        check_table_length(stack)
        self.buckets = Buckets(stack.decoder, num_buckets, max_distance)
        # two products are summed, so 1 / √(2 d) keeps the variance that 1 / √d gives to one
        self.scale = (2 * stack.head_channels) ** -0.5
        self.table = nn.Parameter(torch.empty(stack.max_length, stack.channels))
        self.norm = nn.LayerNorm(stack.channels)
        self.query = nn.Linear(stack.channels, stack.channels)
        self.key = nn.Linear(stack.channels, stack.channels)
        self.scalars = nn.Parameter(torch.empty(stack.heads, num_buckets))
        self.reset = nn.Parameter(torch.empty(2, stack.heads)) if stack.has_cls else None
        for linear in (self.query, self.key):
            nn.init.zeros_(linear.bias)
        for weights in (self.table, self.query.weight, self.key.weight, self.scalars, self.reset):
            if weights is not None:
                nn.init.normal_(weights, std=0.02)

    def forward(self, positions: Positions) -> Terms:
        """Return the scale and the bias or what it is made of, one object for all layers."""
        queries, keys = self.project(positions)  # (heads, Q, d), (heads, K, d)
        lengths = (queries.size(1), keys.size(1))
        scalars = scalars_of(self.scalars, self.buckets(*lengths))  # (heads, Q + K - 1)
        if self.reset is None and makes_no_matrix(lengths[0], scalars.device):
            terms = AttentionTerms(
                scale=self.scale,
                bias_by_distance=scalars,
                index_queries=queries * self.scale,
                index_keys=keys,
            )
            return Terms.of_layers(self.stack, [terms])
        # distances, and position with position on top: (heads, Q, K)
        relative = to_toeplitz(scalars, *lengths)
        bias = torch.baddbmm(relative, queries, keys.transpose(1, 2), alpha=self.scale)
        if self.reset is not None:
            # [CLS], index 0, as key and then as query
            bias[:, :, 0] = self.reset[1].unsqueeze(-1)
            if lengths[0] == lengths[1]:
                bias[:, 0] = self.reset[0].unsqueeze(-1)
        terms = AttentionTerms(scale=self.scale, bias=bias)
        return Terms(attention=dict.fromkeys(range(self.stack.layers), terms))

    def project(self, positions: Positions) -> Tuple[Tensor, Tensor]:
        """Return ``U_Q p``, ``(heads, Q, d)``, and ``U_K p``, ``(heads, K, d)``.

        Step by step, only the newest position is projected; the keys before are remembered.
        """
        rows = rows_of_keys(positions, self.stack, self.training)
        # of the steps before, (K - 1, channels), the same for every sentence
        past: Optional[Tensor] = None
        name = f"tupe.{id(self)}"
        if positions.cache is not None:
            past = positions.cache.get(name, {}).get("keys")
        if past is not None and past.size(0) == positions.num_keys - 1:
            embedded = self.norm(nn.functional.embedding(rows[-1:], self.table))
            keys = torch.cat([past, self.key(embedded)])
        else:
            embedded = self.norm(nn.functional.embedding(rows, self.table))  # (K, channels)
            keys = self.key(embedded)
        if positions.cache is not None:
            positions.cache[name] = {"keys": keys}
        queries = self.query(embedded[-positions.numbers.size(1) :])
        shape = (-1, self.stack.heads, self.stack.head_channels)
        return queries.view(shape).transpose(0, 1), keys.view(shape).transpose(0, 1)
