"""Attention with relative keys and values or with distances, fused into Triton kernels for GPUs.

Scores exist one tile of BLOCK × BLOCK at a time (FlashAttention-2, Dao 2023): nothing with both
lengths is in memory, forward or backward, and one float32 per query is kept for the backward pass.
The weights that dropout drops follow from a seed and the weight's place (Philox), so every kernel
draws the same.

A table ``(rows, D)`` has a row per distance, query minus key, by falling distance. The distances of
a tile belong to 2 · BLOCK consecutive rows, so ``queries · rowsᵀ`` holds all products that the tile
needs, and a gather within the tile (the relative shift) lays them out by key. Its adjoint turns
weights into the factors of these rows. Shaw's distances are clipped: tiles beyond the clipping
distance need a single row.

The gradient of a table sums over all pairs of one distance. One kernel owns BLOCK rows of it and
walks along the diagonals that belong to them, in float32, without atomics: the sums are the same in
every run. What clipping adds to a table's ends comes from the kernel of the queries' gradients.
"""

import math
from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fairseq_posenc.attention.plain import Inputs


@triton.jit
def _load(pointer, rows, stride, length, D: constexpr, WIDTH: constexpr):
    """Rows of a matrix ``(length, D)``, 0 where there are none, padded to WIDTH columns."""
    columns = tl.arange(0, WIDTH)
    inside = ((rows >= 0) & (rows < length))[:, None] & (columns < D)[None, :]
    return tl.load(pointer + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def _store(pointer, value, rows, stride, length, D: constexpr, WIDTH: constexpr):
    """The inverse of :func:`_load`."""
    columns = tl.arange(0, WIDTH)
    inside = ((rows >= 0) & (rows < length))[:, None] & (columns < D)[None, :]
    pointers = pointer + rows[:, None] * stride + columns[None, :]
    tl.store(pointers, value.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _table_products(x, table, first, stride, rows, D: constexpr, WIDTH: constexpr,
                    BLOCK: constexpr, PRECISION: constexpr):  # fmt: skip
    """Products ``(BLOCK, BLOCK)`` of each query's x with the row of its distance to each key.

    The tile's first row of the table is ``first``: that of its last query and first key.
    """
    if first + 2 * BLOCK <= 1 or first >= rows - 1:
        row = _load(table, tl.minimum(tl.maximum(first + tl.arange(0, 1), 0), rows - 1),
                    stride, rows, D, WIDTH)  # fmt: skip
        products = tl.sum(x.to(tl.float32) * row.to(tl.float32), 1)[:, None]
        products = tl.broadcast_to(products, (BLOCK, BLOCK))
    else:
        index = tl.minimum(tl.maximum(first + tl.arange(0, 2 * BLOCK), 0), rows - 1)
        near = _load(table, index, stride, rows, D, WIDTH)
        wide = tl.dot(x, tl.trans(near), input_precision=PRECISION)
        i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
        products = tl.gather(wide, BLOCK - 1 - i + j, 1)
    return products


@triton.jit
def _table_sums(weights, total, table, first, stride, rows, D: constexpr, WIDTH: constexpr,
                BLOCK: constexpr, PRECISION: constexpr):  # fmt: skip
    """Add to each query's total the rows of its distances to the keys, weighted: the adjoint."""
    if first + 2 * BLOCK <= 1 or first >= rows - 1:
        row = _load(table, tl.minimum(tl.maximum(first + tl.arange(0, 1), 0), rows - 1),
                    stride, rows, D, WIDTH)  # fmt: skip
        total += tl.sum(weights, 1)[:, None] * row.to(tl.float32)
    else:
        index = tl.minimum(tl.maximum(first + tl.arange(0, 2 * BLOCK), 0), rows - 1)
        near = _load(table, index, stride, rows, D, WIDTH)
        j = tl.arange(0, BLOCK)[:, None] + tl.arange(0, 2 * BLOCK)[None, :] - (BLOCK - 1)
        wide = tl.gather(weights, tl.minimum(tl.maximum(j, 0), BLOCK - 1), 1)
        wide = tl.where((j >= 0) & (j < BLOCK), wide, 0.0)
        total = tl.dot(wide.to(near.dtype), near, total, input_precision=PRECISION)
    return total


@triton.jit
def _visible(i, j, padding, keys, offset, CAUSAL: constexpr, PADDED: constexpr):
    """Whether queries i may look at keys j."""
    visible = (j >= 0) & (j < keys)
    if PADDED:
        visible = visible & (tl.load(padding + j, mask=visible, other=1) == 0)
    if CAUSAL:
        visible = visible & (j <= i + offset)
    return visible


@triton.jit
def _kept(seed, matrix, i, j, dropout):
    """Whether dropout keeps the weight of query i and key j in a matrix of the batch."""
    i, j = tl.broadcast(i, j)
    random, _, _, _ = tl.philox(tl.load(seed), j, i, i * 0 + matrix, i * 0)
    return tl.uint_to_uniform_float(random) >= dropout


@triton.jit
def _queries(q, u, w, i, head, stride, queries, D: constexpr, WIDTH: constexpr,
             DISTANCES: constexpr):  # fmt: skip
    """Queries of contents, q or q + u, and of positions, q or q + w."""
    content = _load(q, i, stride, queries, D, WIDTH)
    position = content
    if DISTANCES:
        columns = tl.arange(0, WIDTH)
        shifts = head * D + columns
        by_content = tl.load(u + shifts, mask=columns < D, other=0.0).to(tl.float32)
        by_position = tl.load(w + shifts, mask=columns < D, other=0.0).to(tl.float32)
        content = (content.to(tl.float32) + by_content[None, :]).to(content.dtype)
        position = (position.to(tl.float32) + by_position[None, :]).to(position.dtype)
    return content, position


@triton.jit
def _score_gradient(scores, slopes, visible, i, j, lse, delta, seed, matrix, factor, dropout,
                    DROPOUT: constexpr):  # fmt: skip
    """Weights after dropout, and the gradient of scores, from that of the weights."""
    weights = tl.exp2(tl.where(visible, scores * factor, float("-inf")) - lse[:, None])
    dropped = weights
    if DROPOUT:
        kept = _kept(seed, matrix, i, j, dropout)
        dropped = tl.where(kept, weights / (1 - dropout), 0.0)
        slopes = tl.where(kept, slopes / (1 - dropout), 0.0)
    return dropped, weights * (slopes - delta[:, None])


@triton.jit
def _forward(q, k, v, u, w, tk, tv, padding, seed, out, lse,
             heads, queries, keys, rows, zero, scale, dropout,
             D: constexpr, WIDTH: constexpr, BLOCK: constexpr, PRECISION: constexpr,
             CAUSAL: constexpr, PADDED: constexpr, DROPOUT: constexpr,
             DISTANCES: constexpr, VALUES: constexpr):  # fmt: skip
    """Outputs and log-sum-exp (base 2) of BLOCK queries of one matrix of scores."""
    start, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), tl.num_programs(1) * D
    head, offset, factor = matrix % heads, keys - queries, scale * 1.4426950408889634
    padding += matrix // heads * keys
    tk_stride = D
    if DISTANCES:
        tk += head * D
        tk_stride = heads * D
    i = start + tl.arange(0, BLOCK)
    content, position = _queries(q + matrix * D, u, w, i, head, stride, queries,
                                 D, WIDTH, DISTANCES)  # fmt: skip
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, WIDTH), tl.float32)
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, start + BLOCK + offset)
    for left in range(0, end, BLOCK):
        j = left + tl.arange(0, BLOCK)
        key = _load(k + matrix * D, j, stride, keys, D, WIDTH)
        value = _load(v + matrix * D, j, stride, keys, D, WIDTH)
        first = zero - offset - start + left - (BLOCK - 1)
        scores = tl.dot(content, tl.trans(key), input_precision=PRECISION)
        scores += _table_products(position, tk, first, tk_stride, rows,
                                  D, WIDTH, BLOCK, PRECISION)  # fmt: skip
        visible = _visible(i[:, None], j[None, :], padding, keys, offset, CAUSAL, PADDED)
        scores = tl.where(visible, scores * factor, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        # a query that has seen no key yet has weights of 0, not NaN
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        rescale = tl.exp2(highest - base)
        total = total * rescale + tl.sum(weights, 1)
        result = result * rescale[:, None]
        if DROPOUT:
            kept = _kept(seed, matrix, i[:, None], j[None, :], dropout)
            weights = tl.where(kept, weights / (1 - dropout), 0.0)
        result = tl.dot(weights.to(value.dtype), value, result, input_precision=PRECISION)
        if VALUES:
            result = _table_sums(weights, result, tv, first, D, rows, D, WIDTH, BLOCK, PRECISION)
        highest = higher
    base = tl.where(highest == float("-inf"), 0.0, highest)
    total = tl.where(total == 0, 1.0, total)
    _store(out + matrix * D, result / total[:, None], i, stride, queries, D, WIDTH)
    tl.store(lse + matrix * queries + i, base + tl.log2(total), mask=i < queries)


@triton.jit
def _backward_queries(q, k, v, u, w, tk, tv, padding, seed, out, lse, dout, delta, dq, sums,
                      heads, queries, keys, rows, zero, scale, dropout,
                      D: constexpr, WIDTH: constexpr, BLOCK: constexpr, PRECISION: constexpr,
                      CAUSAL: constexpr, PADDED: constexpr, DROPOUT: constexpr,
                      DISTANCES: constexpr, VALUES: constexpr):  # fmt: skip
    """Gradient of BLOCK queries, Σ dout · out, and sums over these queries ``(4, D)``.

    The sums are the gradients of u and w, or of the first and last row of tk, then of tv.
    """
    start, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), tl.num_programs(1) * D
    head, offset, factor = matrix % heads, keys - queries, scale * 1.4426950408889634
    padding += matrix // heads * keys
    tk_stride = D
    if DISTANCES:
        tk += head * D
        tk_stride = heads * D
    i = start + tl.arange(0, BLOCK)
    content, position = _queries(q + matrix * D, u, w, i, head, stride, queries,
                                 D, WIDTH, DISTANCES)  # fmt: skip
    slope = _load(dout + matrix * D, i, stride, queries, D, WIDTH)
    output = _load(out + matrix * D, i, stride, queries, D, WIDTH)
    mean = tl.sum(slope.to(tl.float32) * output.to(tl.float32), 1)
    tl.store(delta + matrix * queries + i, mean, mask=i < queries)
    norm = tl.load(lse + matrix * queries + i, mask=i < queries, other=float("inf"))
    by_content = tl.zeros((BLOCK, WIDTH), tl.float32)
    by_position = tl.zeros((BLOCK, WIDTH), tl.float32)
    # sums over keys beyond the clipping distance
    far = tl.zeros((BLOCK,), tl.float32)
    far_future = tl.zeros((BLOCK,), tl.float32)
    far_weights = tl.zeros((BLOCK,), tl.float32)
    far_future_weights = tl.zeros((BLOCK,), tl.float32)
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, start + BLOCK + offset)
    for left in range(0, end, BLOCK):
        j = left + tl.arange(0, BLOCK)
        key = _load(k + matrix * D, j, stride, keys, D, WIDTH)
        value = _load(v + matrix * D, j, stride, keys, D, WIDTH)
        first = zero - offset - start + left - (BLOCK - 1)
        scores = tl.dot(content, tl.trans(key), input_precision=PRECISION)
        scores += _table_products(position, tk, first, tk_stride, rows,
                                  D, WIDTH, BLOCK, PRECISION)  # fmt: skip
        slopes = tl.dot(slope, tl.trans(value), input_precision=PRECISION)
        if VALUES:
            slopes += _table_products(slope, tv, first, D, rows, D, WIDTH, BLOCK, PRECISION)
        visible = _visible(i[:, None], j[None, :], padding, keys, offset, CAUSAL, PADDED)
        weights, dscores = _score_gradient(scores, slopes, visible, i[:, None], j[None, :], norm,
                                           mean, seed, matrix, factor, dropout,
                                           DROPOUT)  # fmt: skip
        by_content = tl.dot(dscores.to(key.dtype), key, by_content, input_precision=PRECISION)
        if DISTANCES:
            by_position = _table_sums(dscores, by_position, tk, first, tk_stride, rows,
                                      D, WIDTH, BLOCK, PRECISION)  # fmt: skip
        else:
            by_content = _table_sums(dscores, by_content, tk, first, tk_stride, rows,
                                     D, WIDTH, BLOCK, PRECISION)  # fmt: skip
            row = zero - offset - i[:, None] + j[None, :]
            far += tl.sum(tl.where(row <= 0, dscores, 0.0), 1)
            far_future += tl.sum(tl.where(row >= rows - 1, dscores, 0.0), 1)
            if VALUES:
                far_weights += tl.sum(tl.where(row <= 0, weights, 0.0), 1)
                far_future_weights += tl.sum(tl.where(row >= rows - 1, weights, 0.0), 1)
    _store(dq + matrix * D, (by_content + by_position) * scale, i, stride, queries, D, WIDTH)
    columns = tl.arange(0, WIDTH)
    sums += (matrix * tl.num_programs(0) + tl.program_id(0)) * 4 * D + columns
    if DISTANCES:
        tl.store(sums, tl.sum(by_content, 0) * scale, mask=columns < D)
        tl.store(sums + D, tl.sum(by_position, 0) * scale, mask=columns < D)
    else:
        wide = content.to(tl.float32) * scale
        tl.store(sums, tl.sum(far[:, None] * wide, 0), mask=columns < D)
        tl.store(sums + D, tl.sum(far_future[:, None] * wide, 0), mask=columns < D)
        wide = slope.to(tl.float32)
        tl.store(sums + 2 * D, tl.sum(far_weights[:, None] * wide, 0), mask=columns < D)
        tl.store(sums + 3 * D, tl.sum(far_future_weights[:, None] * wide, 0), mask=columns < D)


@triton.jit
def _backward_keys(q, k, v, u, w, tk, tv, padding, seed, lse, dout, delta, dk, dv,
                   heads, queries, keys, rows, zero, scale, dropout,
                   D: constexpr, WIDTH: constexpr, BLOCK: constexpr, PRECISION: constexpr,
                   CAUSAL: constexpr, PADDED: constexpr, DROPOUT: constexpr,
                   DISTANCES: constexpr, VALUES: constexpr):  # fmt: skip
    """Gradients of BLOCK keys and their values."""
    left, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), tl.num_programs(1) * D
    head, offset, factor = matrix % heads, keys - queries, scale * 1.4426950408889634
    padding += matrix // heads * keys
    tk_stride = D
    if DISTANCES:
        tk += head * D
        tk_stride = heads * D
    j = left + tl.arange(0, BLOCK)
    key = _load(k + matrix * D, j, stride, keys, D, WIDTH)
    value = _load(v + matrix * D, j, stride, keys, D, WIDTH)
    dkey = tl.zeros((BLOCK, WIDTH), tl.float32)
    dvalue = tl.zeros((BLOCK, WIDTH), tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.maximum(left - offset, 0) // BLOCK * BLOCK
    for start in range(begin, queries, BLOCK):
        i = start + tl.arange(0, BLOCK)
        content, position = _queries(q + matrix * D, u, w, i, head, stride, queries,
                                     D, WIDTH, DISTANCES)  # fmt: skip
        slope = _load(dout + matrix * D, i, stride, queries, D, WIDTH)
        mean = tl.load(delta + matrix * queries + i, mask=i < queries, other=0.0)
        norm = tl.load(lse + matrix * queries + i, mask=i < queries, other=float("inf"))
        first = zero - offset - start + left - (BLOCK - 1)
        scores = tl.dot(content, tl.trans(key), input_precision=PRECISION)
        scores += _table_products(position, tk, first, tk_stride, rows,
                                  D, WIDTH, BLOCK, PRECISION)  # fmt: skip
        slopes = tl.dot(slope, tl.trans(value), input_precision=PRECISION)
        if VALUES:
            slopes += _table_products(slope, tv, first, D, rows, D, WIDTH, BLOCK, PRECISION)
        visible = _visible(i[:, None], j[None, :], padding, keys, offset, CAUSAL, PADDED)
        weights, dscores = _score_gradient(scores, slopes, visible, i[:, None], j[None, :], norm,
                                           mean, seed, matrix, factor, dropout,
                                           DROPOUT)  # fmt: skip
        dkey = tl.dot(tl.trans(dscores.to(key.dtype)), content, dkey, input_precision=PRECISION)
        dvalue = tl.dot(tl.trans(weights.to(key.dtype)), slope, dvalue, input_precision=PRECISION)
    _store(dk + matrix * D, dkey * scale, j, stride, keys, D, WIDTH)
    _store(dv + matrix * D, dvalue, j, stride, keys, D, WIDTH)


@triton.jit
def _backward_tables(q, k, v, u, w, tk, tv, padding, seed, lse, dout, delta, dtk, dtv,
                     heads, queries, keys, rows, zero, scale, dropout, batch,
                     D: constexpr, WIDTH: constexpr, BLOCK: constexpr, PRECISION: constexpr,
                     CAUSAL: constexpr, PADDED: constexpr, DROPOUT: constexpr,
                     DISTANCES: constexpr, VALUES: constexpr):  # fmt: skip
    """Gradients of BLOCK rows of the tables, over every n-th sentence, for one head.

    Tiles here have a column per row of the table: those of one query are its keys in turn, from
    one that is further right for each query (a gather from the tile of all keys, as above).
    """
    head, part, parts = tl.program_id(1), tl.program_id(2), tl.num_programs(2)
    stride, offset, factor = batch * heads * D, keys - queries, scale * 1.4426950408889634
    # clipped rows are not this kernel's
    top = tl.program_id(0) * BLOCK
    bottom = rows
    tk_stride = D
    if DISTANCES:
        tk += head * D
        tk_stride = heads * D
    else:
        top += 1
        bottom = rows - 1
    row = top + tl.arange(0, BLOCK)
    table = _load(tk, row, tk_stride, bottom, D, WIDTH)
    dtable = tl.zeros((BLOCK, WIDTH), tl.float32)
    if VALUES:
        value_table = _load(tv, row, D, bottom, D, WIDTH)
        dvalue_table = tl.zeros((BLOCK, WIDTH), tl.float32)
    # key of query 0 and the first row
    diagonal = offset - zero + top
    begin = tl.maximum(1 - 2 * BLOCK - diagonal, 0) // BLOCK * BLOCK
    end = tl.minimum(queries, keys - diagonal)
    shift = tl.arange(0, BLOCK)[:, None] + tl.arange(0, BLOCK)[None, :]
    for sentence in range(part, batch, parts):
        matrix = sentence * heads + head
        for start in range(begin, end, BLOCK):
            i = start + tl.arange(0, BLOCK)
            content, position = _queries(q + matrix * D, u, w, i, head, stride, queries,
                                         D, WIDTH, DISTANCES)  # fmt: skip
            slope = _load(dout + matrix * D, i, stride, queries, D, WIDTH)
            mean = tl.load(delta + matrix * queries + i, mask=i < queries, other=0.0)
            norm = tl.load(lse + matrix * queries + i, mask=i < queries, other=float("inf"))
            near = start + diagonal + tl.arange(0, 2 * BLOCK)
            key = _load(k + matrix * D, near, stride, keys, D, WIDTH)
            value = _load(v + matrix * D, near, stride, keys, D, WIDTH)
            scores = tl.gather(tl.dot(content, tl.trans(key), input_precision=PRECISION), shift, 1)
            scores += tl.dot(position, tl.trans(table), input_precision=PRECISION)
            slopes = tl.gather(tl.dot(slope, tl.trans(value), input_precision=PRECISION), shift, 1)
            if VALUES:
                slopes += tl.dot(slope, tl.trans(value_table), input_precision=PRECISION)
            j = tl.where(row[None, :] < bottom, start + diagonal + shift, -1)
            visible = _visible(i[:, None], j, padding + sentence * keys, keys, offset,
                               CAUSAL, PADDED)  # fmt: skip
            weights, dscores = _score_gradient(scores, slopes, visible, i[:, None], j, norm, mean,
                                               seed, matrix, factor, dropout, DROPOUT)  # fmt: skip
            dtable = tl.dot(tl.trans(dscores.to(key.dtype)), position, dtable,
                            input_precision=PRECISION)  # fmt: skip
            if VALUES:
                dvalue_table = tl.dot(tl.trans(weights.to(key.dtype)), slope, dvalue_table,
                                      input_precision=PRECISION)  # fmt: skip
    place = (part * heads + head) * rows * D
    _store(dtk + place, dtable * scale, row, D, bottom, D, WIDTH)
    if VALUES:
        _store(dtv + place, dvalue_table, row, D, bottom, D, WIDTH)


def attend(inputs: Inputs) -> Tensor:
    """Return the outputs ``(B, H, Q, d)``, as :func:`fairseq_posenc.attention.plain.attend` does.

    For inputs that :func:`supports` accepts. A query that may look at nothing gets zeros.
    """
    terms = inputs.terms
    seed = None
    if inputs.dropout_p:
        # on the device, so that nobody waits for it
        seed = torch.randint(2**62, (1,), device=inputs.queries.device)
    padding = inputs.padding_mask
    padding = None if padding is None else padding.contiguous().view(torch.uint8)
    settings = (terms.scale, inputs.causal, inputs.dropout_p)
    keys = terms.relative_keys if terms.distance_keys is None else terms.distance_keys
    return _FusedRelative.apply(
        settings, padding, seed, inputs.queries, inputs.keys, inputs.values,
        keys, terms.relative_values, terms.content_query, terms.position_query,
    )  # fmt: skip


class _FusedRelative(torch.autograd.Function):
    """Attention; tensors are laid out as ``(T, B, H, d)``, as projections are."""

    @staticmethod
    def forward(ctx, settings, padding, seed, q, k, v, tk, tv, u, w):
        ctx.settings, ctx.kinds = settings, [x if x is None else (x.shape, x.dtype) for x in (tk, tv, u, w)]
        distances = u is not None
        q, k, v = (x.permute(2, 0, 1, 3).contiguous() for x in (q, k, v))
        if distances:
            tables = [tk.transpose(0, 1).contiguous(), None]
        else:
            tables = [None if x is None else x.to(q.dtype).flip(0) for x in (tk, tv)]
        out = torch.empty_like(q)
        lse = q.new_empty((q.size(1) * q.size(2), q.size(0)), dtype=torch.float32)
        work = [q, k, v, u, w, *tables, padding, seed]
        _launch(_forward, settings, work, [out, lse], distances)
        ctx.save_for_backward(*work, out, lse)
        return out.permute(1, 2, 0, 3)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        *work, out, lse = ctx.saved_tensors
        q, k, v, u, w, tk, tv, padding, seed = work
        distances = u is not None
        slope = gradient.permute(2, 0, 1, 3).contiguous()
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        T, B, H, D = q.shape
        delta = torch.empty_like(lse)
        block = _block(q)
        sums = q.new_empty((B, H, triton.cdiv(T, block), 4, D), dtype=torch.float32)
        _launch(_backward_queries, ctx.settings, work, [out, lse, slope, delta, dq, sums], distances)
        _launch(_backward_keys, ctx.settings, work, [lse, slope, delta, dk, dv], distances)
        rows = tk.size(0)
        parts = min(B, triton.cdiv(512, triton.cdiv(rows, block) * H))
        dtk = sums.new_zeros((parts, H, rows, D))
        dtv = None if tv is None else torch.zeros_like(dtk)
        _launch(_backward_tables, ctx.settings, work, [lse, slope, delta, dtk, dtv], distances)
        if distances:
            sums = sums.sum(dim=(0, 2))
            found = [dtk.sum(0), None, sums[:, 0], sums[:, 1]]
        else:
            found = [x if x is None else x.sum(dim=(0, 1)) for x in (dtk, dtv)]
            sums = sums.sum(dim=(0, 1, 2))
            for n, x in enumerate(found):
                if x is not None:
                    x[0] += sums[2 * n]
                    x[-1] += sums[2 * n + 1]
                    found[n] = x.flip(0)
            found += [None, None]
        found = [None if x is None else x.to(kind[1]) for x, kind in zip(found, ctx.kinds)]
        return (None, None, None, *(x.permute(1, 2, 0, 3) for x in (dq, dk, dv)), *found)


def _block(q):
    return 32 if q.size(-1) > 64 or q.dtype == torch.float32 else 64


def _launch(kernel, settings, work, results, distances):
    q, k, v, u, w, tk, tv, padding, seed = work
    scale, causal, dropout = settings
    T, B, H, D = q.shape
    rows = tk.size(0)
    zero = k.size(0) - 1 if distances else rows // 2
    block = _block(q)
    constants = dict(
        D=D, WIDTH=max(16, triton.next_power_of_2(D)), BLOCK=block,
        PRECISION="tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee",
        CAUSAL=causal, PADDED=padding is not None, DROPOUT=dropout > 0,
        DISTANCES=distances, VALUES=tv is not None)
    sizes = [H, T, k.size(0), rows, zero, scale, dropout]
    if kernel is _backward_tables:
        grid = (triton.cdiv(rows, block), H, results[3].size(0))
        sizes.append(B)
    else:
        grid = (triton.cdiv(k.size(0) if kernel is _backward_keys else T, block), B * H)
    work = [q if x is None else x for x in work]
    results = [q if x is None else x for x in results]
    kernel[grid](*work, *results, *sizes, **constants)
