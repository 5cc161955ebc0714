"""Linear layers on a CPU whose products are computed in bfloat16: ``--amp`` without a GPU."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn

# oneDNN builds a kernel for every new number of rows, which takes longer than the product; batches
# differ in their number of tokens. Rounded up, there are few.
_ROWS = 64


class Bfloat16Linear(nn.Linear):
    """A linear layer ``(…, in) → (…, out)`` of float32, with products in bfloat16 in training.

    Its parameters, their gradients, inputs and outputs are float32; sums of products are, too. In
    evaluation it is an ``nn.Linear``, as under fairseq's ``--amp`` on a GPU.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the outputs."""
        if not self.training or input.dtype != torch.float32 or not input.numel():
            return super().forward(input)
        return _Product.apply(input, self.weight, self.bias)


def use_bfloat16_products(model: nn.Module) -> None:
    """Let all linear layers of a model compute products in bfloat16; parameters stay as they are.

    Layers of other classes, as those that are derived from ``nn.Linear``, stay as they are.
    """
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Bfloat16Linear


def has_fast_bfloat16() -> bool:
    """Return whether this CPU multiplies bfloat16 by instructions of its own.

    Of x86, AVX512-BF16 and AMX; other CPUs are asked by way of oneDNN.
    """
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if torch.backends.cpu.get_cpu_capability().startswith(("AVX", "DEFAULT")):
        return any(getattr(torch.cpu, check, lambda: False)() for check in checks)
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class _Product(torch.autograd.Function):
    """``input · weightᵀ + bias`` and its gradients, by products in bfloat16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        rows = _rounded(x.flatten(0, -2))  # (rows rounded up, in)
        narrow = weight.to(torch.bfloat16)
        # kept as they were multiplied: half the memory of float32
        ctx.save_for_backward(rows, narrow)
        ctx.shape, ctx.has_bias = x.shape, bias is not None
        outputs = (rows @ narrow.t())[: x.shape[:-1].numel()].view(*x.shape[:-1], -1)
        outputs = outputs.float()  # no view: fairseq scales its queries in place
        if bias is not None:
            outputs += bias
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        rows, narrow = ctx.saved_tensors
        flat = gradient.flatten(0, -2)
        by_row = _rounded(flat)
        of_input = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_input = (by_row @ narrow)[: len(flat)].float().view(ctx.shape)
        if ctx.needs_input_grad[1]:
            of_weight = (by_row.t() @ rows).float()
        if ctx.has_bias and ctx.needs_input_grad[2]:
            of_bias = flat.sum(dim=0)
        return of_input, of_weight, of_bias


def _rounded(x: Tensor) -> Tensor:
    """Return ``(n, channels)`` in bfloat16, with rows of zeros up to a multiple of ``_ROWS``."""
    rows = x.new_empty((-(-len(x) // _ROWS) * _ROWS, x.size(1)), dtype=torch.bfloat16)
    rows[: len(x)] = x
    rows[len(x) :] = 0
    return rows
