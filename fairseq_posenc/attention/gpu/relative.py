"""Fused attention with relative keys and values, or distances, as a function with gradients."""

from functools import lru_cache
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import triton
from torch import Tensor
from torch.compiler import is_compiling

from fairseq_posenc.attention import plain
from fairseq_posenc.attention.gpu import kernels
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.errors import UsageError, first_line

# Fewest queries that fill half a tile, and most bytes of a head for which registers suffice.
_FEW_QUERIES, _WIDEST = 16, 256
# Programs that keep a large GPU busy.
_PROGRAMS = 512


def supports(inputs: Inputs) -> bool:
    """Tell whether :func:`attend` can take these inputs, and gains by it.

    Products of float32 in full precision have no fast hardware: so float32 goes the plain
    way, unless torch's own products may be rounded to TF32. So does what torch.compile compiles.
    """
    queries, keys, values, terms, _, causal, dropout_p = inputs
    batch, heads, length, width = queries.shape
    if is_compiling():
        return False
    if length < _FEW_QUERIES or dropout_p >= 1 or width * queries.element_size() > _WIDEST:
        return False
    fast = (torch.float16, torch.bfloat16, torch.float32)[: 2 + _tf32_is_allowed()]
    if (
        queries.dtype not in fast
        or not queries.dtype == keys.dtype == values.dtype
        or not _terms_fit(inputs)
    ):
        return False
    # 32 bits count elements, 16 bits the second dimension of a grid
    if max(queries.numel(), keys.numel()) >= 2**31 or batch * heads >= 2**16:
        return False
    kind = (terms.distance_keys is not None, terms.relative_values is not None)
    _check(queries.device, queries.dtype, width, causal, *kind)
    return True


def _tf32_is_allowed() -> bool:
    """Tell whether torch's products of float32 may be rounded, by any of its settings."""
    options = torch.backends.cuda.matmul
    try:
        return options.fp32_precision == "tf32"
    except (AttributeError, AssertionError):  # before torch 2.9
        return options.allow_tf32


def _terms_fit(inputs: Inputs) -> bool:
    """Tell whether the terms are those of Shaw or of Transformer-XL, and nothing else."""
    terms, keys = inputs.terms, inputs.keys.size(2)
    tables = (terms.relative_keys, terms.relative_values)
    shifts = (terms.content_query, terms.position_query)
    if terms.bias is not None or terms.segments is not None:
        return False
    if terms.distance_keys is not None:
        rows = keys if inputs.causal else keys + inputs.queries.size(2) - 1
        fits = terms.distance_keys.size(1) >= rows
        return fits and tables == (None, None) and all(shift is not None for shift in shifts)
    if tables[0] is None or tables[0].size(0) < 3 or shifts != (None, None):
        return False
    return tables[1] is None or tables[1].shape == tables[0].shape


@lru_cache(maxsize=None)
def _check(device: torch.device, dtype: torch.dtype, *case: Any) -> None:
    """Compare the kernels with the plain implementation, once for each case of :func:`_error`.

    Raises:
        UsageError: the kernels do not run here or are wrong. After a fault of CUDA nothing runs on
            the GPU any more, so this process cannot continue without them.
    """
    reason = ""
    try:
        if torch.cuda.get_device_capability(device) < (8, 0):
            reason = "they need an Ampere GPU or a later one"
        else:
            error = _error(device, dtype, *case)
            if not error <= 16 * torch.finfo({torch.float32: torch.float16}.get(dtype, dtype)).eps:
                reason = f"their error is {error:.1e}"
    except Exception as failure:
        reason = f"{type(failure).__name__}: {first_line(failure)}"
    if reason:
        raise UsageError(f"POSENC_ATTENTION=triton: the kernels fail here ({reason}): unset it")


def _error(
    device: torch.device,
    dtype: torch.dtype,
    width: int,
    causal: bool,
    distances: bool,
    values: bool,
) -> float:
    """Return the largest error of outputs and gradients of a small case, ÷ the largest entry."""
    length, heads = 70, 2
    generator = torch.Generator().manual_seed(1)
    names = ("slope", "queries", "keys", "values")
    shapes: Dict[str, Tuple[int, ...]] = dict.fromkeys(names, (length, 2, heads, width))
    if distances:
        shapes["distance_keys"] = (heads, 2 * length - 1, width)
        shapes["content_query"] = shapes["position_query"] = (heads, width)
    else:
        shapes["relative_keys"] = (17, width)
        shapes.update({"relative_values": (17, width)} if values else {})
    drawn = {n: torch.randn(x, generator=generator).to(device, dtype) for n, x in shapes.items()}
    padding = torch.arange(length, device=device).expand(2, length) >= length - 7
    found: List[Sequence[Tensor]] = []
    autocast = torch.autocast(device.type, enabled=False)
    with torch.inference_mode(False), torch.enable_grad(), autocast:
        for wide, way in ((dtype, attend), (torch.float64, lambda x: plain.attend(x)[0])):
            leaves = {n: x.detach().to(wide).requires_grad_() for n, x in drawn.items()}
            slope, *learned = leaves.values()
            slope, q, k, v = (x.permute(1, 2, 0, 3) for x in (slope, *learned[:3]))
            terms = AttentionTerms(width**-0.5, **dict(list(leaves.items())[4:]))
            out = way(Inputs(q, k, v, terms, padding, causal))
            found.append([out.detach(), *torch.autograd.grad(out, learned, slope)])
    return max(float((x - y).abs().max() / y.abs().max()) for x, y in zip(*found))


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs ``(B, H, Q, d)``, as :func:`fairseq_posenc.attention.plain.attend` does.

    For inputs that :func:`supports` accepts. A query that may look at nothing gets zeros. Outputs
    and gradients lie in memory as ``(T, B, H, d)``. What is dropped follows from torch's generator
    of the device. There are no gradients of gradients.
    """
    terms, mask, seed = inputs.terms, inputs.padding_mask, None
    if inputs.dropout_p:
        # drawn on the device: nobody waits for it
        seed = torch.randint(2**62, (1,), device=inputs.queries.device)
    padding = None if mask is None else mask.contiguous().view(torch.uint8)
    keys = terms.relative_keys if terms.distance_keys is None else terms.distance_keys
    return _FusedRelative.apply(
        (terms.scale, inputs.causal, inputs.dropout_p), padding, seed,
        inputs.queries, inputs.keys, inputs.values,
        terms.content_query, terms.position_query, keys, terms.relative_values,
    )  # fmt: skip


class _FusedRelative(torch.autograd.Function):
    """The kernels' passes; gradients of tables are summed in float32 and cast at the end."""

    @staticmethod
    def forward(ctx, settings, padding, seed, q, k, v, u, w, tk, tv):
        ctx.settings, ctx.dtypes = settings, [x if x is None else x.dtype for x in (u, w, tk, tv)]
        # (B, H, T, d) → (T, B, H, d), as the kernels want it
        q, k, v = (x.permute(2, 0, 1, 3).contiguous() for x in (q, k, v))
        u, w = (x if x is None else x.contiguous() for x in (u, w))
        # tables (rows, H, d) by falling distance
        if u is not None:
            tk = tk.to(q.dtype).transpose(0, 1)
            tk = tk if tk.stride(-1) == 1 else tk.contiguous()
        else:
            shape = (-1, q.size(2), -1)
            tk, tv = (
                x if x is None else x.to(q.dtype).flip(0).unsqueeze(1).expand(shape)
                for x in (tk, tv)
            )
        work = [q, k, v, u, w, tk, tv, padding, seed]
        length, batch, heads, _ = q.shape
        out, lse = torch.empty_like(q), q.new_empty((batch * heads, length), dtype=torch.float32)
        # one program per 32 queries of each matrix of scores
        grid = (triton.cdiv(length, kernels.BLOCK.value), batch * heads)
        _launch(kernels._forward, grid, settings, work, out, lse)
        ctx.save_for_backward(*work, out, lse)
        return out.permute(1, 2, 0, 3)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        *work, out, lse = ctx.saved_tensors
        q, k, v, u, _, tk, tv, _, _ = work
        _, batch, heads, width = q.shape
        by_query, by_key, by_row = (triton.cdiv(x.size(0), kernels.BLOCK.value) for x in (q, k, tk))
        # lse, slopes, delta: see the kernels' arguments
        rest = [lse, gradient.permute(2, 0, 1, 3).contiguous(), torch.empty_like(lse)]
        dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
        sums = lse.new_empty((batch, heads, by_query, 4, width))
        parts = min(batch, triton.cdiv(_PROGRAMS, by_row * heads))
        dtk = lse.new_zeros((parts, heads, tk.size(0), width))
        dtv = None if tv is None else torch.zeros_like(dtk)
        run = [ctx.settings, work, *rest]
        _launch(kernels._backward_queries, (by_query, batch * heads), *run, out, dq, sums)
        _launch(kernels._backward_keys, (by_key, batch * heads), *run, dk, dv)
        _launch(kernels._backward_tables, (by_row, heads, parts), *run, dtk, dtv, num_warps=8)
        if u is not None:
            du, dw = sums.sum(dim=(0, 2)).unbind(1)[:2]
            tables = [du, dw, dtk.sum(0), None]
        else:
            ends = sums.sum(dim=(0, 1, 2)).view(2, 2, width)
            tables = [None, None, _with_ends(dtk, ends[0]), _with_ends(dtv, ends[1])]
        tables = [x if x is None else x.to(dtype) for x, dtype in zip(tables, ctx.dtypes)]
        return (None, None, None, *(x.permute(1, 2, 0, 3) for x in (dq, dk, dv)), *tables)


def _with_ends(table: Optional[Tensor], ends: Tensor) -> Optional[Tensor]:
    """Sum a table's gradient over parts and heads, add what clipping adds, undo the flip."""
    if table is None:
        return None
    table = table.sum(dim=(0, 1))
    table[0] += ends[0]
    table[-1] += ends[1]
    return table.flip(0)


def _launch(
    kernel: Any,
    grid: Tuple[int, ...],
    settings: Tuple[float, bool, float],
    work: Sequence[Optional[Tensor]],
    *results: Optional[Tensor],
    **others: int,
) -> None:
    """Run a kernel on the tensors' device.

    Registers and shared memory that it needs: tests/attention/core/compile_kernels.py.
    """
    queries, keys, u, table = work[0], work[1], work[3], work[5]
    scale, causal, dropout_p = settings
    length, batch, heads, width = queries.shape
    warps = 4 if width * queries.element_size() <= 128 else 8
    options = {"num_warps": warps, "num_stages": 2, **others}
    zero = table.size(0) // 2 if u is None else keys.size(0) - 1
    with torch.cuda.device_of(queries):
        kernel[grid](
            *work, *results,
            batch, heads, length, keys.size(0), table.size(0), zero, *table.stride()[:2],
            scale, dropout_p, D=width, WIDTH=max(16, triton.next_power_of_2(width)),
            CAUSAL=causal, **options,
        )  # fmt: skip
