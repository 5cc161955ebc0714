"""Encodings that add a scalar per distance to the scores, and how scalars become a matrix."""

from typing import Any, Tuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from fairseq_posenc.encodings.base import (
    AttentionTerms,
    Encoding,
    ExportedPositions,
    Positions,
    Terms,
)

# From this many queries on, a CPU gets what a matrix of scores is made of instead of the matrix:
# attention there makes it piece by piece, and recomputes it.
LONG = 1024
# Rows summed at a time on a CPU: they fit into the cache, in a buffer hardly wider than a row.
_BLOCK = 64


class ByDistance(Encoding):
    """Base of encodings whose only term is a scalar per distance, added to the scaled scores."""

    def bias_by_distance(self, queries: int, keys: int) -> Tensor:
        """Return the scalars ``(layers or 1, heads or 1, Q + K - 1)``.

        They are in the order of falling distances, query minus key, from ``K - 1`` to ``1 - Q``.
        """
        raise NotImplementedError(f"{type(self).__name__}.bias_by_distance")

    def forward(self, positions: Positions) -> Terms:
        """Return the biases; one object serves all layers that share their scalars."""
        queries, keys = positions.numbers.size(1), positions.num_keys
        # per layer: scalars (heads or 1, Q + K - 1) → bias (heads or 1, Q, K)
        by_layer = self.bias_by_distance(queries, keys).unbind()
        if makes_no_matrix(queries, by_layer[0].device):
            terms = [AttentionTerms(bias_by_distance=scalars) for scalars in by_layer]
            return Terms.of_layers(self.stack, terms)
        return Terms.of_biases(self.stack, [to_toeplitz(x, queries, keys) for x in by_layer])

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the scalars of all distances below ``length``."""
        return ExportedPositions(bias=self.bias_by_distance(length, length).flip(-1))


def makes_no_matrix(queries: int, device: torch.device) -> bool:
    """Return whether attention makes a bias ``(heads, Q, K)`` itself, piece by piece."""
    return queries >= LONG and device.type == "cpu" and not is_compiling()


def scalars_of(table: Tensor, rows: Tensor) -> Tensor:
    """Return entries of a table ``(…, n)`` of scalars; many distances may share one.

    Args:
        table: gradients are summed in float32 at least.
        rows: ``(Q + K - 1,)`` int64.
    """
    precise = table.to(torch.promote_types(table.dtype, torch.float32))
    return precise.index_select(-1, rows).to(table.dtype)


def to_toeplitz(scalars: Tensor, queries: int, keys: int) -> Tensor:
    """Lay out one scalar per distance along the diagonals of a matrix of scores.

    The queries are the last of the keys' positions. The gradient is summed along the diagonals.

    Args:
        scalars: ``(…, Q + K - 1)``, by falling distance (query minus key), from ``K - 1`` to
            ``1 - Q``.
        queries: number of rows, ``Q``.
        keys: number of columns, ``K``.

    Returns:
        ``(…, Q, K)``; entry ``(i, j)`` is ``scalars[…, j - i + Q - 1]``.

    Raises:
        ValueError: if the number of scalars is not ``Q + K - 1``.
    """
    if scalars.size(-1) != queries + keys - 1:
        raise ValueError(
            f"{queries} queries and {keys} keys need {queries + keys - 1} scalars, "
            f"not {scalars.size(-1)}"
        )
    return _ToToeplitz.apply(scalars, queries, keys)


class _ToToeplitz(torch.autograd.Function):
    """:func:`to_toeplitz`; it is linear, so its backward pass needs no input."""

    @staticmethod
    def forward(ctx: Any, scalars: Tensor, queries: int, keys: int) -> Tensor:
        scalars = scalars.contiguous()
        # Row by row from the last to the first, the window of scalars moves right by one.
        strides = scalars.stride()[:-1] + (1, 1)
        return scalars.as_strided(scalars.shape[:-1] + (queries, keys), strides).flip(-2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, matrix: Tensor) -> Tuple[Tensor, None, None]:
        sums = diagonal_sums(matrix.reshape(-1, *matrix.shape[-2:]))
        return sums.view(matrix.shape[:-2] + sums.shape[1:]).to(matrix.dtype), None, None


def diagonal_sums(matrices: Tensor) -> Tensor:
    """Return the sums along the diagonals of ``(n, Q, K)``, ``(n, Q + K - 1)`` in float32 at least.

    From the last row's first column to the first row's last, the order of falling distances.
    """
    queries, keys = matrices.shape[-2:]
    dtype = torch.promote_types(matrices.dtype, torch.float32)
    sums = matrices.new_zeros((matrices.size(0), queries + keys - 1), dtype=dtype)
    rows_at_a_time = queries if matrices.is_cuda else _BLOCK
    for start in range(0, queries, rows_at_a_time):
        # block: (n, rows, K); upright: (n, rows, K + rows - 1)
        block = matrices[:, start : start + rows_at_a_time]
        rows = block.size(1)
        width = keys + rows - 1
        # Each row starts one column further left than the one before: diagonals are columns.
        upright = block.new_zeros((block.size(0), rows, width))
        upright.as_strided(block.shape, (rows * width, width - 1, 1), rows - 1).copy_(block)
        sums.narrow(1, queries - rows - start, width).add_(upright.sum(dim=1, dtype=dtype))
    return sums
