"""Terms of the scores for :mod:`fairseq_posenc.modules.fused`: what is added, and its gradient.

A term is made anew for each pass over the chunks. ``enter`` adds it to the scores of a chunk
``(matrices, rows, columns)``; ``leave`` takes the gradient of these scores, adds to the gradient
of the queries and keeps its own, which ``gradients`` returns at the end, by name.
"""

from typing import Dict, Optional, Tuple

import torch
from torch import Tensor

from fairseq_posenc.modules.chunks import Chunk, Layout, Scratch
from fairseq_posenc.modules.masks import causal_bias, padding_bias


class Additive:
    """The bias ``(heads or 1, Q, K)`` and padding, which scores start from, and the future."""

    def __init__(self, layout: Layout, bias: Optional[Tensor], padding_mask: Optional[Tensor]):
        self.layout, self.bias, self.padding = layout, bias, None
        if padding_mask is not None:
            self.padding = padding_bias(padding_mask, torch.float32)
        self.future = torch.empty(1, 0, 0)
        self.total: Optional[Tensor] = None

    def fill(self, scores: Tensor, chunk: Chunk) -> bool:
        """Write bias and padding into the scores, and return whether there are any."""
        scores = chunk.by_head(scores)
        bias = padding = None
        if self.bias is not None:
            bias = self.bias[self._part(chunk)]
        if self.padding is not None:
            padding = self.padding[chunk.batches, ..., : chunk.columns]
        if bias is not None and padding is not None:
            torch.add(bias.expand(scores.shape[1:]), padding, out=scores)
        elif bias is not None or padding is not None:
            scores.copy_(padding if bias is None else bias)
        return bias is not None or padding is not None

    def hide_future(self, scores: Tensor, chunk: Chunk) -> None:
        """Add to the scores of later keys, which are among the last columns of a causal chunk."""
        if not self.layout.causal:
            return
        rows = scores.size(1)
        if self.future.size(1) < rows:
            self.future = causal_bias(rows, scores.dtype, scores.device)
        scores[..., chunk.rows.start :].add_(self.future[:, :rows, :rows])

    def leave(self, gradient: Tensor, chunk: Chunk) -> None:
        """Sum over the batch, and over the heads if they share the bias."""
        by_head = chunk.by_head(gradient)
        shared = self.bias.size(0) == 1
        if shared:
            by_head = by_head.flatten(0, 1).unsqueeze(1)
        summed = by_head[0] if by_head.size(0) == 1 else by_head.sum(dim=0)
        if self.total is None:
            empty = torch.zeros_like if self.layout.causal else torch.empty_like
            self.total = empty(self.bias, memory_format=torch.contiguous_format)
        total = self.total[self._part(chunk)]
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


class Segments:
    """One scalar per pair of segments: a product of one-hot rows with a small matrix between."""

    def __init__(self, layout: Layout, segments: Tensor, scalars: Tensor):
        self.segments, self.scalars = segments, scalars
        number = segments.size(-1)
        every = (layout.batch, layout.heads, number, layout.keys)
        matrices = layout.batch * layout.heads
        # One row per segment: products with narrow matrices are slow when their rows are short.
        keys = segments.transpose(1, 2).unsqueeze(1).expand(every)
        self.keys = keys.reshape(matrices, number, layout.keys)
        by_query = torch.einsum("bqs,hst->bhtq", segments, scalars).expand(every)
        self.queries = by_query.reshape(matrices, number, layout.keys)
        self.total = torch.empty_like(self.keys).transpose(1, 2)

    def enter(self, scores: Tensor, chunk: Chunk) -> None:
        """Add to the scores."""
        queries = self.queries[chunk.flat, :, chunk.rows].transpose(1, 2)
        scores.baddbmm_(queries, self.keys[chunk.flat, :, : chunk.columns])

    def leave(self, gradient: Tensor, chunk: Chunk) -> None:
        """Keep the sums over the keys of each segment."""
        keys = self.keys[chunk.flat, :, : chunk.columns].transpose(1, 2)
        self.total[chunk.flat, chunk.rows] = torch.bmm(gradient, keys)

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradient of the scalars."""
        by_sequence = self.total.unflatten(0, (self.segments.size(0), -1))
        total = torch.einsum("bqs,bhqt->hst", self.segments, by_sequence)
        return {"segment_scalars": total.sum_to_size(self.scalars.shape)}


class Distances:
    """Products of queries with projected distances, which differ from head to head.

    Rows of the distances fall, so that the window that a block of rows needs is one slice, and the
    product's diagonals, which are columns of the scores, are a view of it. A chunk has one head, so
    that one product serves its sequences.
    """

    most_rows = 128

    def __init__(self, layout: Layout, keys: Tensor, shift: Optional[Tensor], scale: float):
        self.layout, self.scale = layout, scale
        self.keys = keys.contiguous()
        self.shift = self.keys.new_zeros(self.keys[:, 0].shape) if shift is None else shift
        self.total, self.shift_total = torch.zeros_like(self.keys), torch.zeros_like(self.shift)
        self.scratch = Scratch(keys, 0)
        self.upright = keys.new_zeros(0)

    def _window(self, chunk: Chunk) -> Tuple[int, slice]:
        """Return the chunk's head and which distances it needs.

        Of the future, which nobody sees, one: so that rows of the scores do not overlap.
        """
        start = self.layout.queries - chunk.rows.stop
        width = chunk.shape[1] + chunk.columns - 1
        if self.layout.causal:
            width = min(width, chunk.columns + 1)
        return chunk.heads.start, slice(start, start + width)

    def _diagonals(self, by_distance: Tensor, columns: int) -> Tensor:
        """View a contiguous product ``(matrices, rows, window)`` as scores."""
        matrices, rows, window = by_distance.shape
        strides = (rows * window, max(window - 1, 1), 1)
        return by_distance.as_strided((matrices, rows, columns), strides, rows - 1)

    def _shifted(self, queries: Tensor, chunk: Chunk) -> Tensor:
        """Return the chunk's queries plus the position query, ``(matrices · rows, d)``."""
        return (queries + self.shift[chunk.heads.start]).flatten(0, 1)

    def enter(self, scores: Tensor, queries: Tensor, chunk: Chunk) -> None:
        """Add to the scores; queries are the chunk's."""
        keys = self.keys[self._window(chunk)]
        product = self.scratch.get(queries.shape[:2] + keys.shape[:1])
        torch.mm(self._shifted(queries, chunk), keys.t(), out=product.flatten(0, 1))
        scores.add_(self._diagonals(product, chunk.columns), alpha=self.scale)

    def leave(self, gradient: Tensor, queries: Tensor, moved: Tensor, chunk: Chunk) -> None:
        """Keep the terms' gradients and add to that of the queries, ``moved``."""
        head, window = self._window(chunk)
        keys = self.keys[head, window]
        shape = queries.shape[:2] + keys.shape[:1]
        # Corners that belong to no score stay zero from one use to the next.
        if self.upright.shape != shape:
            self.upright = gradient.new_zeros(shape)
        diagonals = self._diagonals(self.upright, chunk.columns).copy_(gradient)
        if self.layout.causal:
            # The future lies in corners of other rows. It has weights where no key can be seen.
            diagonals[..., chunk.rows.start + 1 :].tril_(-1)
        upright = self.upright.flatten(0, 1)
        part = torch.mm(upright, keys).mul_(self.scale)
        moved.add_(part.view(moved.shape))
        self.shift_total[head].add_(part.sum(dim=0))
        queries = self._shifted(queries, chunk)
        self.total[head, window].addmm_(upright.t(), queries, alpha=self.scale)

    def gradients(self) -> Dict[str, Tensor]:
        """Return the gradients of the projected distances and the position query."""
        return {"distance_keys": self.total, "position_query": self.shift_total}
