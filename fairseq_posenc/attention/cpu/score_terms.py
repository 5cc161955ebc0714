"""Terms of the scores, added to one chunk after the other, and their gradients.

A term is made anew for each pass over the chunks. ``add_to_scores`` adds it to the scores of a
chunk ``(matrices, rows, columns)``; ``backward`` takes the gradient of these scores, adds to the
gradient of the queries and keeps its own, which ``gradients`` returns at the end, by name.
"""

from typing import Dict, Iterator, Optional, Tuple

import torch
from torch import Tensor

from fairseq_posenc.attention.cpu.chunks import Chunk, ScoreLayout, Scratch, size, split_evenly
from fairseq_posenc.attention.plain import causal_bias, padding_bias
from fairseq_posenc.encodings.by_distance import diagonal_sums

# Products of fewer rows are slower per row; those of more compute more that no score needs.
_BLOCK_ROWS = 64


class Additive:
    """The bias ``(heads or 1, Q, K)`` and padding, which scores start from, and the future."""

    def __init__(self, layout: ScoreLayout, bias: Optional[Tensor], padding_mask: Optional[Tensor]):
        self.layout, self.bias, self.padding = layout, bias, None
        if padding_mask is not None:
            self.padding = padding_bias(padding_mask, torch.float32)
        self.future = torch.empty(1, 0, 0)
        self.total: Optional[Tensor] = None

    def fill(self, scores: Tensor, chunk: Chunk) -> bool:
        """Write bias and padding into the scores, and return whether there are any."""
        # scores: (sequences, heads, rows, columns); parts: added, broadcast to these
        scores, parts = chunk.by_head(scores), []
        if self.bias is not None:
            parts.append(self.bias[self._part(chunk)].expand(scores.shape[1:]))
        if self.padding is not None:
            parts.append(self.padding[chunk.batches, ..., : chunk.columns])
        if len(parts) == 2:
            torch.add(*parts, out=scores)
        elif parts:
            scores.copy_(parts[0])
        return bool(parts)

    def hide_future(self, scores: Tensor, chunk: Chunk) -> None:
        """Add to the scores of later keys, which are among the last columns of a causal chunk."""
        if not self.layout.causal:
            return
        rows = scores.size(1)
        if self.future.size(1) < rows:
            self.future = causal_bias(rows, scores.dtype, scores.device)
        # keys before the chunk's first row are past for all its rows
        scores[..., chunk.rows.start :].add_(self.future[:, :rows, :rows])

    def backward(self, gradient: Tensor, chunk: Chunk) -> None:
        """Sum the bias's gradient over the batch, and over the heads if they share it."""
        by_head = chunk.by_head(gradient)
        shared = self.bias.size(0) == 1
        if shared:
            by_head = by_head.flatten(0, 1).unsqueeze(1)
        summed = by_head[0] if by_head.size(0) == 1 else by_head.sum(dim=0)
        if self.total is None:
            # no chunk of causal attention writes to the columns of the future
            empty = torch.zeros_like if self.layout.causal else torch.empty_like
            self.total = empty(self.bias, memory_format=torch.contiguous_format)
        total = self.total[self._part(chunk)]
        # the first chunk with this part of the bias writes, the others add
        if chunk.batches.start == 0 and not (shared and chunk.heads.start):
            total.copy_(summed)
        else:
            total.add_(summed)

    def _part(self, chunk: Chunk) -> Tuple[slice, slice, slice]:
        heads = chunk.heads if self.bias.size(0) > 1 else slice(0, 1)
        return heads, chunk.rows, slice(0, chunk.columns)

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradient of the bias."""
        return {} if self.total is None else {"bias": self.total}


class DistanceBias:
    """A scalar per distance ``(heads or 1, Q + K - 1)``, laid out for one chunk at a time."""

    def __init__(self, layout: ScoreLayout, scalars: Tensor):
        self.layout, self.scalars = layout, scalars.contiguous()
        self.total = torch.zeros_like(self.scalars)

    def _heads(self, chunk: Chunk) -> slice:
        return chunk.heads if self.scalars.size(0) > 1 else slice(0, 1)

    def add_to_scores(self, scores: Tensor, queries: Tensor, chunk: Chunk) -> None:
        """Add to the scores."""
        scalars, (_, rows, columns) = self.scalars[self._heads(chunk)], chunk.shape
        # from the chunk's last row to its first, the window of scalars moves right by one
        upwards = scalars.as_strided(
            (scalars.size(0), rows, columns),
            (scalars.stride(0), 1, 1),
            scalars.storage_offset() + self.layout.queries - chunk.rows.stop,
        )
        chunk.by_head(scores).add_(upwards.flip(1))

    def backward(
        self, gradient: Tensor, queries: Tensor, query_gradient: Tensor, chunk: Chunk
    ) -> None:
        """Add the sums along the diagonals of the chunk."""
        by_head = chunk.by_head(gradient)
        heads, (_, rows, columns) = self._heads(chunk), chunk.shape
        every = (0,) if self.scalars.size(0) > 1 else (0, 1)
        summed = by_head.sum(dim=every).view(-1, rows, columns)
        window = self.total[heads].narrow(
            1, self.layout.queries - chunk.rows.stop, rows + columns - 1
        )
        window.add_(diagonal_sums(summed))

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradient of the scalars."""
        return {"bias_by_distance": self.total}


class IndexProducts:
    """Products of a vector per query with one per key, ``(heads or 1, T, rank)`` each.

    They are the same for all sequences, and computed for each: their matrix would have T² entries.
    """

    def __init__(self, queries: Tensor, keys: Tensor):
        self.queries, self.keys = queries.contiguous(), keys.contiguous()
        self.query_total = torch.zeros_like(self.queries)
        self.key_total = torch.zeros_like(self.keys)

    def _parts(self, chunk: Chunk) -> Tuple[Tuple[slice, slice], Tuple[slice, slice]]:
        """Return which queries and which keys are the chunk's."""
        heads = chunk.heads if self.queries.size(0) > 1 else slice(0, 1)
        return (heads, chunk.rows), (heads, slice(0, chunk.columns))

    def add_to_scores(self, scores: Tensor, queries: Tensor, chunk: Chunk) -> None:
        """Add to the scores."""
        rows, columns = self._parts(chunk)
        every = (size(chunk.batches), size(chunk.heads), -1, -1)
        # one matrix per sequence and head: (matrices, rows, rank), (matrices, columns, rank)
        left, right = (
            x.expand(every).flatten(0, 1) for x in (self.queries[rows], self.keys[columns])
        )
        scores.baddbmm_(left, right.transpose(1, 2))

    def backward(
        self, gradient: Tensor, queries: Tensor, query_gradient: Tensor, chunk: Chunk
    ) -> None:
        """Keep the sums over sequences, and over heads that share the vectors."""
        rows, columns = self._parts(chunk)
        every = (0,) if self.queries.size(0) > 1 else (0, 1)
        summed = chunk.by_head(gradient).sum(dim=every).view(-1, *chunk.shape[1:])
        self.query_total[rows].baddbmm_(summed, self.keys[columns])
        self.key_total[columns].baddbmm_(summed.transpose(1, 2), self.queries[rows])

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradients of the vectors."""
        return {"index_queries": self.query_total, "index_keys": self.key_total}


class Segments:
    """One scalar per pair of segments: a product of one-hot rows with a small matrix between."""

    def __init__(self, layout: ScoreLayout, segments: Tensor, scalars: Tensor):
        self.segments, self.scalars = segments, scalars
        number = segments.size(-1)
        every = (layout.batch, layout.heads, number, layout.keys)
        matrices = layout.batch * layout.heads
        # keys, queries: (batch · heads, segments, T); total: (batch · heads, T, segments)
        # One row per segment: products with narrow matrices are slow when their rows are short.
        keys = segments.transpose(1, 2).unsqueeze(1).expand(every)
        self.keys = keys.reshape(matrices, number, layout.keys)
        by_query = torch.einsum("bqs,hst->bhtq", segments, scalars).expand(every)
        self.queries = by_query.reshape(matrices, number, layout.keys)
        self.total = torch.empty_like(self.keys).transpose(1, 2)

    def add_to_scores(self, scores: Tensor, queries: Tensor, chunk: Chunk) -> None:
        """Add to the scores."""
        # (matrices, rows, segments) · (matrices, segments, columns)
        by_query = self.queries[chunk.matrices, :, chunk.rows].transpose(1, 2)
        scores.baddbmm_(by_query, self.keys[chunk.matrices, :, : chunk.columns])

    def backward(
        self, gradient: Tensor, queries: Tensor, query_gradient: Tensor, chunk: Chunk
    ) -> None:
        """Keep the sums over the keys of each segment."""
        keys = self.keys[chunk.matrices, :, : chunk.columns].transpose(1, 2)
        self.total[chunk.matrices, chunk.rows] = torch.bmm(gradient, keys)

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradient of the scalars."""
        # by_sequence: (batch, heads, T, segments)
        by_sequence = self.total.unflatten(0, (self.segments.size(0), -1))
        total = torch.einsum("bqs,bhqt->hst", self.segments, by_sequence)
        return {"segment_scalars": total.sum_to_size(self.scalars.shape)}


class Distances:
    """Products of queries with projected distances, which differ from head to head.

    Rows of the distances fall, so that the window that a block of rows needs is one slice, and the
    product's diagonals, which are columns of the scores, are a view of it. A chunk has one head, so
    that one product serves the block's rows of all its sequences.
    """

    def __init__(self, layout: ScoreLayout, keys: Tensor, shift: Optional[Tensor], scale: float):
        self.layout, self.scale = layout, scale
        self.keys = keys.contiguous()
        self.shift = self.keys.new_zeros(self.keys[:, 0].shape) if shift is None else shift
        self.total, self.shift_total = torch.zeros_like(self.keys), torch.zeros_like(self.shift)
        self.part = Scratch(keys, 0)
        self.products: Dict[Tuple[int, int, int], Tuple[Tensor, Tensor]] = {}

    def _blocks(self, chunk: Chunk) -> Iterator[Tuple[slice, slice, Tensor, Tensor]]:
        """Cut a chunk: the fewer rows, the fewer distances that only some of them need.

        Yields:
            The block's rows, counted from the chunk's first; its window of distances; memory for
            their product ``(rows · matrices, window)``, and its view as scores, whose columns may
            be fewer than the chunk's. Corners of the memory that belong to no score stay zero.
        """
        matrices = chunk.shape[0]
        for block in split_evenly(size(chunk.rows), _BLOCK_ROWS):
            rows, stop = size(block), chunk.rows.start + block.stop
            columns = stop if self.layout.causal else chunk.columns
            window = rows + columns - 1
            if self.layout.causal:
                # Of the future, which nobody sees, one: so that rows of the scores do not overlap.
                window = min(window, columns + 1)
            shape = (matrices, rows, columns)
            if shape not in self.products:
                product = self.keys.new_zeros(rows * matrices, window)
                # row (i, m) of the product has the score (m, i, j) in column rows - 1 - i + j
                strides = (window, max(matrices * window - 1, 1), 1)
                self.products[shape] = product, product.as_strided(shape, strides, rows - 1)
            start = self.layout.queries - stop
            yield (block, slice(start, start + window), *self.products[shape])

    def _shifted(self, queries: Tensor, head: int) -> Tensor:
        """Return queries plus the position query, contiguous ``(rows, matrices, d)``."""
        queries = queries.transpose(0, 1)
        return torch.add(queries, self.shift[head], out=queries.new_empty(queries.shape))

    def add_to_scores(self, scores: Tensor, queries: Tensor, chunk: Chunk) -> None:
        """Add to the scores; queries are the chunk's."""
        head = chunk.heads.start
        keys, queries = self.keys[head], self._shifted(queries, head)
        for rows, window, product, diagonals in self._blocks(chunk):
            # (rows · matrices, d) · (d, window)
            torch.mm(queries[rows].flatten(0, 1), keys[window].t(), out=product)
            scores[:, rows, : diagonals.size(2)].add_(diagonals, alpha=self.scale)

    def backward(
        self, gradient: Tensor, queries: Tensor, query_gradient: Tensor, chunk: Chunk
    ) -> None:
        """Keep the terms' gradients and add to that of the queries."""
        head = chunk.heads.start
        keys, total, queries = self.keys[head], self.total[head], self._shifted(queries, head)
        part = self.part.get(queries.shape)
        for rows, window, product, diagonals in self._blocks(chunk):
            # the gradient of the product, through its view as scores
            diagonals.copy_(gradient[:, rows, : diagonals.size(2)])
            if self.layout.causal:
                # The future lies in corners of other rows. It has weights where no key can be seen.
                first = diagonals.size(2) - diagonals.size(1)
                diagonals[..., first + 1 :].tril_(-1)
            torch.mm(product, keys[window], out=part[rows].flatten(0, 1))
            block_queries = queries[rows].flatten(0, 1)
            total[window].addmm_(product.t(), block_queries, alpha=self.scale)
        query_gradient.add_(part.transpose(0, 1), alpha=self.scale)
        self.shift_total[head].add_(part.sum(dim=(0, 1)), alpha=self.scale)

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradients of the projected distances and the position query."""
        return {"distance_keys": self.total, "position_query": self.shift_total}
