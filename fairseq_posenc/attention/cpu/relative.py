"""Tables of relative keys and values (Shaw et al. 2018) for the chunked attention.

A table ``(2k + 1, d)`` has one row per distance, clipped to ``-k … k``. It is used in two ways that
are each other's adjoint: products with queries are added to scores, and weights, which have the
scores' shape, gather its rows into outputs. There is a class for short and one for long sequences,
with the same methods; their ``rows`` are queries or outputs ``(matrices, rows, d)``:

- ``add_to_scores`` adds the products of rows with the table to a chunk of scores;
- ``weights_by_distance`` turns a chunk of weights into what the next two methods take;
- ``combine`` adds the weighted sums of the table's rows to rows;
- ``accumulate`` adds the weighted sums of rows to the table's gradient;
- ``gradient`` returns the table's gradient at the end.
"""

from typing import Any, Dict, Optional, Tuple, Union

import torch
from torch import Tensor

from fairseq_posenc.attention.cpu.chunks import Chunk, ScoreLayout, Scratch

# Longest sequence for which every pair of positions may have its own copy of a table's row, and
# longest for which that is faster where there is another implementation.
_PAIRS, _FAST_PAIRS = 128, 48
# Largest distance for which bands of neighbouring rows do not touch: no chunk has fewer columns.
_MAX_DISTANCE = 128


def supports(queries: int, keys: int, rows: int) -> bool:
    """Return whether there is an implementation for a table with that many rows."""
    if queries != keys or rows < 3:
        return False
    return keys <= _PAIRS if keys <= rows else rows // 2 <= _MAX_DISTANCE


def build(layout: ScoreLayout, table: Tensor, scale: float) -> Union["Pairs", "Band"]:
    """Return the implementation for a table that is supported; products are times ``scale``."""
    shortest = table.size(0) if layout.causal else max(table.size(0), _FAST_PAIRS)
    return (Pairs if layout.keys <= shortest else Band)(layout, table, scale)


class _Keys:
    """Methods of a table of keys as a term of the scores, see :mod:`~.score_terms`."""

    def backward(
        self: Any, gradient: Tensor, queries: Tensor, query_gradient: Tensor, chunk: Chunk
    ) -> None:
        """Keep the table's gradient and add to that of the queries."""
        distance_weights = self.weights_by_distance(gradient, chunk)
        self.combine(query_gradient, distance_weights)
        self.accumulate(distance_weights, queries)

    def gradients(self: Any) -> Dict[str, Tensor]:
        """Return the gradient of the table."""
        return {"relative_keys": self.gradient()}


class Pairs(_Keys):
    """For short sequences: each query position has its own matrix of rows, one per key position.

    One product for each position then serves the whole batch and all heads.
    """

    margin = 0

    def __init__(self, layout: ScoreLayout, table: Tensor, scale: float):
        self.table, self.scale = table, scale
        max_distance = table.size(0) // 2
        index = torch.arange(layout.keys)
        distances = (index[:, None] - index).clamp_(-max_distance, max_distance)
        self.index = (distances + max_distance).flatten()
        shape = (layout.keys, layout.keys, table.size(1))
        self.rows = table.index_select(0, self.index).view(shape)
        self.total = torch.zeros_like(self.rows)

    def base_values(self, values: Tensor) -> Tensor:
        """Return the values to whose weighted sums ``combine`` adds."""
        return values

    def add_to_scores(self, scores: Tensor, rows: Tensor, chunk: Chunk) -> None:
        """Add ``scale · rows · tableᵀ`` to the scores."""
        table = self.rows.transpose(1, 2)
        scores.transpose(0, 1).baddbmm_(rows.transpose(0, 1), table, alpha=self.scale)

    def weights_by_distance(self, weights: Tensor, chunk: Chunk) -> Tensor:
        """Return the weights as they are."""
        return weights

    def combine(self, rows: Tensor, weights: Tensor) -> None:
        """Add ``scale · weights · table`` to the rows."""
        rows.transpose(0, 1).baddbmm_(weights.transpose(0, 1), self.rows, alpha=self.scale)

    def accumulate(self, weights: Tensor, rows: Tensor) -> None:
        """Add ``scale · weightsᵀ · rows`` to the table's gradient."""
        self.total.baddbmm_(weights.permute(1, 2, 0), rows.transpose(0, 1), alpha=self.scale)

    def gradient(self, values: Optional[Tensor] = None) -> Tensor:
        """Return the table's gradient."""
        total = torch.zeros_like(self.table)
        return total.index_add_(0, self.index, self.total.flatten(0, 1))


class Band(_Keys):
    """For long sequences: one copy of the table serves all positions.

    With 5 tokens and distances clipped to -1 … 1 (k = 1), query i (row) and key j (column) use the
    table's row for the distance i - j::

        not causal             causal
        0  .  .  .  .          0  x  x  x  x        0, +  the rows of distances 0 and 1
        +  0  .  .  .          .  0  x  x  x        .     the reference: distance -1 and less,
        o  +  0  .  .          .  .  0  x  x              or if causal 1 and more
        o  o  +  0  .          .  .  .  0  x        o     distance 2 and more: the row of 1
        o  o  o  +  0          .  .  .  .  0        x     masked

    - The *reference* is the row that all ``.`` share. It is subtracted from the whole table: the
      softmax ignores what a row of scores has in common, and weights sum up to 1, so that values
      get the reference once (:meth:`base_values`). Nothing is computed for ``.``.
    - The *band* is what is left near the diagonal, ``+ 0``: 2k distances, or k if causal. Those of
      one query lie side by side in memory, and those of the next query start one column further
      right. So the band is a strided view of the scores.
    - The *tail* ``o`` is the other clipped end: one number per query for all of it.

    Bands of the first and last queries reach out of their matrix. There they are multiplied by 0,
    and the scores need memory before and behind them (``margin``).
    """

    def __init__(self, layout: ScoreLayout, table: Tensor, scale: float):
        self.table, self.scale, self.causal = table, scale, layout.causal
        max_distance = table.size(0) // 2
        self.max_distance = self.margin = max_distance
        if self.causal:
            self.reference, rows = 2 * max_distance, slice(max_distance, 2 * max_distance)
        else:
            self.reference, rows = 0, slice(1, 2 * max_distance + 1)
        self.used = rows
        # By rising key position, that is by falling distance.
        self.band = (table[rows] - table[self.reference]).flip(0)
        self.reach = max_distance - 1 if self.causal else max_distance
        self.total = torch.zeros_like(self.band)
        self.masks: Dict[Tuple[int, int, int], Tuple[Tensor, Tensor]] = {}
        self.scratch = Scratch(table, 0)

    def _view(self, scores: Tensor, chunk: Chunk) -> Tensor:
        """View the band ``(matrices, rows, width)`` of the scores ``(matrices, rows, columns)``."""
        matrices, rows, columns = scores.shape
        # from one query to the next: one row down and one column to the right
        return scores.as_strided(
            (matrices, rows, self.band.size(0)),
            (rows * columns, columns + 1, 1),
            scores.storage_offset() + chunk.rows.start - self.reach,
        )

    def _masks(self, chunk: Chunk) -> Tuple[Tensor, Tensor]:
        """Return 1 where the band is inside the matrix and 1 where the tail is, 0 elsewhere."""
        start, (_, rows, columns) = chunk.rows.start, chunk.shape
        if (start, rows, columns) not in self.masks:
            first = torch.arange(start - self.reach, start - self.reach + rows)[:, None]
            key = first + torch.arange(self.band.size(0))
            inside = ((key >= 0) & (key < columns)).to(self.table.dtype)
            # key j is in the tail of query i if i - j > k: in row r, up to start + r - k - 1
            last_clipped = start - self.max_distance - 1
            tail = self.table.new_ones(rows, max(last_clipped + rows, 0)).tril_(last_clipped)
            self.masks[start, rows, columns] = inside, tail
        return self.masks[start, rows, columns]

    def _has_tail(self, chunk: Chunk) -> bool:
        return not self.causal and chunk.rows.stop > self.max_distance + 1

    def base_values(self, values: Tensor) -> Tensor:
        """Return the values to whose weighted sums ``combine`` adds."""
        return values + self.table[self.reference]

    def add_to_scores(self, scores: Tensor, rows: Tensor, chunk: Chunk) -> None:
        """Add ``scale · rows · tableᵀ`` to the scores."""
        # inside: (rows, width); tail: (rows, columns of the tail)
        inside, tail = self._masks(chunk)
        band = self.band.t().expand(rows.size(0), -1, -1)
        products = torch.bmm(rows, band)  # (matrices, rows, width)
        if self._has_tail(chunk):
            # the band's first entry is the largest distance, which the tail shares
            scores[..., : tail.size(1)].addcmul_(products[..., :1], tail, value=self.scale)
        # The ends of two neighbouring matrices' bands share memory, which threads must not.
        view = self._view(scores, chunk)
        for parity in range(min(2, len(view))):
            view[parity::2].addcmul_(products[parity::2], inside, value=self.scale)

    def weights_by_distance(self, weights: Tensor, chunk: Chunk) -> Tensor:
        """Return the weights in the band, the first one with the tail's sum."""
        inside, tail = self._masks(chunk)
        band = self._view(weights, chunk) * inside
        if self._has_tail(chunk):
            weights = weights[..., : tail.size(1)]
            scratch = self.scratch.get(weights.shape)
            band[..., 0] += torch.mul(weights, tail, out=scratch).sum(dim=-1)
        return band

    def combine(self, rows: Tensor, weights: Tensor) -> None:
        """Add ``scale · weights · table`` to the rows."""
        rows.baddbmm_(weights, self.band.expand(weights.size(0), -1, -1), alpha=self.scale)

    def accumulate(self, weights: Tensor, rows: Tensor) -> None:
        """Add ``scale · weightsᵀ · rows`` to the table's gradient."""
        self.total.addbmm_(weights.transpose(1, 2), rows, alpha=self.scale)

    def gradient(self, values: Optional[Tensor] = None) -> Tensor:
        """Return the table's gradient; for a table of values given that of the values."""
        total = torch.zeros_like(self.table)
        total[self.used] = self.total.flip(0)
        # the band is the table less the reference, so the reference gets what it gets, with a minus
        total[self.reference] = -self.total.sum(dim=0)
        if values is not None:
            # base_values has added it to each value
            total[self.reference] += values.sum(dim=(0, 1))
        return total
