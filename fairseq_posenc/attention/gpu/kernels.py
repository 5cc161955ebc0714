"""Triton kernels of attention with relative keys and values, or with distances.

Scores exist one tile of 32 × 32 at a time (FlashAttention-2, Dao 2023): nothing with both lengths
is in memory, forward or backward, and one float32 per query is kept besides inputs and outputs.
What dropout drops follows from a seed and a weight's place (Philox): all kernels draw the same.

A table has a row per distance, query minus key, by falling distance. The distances of a tile belong
to 64 neighbouring rows, so ``queries · rowsᵀ`` holds all products that the tile needs, and a gather
within the tile (the relative shift) puts them where they belong; its adjoint turns weights into
factors of the rows. Shaw's distances are clipped: tiles beyond need a single row.

A table's gradient sums over all pairs of one distance. A kernel owns 32 rows and walks along their
diagonals, in float32 and without atomics, so the sums are the same in every run. What clipping adds
to the ends of a table comes from the kernel of the queries' gradients.

The kernels' arguments; a matrix of scores is one head of one sentence (sentence · heads + head):

==========================  =======================================================================
q, k, v                     queries, keys, values: (T, batch, heads, D), contiguous
u, w                        what queries of contents and of distances get (Transformer-XL's u and
                            v): (heads, D), or None
tk, tv                      tables of keys and of values: (rows, heads, D) with the strides
                            row_stride and head_stride; tv may be None
padding                     (batch, n_keys) bytes, 1 at padding, or None
seed                        (1,) int64, what dropout follows from, or None
out                         outputs, as q
lse                         log2(Σ 2^score) of each query: (batch · heads, n_queries) float32
slopes                      gradient of the outputs, as q
delta                       Σ slopes · out of each query, as lse; _backward_queries writes it
dq, dk, dv                  gradients, as q, k, v
sums                        sums over 32 queries: (batch, heads, blocks, 4, D) float32
dtk, dtv                    gradients of the tables, in parts: (parts, heads, rows, D) float32
batch, heads                their numbers
n_queries, n_keys, rows     lengths: of q, of k and v, of the tables
zero                        the row of distance 0
scale, dropout              of the scores; probability that a weight is dropped
D, WIDTH, CAUSAL            width of a head, the same as a power of 2, whether the future is hidden
==========================  =======================================================================

Within a tile: i, j are the numbers of its queries and keys; ``first`` is the row of its last query
and first key, where the distance is largest; ``offset`` is how many keys come before query 0.
"""

import triton
import triton.language as tl
from triton.language import constexpr

# Larger tiles need more registers than there are: a gather from n columns has n / 32 parts.
BLOCK = constexpr(32)
LOG2_E = constexpr(1.4426950408889634)


# fmt: off
@triton.jit
def _load(pointer, rows, stride, length, D: constexpr, WIDTH: constexpr):
    """Rows of a matrix ``(length, D)`` as ``(…, WIDTH)``, 0 where there is nothing."""
    columns = tl.arange(0, WIDTH)[None, :]
    inside = ((rows >= 0) & (rows < length))[:, None] & (columns < D)
    return tl.load(pointer + rows[:, None] * stride + columns, mask=inside, other=0.0)


@triton.jit
def _store(pointer, value, rows, stride, length, D: constexpr, WIDTH: constexpr):
    """The inverse of :func:`_load`."""
    columns = tl.arange(0, WIDTH)[None, :]
    pointer += rows[:, None] * stride + columns
    inside = (rows < length)[:, None] & (columns < D)
    tl.store(pointer, value.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _table_rows(table, first, stride, rows, N: constexpr, D: constexpr, WIDTH: constexpr):
    """N rows of a table from the first one on; those beyond the ends are the ends."""
    index = tl.minimum(tl.maximum(first + tl.arange(0, N), 0), rows - 1)
    return _load(table, index, stride, rows, D, WIDTH)


@triton.jit
def _table_products(x, table, first, stride, rows, D: constexpr, WIDTH: constexpr):
    """Products of each query's x with the row of its distance to each key.

    ``first`` is the row of the tile's last query and first key, where the distance is largest.
    """
    if first + 2 * BLOCK <= 1 or first >= rows - 1:
        row = _table_rows(table, first, stride, rows, 1, D, WIDTH).to(tl.float32)
        products = tl.sum(x.to(tl.float32) * row, 1)[:, None] + tl.zeros((1, BLOCK), tl.float32)
    else:
        near = _table_rows(table, first, stride, rows, 2 * BLOCK, D, WIDTH)
        shift = BLOCK - 1 - tl.arange(0, BLOCK)[:, None] + tl.arange(0, BLOCK)[None, :]
        products = tl.gather(tl.dot(x, tl.trans(near)), shift, 1)
    return products


@triton.jit
def _add_table_sums(total, weights, table, first, stride, rows, D: constexpr, WIDTH: constexpr):
    """Add to each query's total the rows of its distances, weighted: the adjoint of the above."""
    if first + 2 * BLOCK <= 1 or first >= rows - 1:
        row = _table_rows(table, first, stride, rows, 1, D, WIDTH).to(tl.float32)
        total += tl.sum(weights, 1)[:, None] * row
    else:
        near = _table_rows(table, first, stride, rows, 2 * BLOCK, D, WIDTH)
        key = tl.arange(0, BLOCK)[:, None] + tl.arange(0, 2 * BLOCK)[None, :] - (BLOCK - 1)
        factors = tl.gather(weights, tl.minimum(tl.maximum(key, 0), BLOCK - 1), 1)
        factors = tl.where((key >= 0) & (key < BLOCK), factors, 0.0)
        total = tl.dot(factors.to(near.dtype), near, total)
    return total


@triton.jit
def _queries(q, u, w, i, head, stride, n_queries, D: constexpr, WIDTH: constexpr):
    """Queries of contents and of distances: q + u and q + w, or q alone."""
    content = _load(q, i, stride, n_queries, D, WIDTH)
    position = content
    if u is not None:
        row, x = head + tl.arange(0, 1), content.to(tl.float32)
        content = (x + _load(u, row, D, head + 1, D, WIDTH).to(tl.float32)).to(content.dtype)
        position = (x + _load(w, row, D, head + 1, D, WIDTH).to(tl.float32)).to(content.dtype)
    return content, position


@triton.jit
def _masked(scores, i, j, padding, n_keys, offset, CAUSAL: constexpr):
    """Scores of queries i and keys j, minus infinity where i must not look at j."""
    visible = (j >= 0) & (j < n_keys)
    if padding is not None:
        visible = visible & (tl.load(padding + j, mask=visible, other=1) == 0)
    if CAUSAL:
        visible = visible & (j <= i + offset)
    return tl.where(visible, scores, float("-inf"))


@triton.jit
def _dropped(x, i, j, matrix, seed, dropout):
    """Dropout of weights, or of their gradient."""
    if seed is not None:
        i, j = tl.broadcast(i, j)
        random, _, _, _ = tl.philox(tl.load(seed), j, i, i * 0 + matrix, i * 0)
        x = tl.where(tl.uint_to_uniform_float(random) >= dropout, x / (1 - dropout), 0.0)
    return x


@triton.jit
def _forward(q, k, v, u, w, tk, tv, padding, seed, out, lse,
             batch, heads, n_queries, n_keys, rows, zero, row_stride, head_stride, scale, dropout,
             D: constexpr, WIDTH: constexpr, CAUSAL: constexpr):
    """Outputs of 32 queries of one matrix of scores, and their log2(Σ 2^score)."""
    start, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), batch * heads * D
    head, offset = matrix % heads, n_keys - n_queries
    tk += head * head_stride
    if padding is not None:
        padding += matrix // heads * n_keys
    i = start + tl.arange(0, BLOCK)
    content, position = _queries(q + matrix * D, u, w, i, head, stride, n_queries, D, WIDTH)
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, WIDTH), tl.float32)
    for left in range(0, tl.minimum(n_keys, start + BLOCK + offset) if CAUSAL else n_keys, BLOCK):
        j = left + tl.arange(0, BLOCK)
        key = _load(k + matrix * D, j, stride, n_keys, D, WIDTH)
        value = _load(v + matrix * D, j, stride, n_keys, D, WIDTH)
        first = zero - offset - start + left - (BLOCK - 1)
        scores = tl.dot(content, tl.trans(key))
        scores += _table_products(position, tk, first, row_stride, rows, D, WIDTH)
        scores = _masked(scores * (scale * LOG2_E), i[:, None], j[None, :],
                         padding, n_keys, offset, CAUSAL)
        higher = tl.maximum(highest, tl.max(scores, 1))
        # a query that has seen no key yet has weights of 0, not NaN
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        rescale = tl.exp2(highest - base)
        total = total * rescale + tl.sum(weights, 1)
        weights = _dropped(weights, i[:, None], j[None, :], matrix, seed, dropout)
        result = tl.dot(weights.to(value.dtype), value, result * rescale[:, None])
        if tv is not None:
            result = _add_table_sums(result, weights, tv, first, row_stride, rows, D, WIDTH)
        highest = higher
    total = tl.where(total == 0, 1.0, total)
    highest = tl.where(highest == float("-inf"), 0.0, highest)
    _store(out + matrix * D, result / total[:, None], i, stride, n_queries, D, WIDTH)
    tl.store(lse + matrix * n_queries + i, highest + tl.log2(total), mask=i < n_queries)


@triton.jit
def _tile_gradients(content, position, slope, key, value, tk, tv, norm, mean, padding, seed,
                    start, left, matrix, n_keys, offset, rows, zero, row_stride, scale, dropout,
                    D: constexpr, WIDTH: constexpr, CAUSAL: constexpr):
    """Weights after dropout, and the gradient of the scores, of one tile."""
    i, j = (start + tl.arange(0, BLOCK))[:, None], (left + tl.arange(0, BLOCK))[None, :]
    first = zero - offset - start + left - (BLOCK - 1)
    scores = tl.dot(content, tl.trans(key))
    scores += _table_products(position, tk, first, row_stride, rows, D, WIDTH)
    scores = _masked(scores * (scale * LOG2_E), i, j, padding, n_keys, offset, CAUSAL)
    slopes = tl.dot(slope, tl.trans(value))
    if tv is not None:
        slopes += _table_products(slope, tv, first, row_stride, rows, D, WIDTH)
    weights = tl.exp2(scores - norm[:, None])
    slopes = _dropped(slopes, i, j, matrix, seed, dropout)
    dscores = weights * (slopes - mean[:, None])
    return _dropped(weights, i, j, matrix, seed, dropout), dscores


@triton.jit
def _backward_queries(q, k, v, u, w, tk, tv, padding, seed, lse, slopes, delta, out, dq, sums,
                      batch, heads, n_queries, n_keys, rows, zero, row_stride, head_stride, scale,
                      dropout, D: constexpr, WIDTH: constexpr, CAUSAL: constexpr):
    """Gradients of 32 queries, their Σ gradient · output (delta) and sums over them ``(4, D)``.

    The sums are the gradients of u and w, or of the first and last row of tk and of tv.
    """
    start, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), batch * heads * D
    head, offset = matrix % heads, n_keys - n_queries
    tk += head * head_stride
    if padding is not None:
        padding += matrix // heads * n_keys
    i = start + tl.arange(0, BLOCK)
    content, position = _queries(q + matrix * D, u, w, i, head, stride, n_queries, D, WIDTH)
    slope = _load(slopes + matrix * D, i, stride, n_queries, D, WIDTH)
    output = _load(out + matrix * D, i, stride, n_queries, D, WIDTH)
    mean = tl.sum(slope.to(tl.float32) * output.to(tl.float32), 1)
    tl.store(delta + matrix * n_queries + i, mean, mask=i < n_queries)
    norm = tl.load(lse + matrix * n_queries + i, mask=i < n_queries, other=float("inf"))
    dcontent = tl.zeros((BLOCK, WIDTH), tl.float32)
    dposition = tl.zeros((BLOCK, WIDTH), tl.float32)
    far_past, far_future = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    past_weights, future_weights = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for left in range(0, tl.minimum(n_keys, start + BLOCK + offset) if CAUSAL else n_keys, BLOCK):
        j = left + tl.arange(0, BLOCK)
        key = _load(k + matrix * D, j, stride, n_keys, D, WIDTH)
        value = _load(v + matrix * D, j, stride, n_keys, D, WIDTH)
        weights, dscores = _tile_gradients(
            content, position, slope, key, value, tk, tv, norm, mean, padding, seed, start, left,
            matrix, n_keys, offset, rows, zero, row_stride, scale, dropout, D, WIDTH, CAUSAL)
        first = zero - offset - start + left - (BLOCK - 1)
        dcontent = tl.dot(dscores.to(key.dtype), key, dcontent)
        if u is not None:
            dposition = _add_table_sums(dposition, dscores, tk, first, row_stride, rows, D, WIDTH)
        else:
            dcontent = _add_table_sums(dcontent, dscores, tk, first, row_stride, rows, D, WIDTH)
            row = zero - offset - i[:, None] + j[None, :]
            far_past += tl.sum(tl.where(row <= 0, dscores, 0.0), 1)
            far_future += tl.sum(tl.where(row >= rows - 1, dscores, 0.0), 1)
            if tv is not None:
                past_weights += tl.sum(tl.where(row <= 0, weights, 0.0), 1)
                future_weights += tl.sum(tl.where(row >= rows - 1, weights, 0.0), 1)
    _store(dq + matrix * D, (dcontent + dposition) * scale, i, stride, n_queries, D, WIDTH)
    columns = tl.arange(0, WIDTH)
    sums += (matrix * tl.num_programs(0) + tl.program_id(0)) * 4 * D + columns
    if u is not None:
        tl.store(sums, tl.sum(dcontent, 0) * scale, mask=columns < D)
        tl.store(sums + D, tl.sum(dposition, 0) * scale, mask=columns < D)
    else:
        x, y = content.to(tl.float32) * scale, slope.to(tl.float32)
        tl.store(sums, tl.sum(far_past[:, None] * x, 0), mask=columns < D)
        tl.store(sums + D, tl.sum(far_future[:, None] * x, 0), mask=columns < D)
        tl.store(sums + 2 * D, tl.sum(past_weights[:, None] * y, 0), mask=columns < D)
        tl.store(sums + 3 * D, tl.sum(future_weights[:, None] * y, 0), mask=columns < D)


@triton.jit
def _backward_keys(q, k, v, u, w, tk, tv, padding, seed, lse, slopes, delta, dk, dv,
                   batch, heads, n_queries, n_keys, rows, zero, row_stride, head_stride, scale,
                   dropout, D: constexpr, WIDTH: constexpr, CAUSAL: constexpr):
    """Gradients of 32 keys and their values."""
    left, matrix, stride = tl.program_id(0) * BLOCK, tl.program_id(1), batch * heads * D
    head, offset = matrix % heads, n_keys - n_queries
    tk += head * head_stride
    if padding is not None:
        padding += matrix // heads * n_keys
    j = left + tl.arange(0, BLOCK)
    key = _load(k + matrix * D, j, stride, n_keys, D, WIDTH)
    value = _load(v + matrix * D, j, stride, n_keys, D, WIDTH)
    dkey = tl.zeros((BLOCK, WIDTH), tl.float32)
    dvalue = tl.zeros((BLOCK, WIDTH), tl.float32)
    begin = tl.maximum(left - offset, 0) // BLOCK * BLOCK if CAUSAL else 0
    for start in range(begin, n_queries, BLOCK):
        i = start + tl.arange(0, BLOCK)
        content, position = _queries(q + matrix * D, u, w, i, head, stride, n_queries, D, WIDTH)
        slope = _load(slopes + matrix * D, i, stride, n_queries, D, WIDTH)
        mean = tl.load(delta + matrix * n_queries + i, mask=i < n_queries, other=0.0)
        norm = tl.load(lse + matrix * n_queries + i, mask=i < n_queries, other=float("inf"))
        weights, dscores = _tile_gradients(
            content, position, slope, key, value, tk, tv, norm, mean, padding, seed, start, left,
            matrix, n_keys, offset, rows, zero, row_stride, scale, dropout, D, WIDTH, CAUSAL)
        dkey = tl.dot(tl.trans(dscores.to(key.dtype)), content, dkey)
        dvalue = tl.dot(tl.trans(weights.to(key.dtype)), slope, dvalue)
    _store(dk + matrix * D, dkey * scale, j, stride, n_keys, D, WIDTH)
    _store(dv + matrix * D, dvalue, j, stride, n_keys, D, WIDTH)


@triton.jit
def _backward_tables(q, k, v, u, w, tk, tv, padding, seed, lse, slopes, delta, dtk, dtv,
                     batch, heads, n_queries, n_keys, rows, zero, row_stride, head_stride, scale,
                     dropout, D: constexpr, WIDTH: constexpr, CAUSAL: constexpr):
    """Gradients of 32 rows of the tables, over every n-th sentence, for one head.

    A tile has a column per row of the table: the keys of its queries, each one's further right by
    one than those of the query before. Rows that clipping adds to are left out.
    """
    head, part = tl.program_id(1), tl.program_id(2)
    stride, offset = batch * heads * D, n_keys - n_queries
    clipped = 1 if u is None else 0
    top, bottom = tl.program_id(0) * BLOCK + clipped, rows - clipped
    row = top + tl.arange(0, BLOCK)
    table = _load(tk + head * head_stride, row, row_stride, bottom, D, WIDTH)
    dtable = tl.zeros((BLOCK, WIDTH), tl.float32)
    dvalues = tl.zeros((BLOCK, WIDTH), tl.float32)
    # the key of query 0 and the first row
    diagonal = offset - zero + top
    shift = tl.arange(0, BLOCK)[:, None] + tl.arange(0, BLOCK)[None, :]
    begin = tl.maximum(1 - 2 * BLOCK - diagonal, 0) // BLOCK * BLOCK
    for sentence in range(part, batch, tl.num_programs(2)):
        matrix = sentence * heads + head
        for start in range(begin, tl.minimum(n_queries, n_keys - diagonal), BLOCK):
            i = start + tl.arange(0, BLOCK)
            content, position = _queries(q + matrix * D, u, w, i, head, stride, n_queries, D, WIDTH)
            slope = _load(slopes + matrix * D, i, stride, n_queries, D, WIDTH)
            mean = tl.load(delta + matrix * n_queries + i, mask=i < n_queries, other=0.0)
            norm = tl.load(lse + matrix * n_queries + i, mask=i < n_queries, other=float("inf"))
            near = start + diagonal + tl.arange(0, 2 * BLOCK)
            key = _load(k + matrix * D, near, stride, n_keys, D, WIDTH)
            scores = tl.gather(tl.dot(content, tl.trans(key)), shift, 1)
            scores += tl.dot(position, tl.trans(table))
            value = _load(v + matrix * D, near, stride, n_keys, D, WIDTH)
            dweights = tl.gather(tl.dot(slope, tl.trans(value)), shift, 1)
            if tv is not None:
                values = _load(tv, row, row_stride, bottom, D, WIDTH)
                dweights += tl.dot(slope, tl.trans(values))
            j = tl.where(row[None, :] < bottom, start + diagonal + shift, -1)
            mask = padding if padding is None else padding + sentence * n_keys
            scores = _masked(scores * (scale * LOG2_E), i[:, None], j, mask, n_keys, offset, CAUSAL)
            weights = tl.exp2(scores - norm[:, None])
            dweights = _dropped(dweights, i[:, None], j, matrix, seed, dropout)
            dscores = weights * (dweights - mean[:, None])
            dtable = tl.dot(tl.trans(dscores.to(key.dtype)), position, dtable)
            if tv is not None:
                weights = _dropped(weights, i[:, None], j, matrix, seed, dropout)
                dvalues = tl.dot(tl.trans(weights.to(key.dtype)), slope, dvalues)
    place = (part * heads + head) * rows * D
    _store(dtk + place, dtable * scale, row, D, bottom, D, WIDTH)
    if tv is not None:
        _store(dtv + place, dvalues, row, D, bottom, D, WIDTH)
# fmt: on
