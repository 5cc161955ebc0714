"""Attention in half precision that keeps one tensor of weights for the backward pass.

For Shaw's values, which need the weights: torch has no fused kernel that gives them. The plain
backend keeps the softmax in float32, the mask of dropout, and the weights that are left in half
precision: 7 bytes per score. Here it is one number in half precision, 2 bytes; dropped weights are
negative.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention import plain
from fairseq_posenc.attention.plain import Inputs


def supports(inputs: Inputs) -> bool:
    """Return whether :func:`attend` can take these inputs: whole sequences in half precision."""
    queries, keys, values = inputs.queries, inputs.keys, inputs.values
    same = queries.dtype == keys.dtype == values.dtype
    is_half = queries.dtype in (torch.float16, torch.bfloat16)
    return same and is_half and queries.size(2) == keys.size(2) > 1 and inputs.dropout_p < 1


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs ``(B, H, Q, d)`` of attention; there are no gradients of gradients.

    Weights are rounded to half precision before they are dropped, and scaled up after the product.
    """
    scores, values, table = plain.scores_of(inputs), inputs.values, inputs.terms.relative_values
    index, rows = None, 0
    if table is not None:
        table, index = plain.rows_of_pairs(table.to(values.dtype), scores.shape)
        rows = table.size(0)
    outputs, sums = _OneTensor.apply(scores, values, index, rows, inputs.dropout_p)
    # Σ_j w[i, j] · table[row of (i, j)] = Σ_r (sum of the w[i, j] of row r) · table[r]
    return outputs if table is None else outputs + sums @ table


class _OneTensor(torch.autograd.Function):
    """Softmax of scores, dropout, and the weights' sums: of values, and by the rows of a table."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        values: Tensor,
        index: Optional[Tensor],
        rows: int,
        dropout_p: float,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        # signed: (B, H, Q, K), dropped weights with a minus sign
        signed = scores.softmax(dim=-1).to(values.dtype)
        if dropout_p:
            dropped = torch.empty_like(signed, dtype=torch.bool).bernoulli_(dropout_p)
            signed = torch.where(dropped, -signed, signed)
        ctx.save_for_backward(signed, values, index)
        ctx.scale, ctx.dtype = 1 / (1 - dropout_p), scores.dtype
        undropped = signed.clamp(min=0) if dropout_p else signed
        sums = None  # (B, H, Q, rows of the table)
        if index is not None:
            sums = undropped.new_zeros(undropped.shape[:-1] + (rows,), dtype=scores.dtype)
            sums.scatter_add_(-1, index, undropped.to(scores.dtype))
            sums = (sums * ctx.scale).to(values.dtype)
        return (undropped @ values) * ctx.scale, sums

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_outputs: Tensor, of_sums: Optional[Tensor]
    ) -> Tuple[Tensor, Tensor, None, None, None]:
        signed, values, index = ctx.saved_tensors
        undropped = signed.clamp(min=0)
        of_outputs = of_outputs * ctx.scale
        of_values = undropped.transpose(-1, -2) @ of_outputs
        # of the weights that are left: (B, H, Q, K)
        gradient = (of_outputs @ values.transpose(-1, -2)).to(ctx.dtype)
        if index is not None and of_sums is not None:
            # the adjoint of scatter_add: each weight gets the gradient of its sum
            gradient += (of_sums.to(ctx.dtype) * ctx.scale).gather(-1, index)
        # back through dropout and softmax, with weights w = |signed| and undropped ones:
        # gradient · undropped - w · Σ (gradient · undropped)
        gradient *= undropped
        total = gradient.sum(dim=-1, keepdim=True)
        gradient.addcmul_(signed.abs().to(ctx.dtype), total, value=-1)
        return gradient, of_values, None, None, None
