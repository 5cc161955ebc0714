"""Scalars of distances, laid out along the diagonals of a matrix of scores, and their gradient."""

from typing import Any, Tuple

import torch
from torch import Tensor

# Rows summed at a time: a block of them fits into the cache, in a buffer hardly wider than a row.
_BLOCK = 64


def spread(scalars: Tensor, queries: int, keys: int) -> Tensor:
    """Lay out one scalar per distance along the diagonals of a matrix.

    The queries are the last of the keys' positions. The gradient is summed along the diagonals;
    gradients of gradients work too.

    Args:
        scalars: ``(…, queries + keys - 1)``, by falling distance (query minus key), from
            ``keys - 1`` to ``1 - queries``.
        queries: number of rows, ``Q``.
        keys: number of columns, ``K``.

    Returns:
        ``(…, Q, K)``; entry ``(i, j)`` is ``scalars[…, j - i + Q - 1]``.

    Raises:
        ValueError: if the number of scalars is not ``queries + keys - 1``.
    """
    if scalars.size(-1) != queries + keys - 1:
        raise ValueError(
            f"{queries} queries and {keys} keys need {queries + keys - 1} scalars, "
            f"not {scalars.size(-1)}"
        )
    return _Spread.apply(scalars, queries, keys)


class _Spread(torch.autograd.Function):
    """:func:`spread`; linear, so its backward is :class:`_SumDiagonals` whatever the input."""

    @staticmethod
    def forward(ctx: Any, scalars: Tensor, queries: int, keys: int) -> Tensor:
        scalars = scalars.contiguous()
        # Row by row from the last to the first, the window of scalars moves right by one.
        strides = scalars.stride()[:-1] + (1, 1)
        return scalars.as_strided(scalars.shape[:-1] + (queries, keys), strides).flip(-2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, None, None]:
        return _SumDiagonals.apply(gradient), None, None


class _SumDiagonals(torch.autograd.Function):
    """The adjoint of :func:`spread`: ``(…, Q, K)`` to ``(…, Q + K - 1)``."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        ctx.queries, ctx.keys = queries, keys = matrix.shape[-2:]
        matrices = matrix.reshape(-1, queries, keys)
        dtype = torch.promote_types(matrix.dtype, torch.float32)
        sums = matrix.new_zeros((matrices.size(0), queries + keys - 1), dtype=dtype)
        for start in range(0, queries, _BLOCK):
            block = matrices[:, start : start + _BLOCK]
            rows = block.size(1)
            width = keys + rows - 1
            # Each row starts one column further left than the one before: diagonals are columns.
            upright = block.new_zeros((block.size(0), rows, width))
            upright.as_strided(block.shape, (rows * width, width - 1, 1), rows - 1).copy_(block)
            sums.narrow(1, queries - rows - start, width).add_(upright.sum(dim=1, dtype=dtype))
        return sums.view(matrix.shape[:-2] + sums.shape[1:]).to(matrix.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Spread.apply(gradient, ctx.queries, ctx.keys)
