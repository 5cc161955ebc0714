"""One pass of :mod:`fairseq_posenc.attention.cpu.fused` over its chunks, forward or backward."""

from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from fairseq_posenc import compat
from fairseq_posenc.attention.cpu import fused_relative
from fairseq_posenc.attention.cpu.chunks import Chunk, Layout, Scratch
from fairseq_posenc.attention.cpu.fused_terms import Additive, Distances, Segments

# The terms that are tensors, in the order in which tuples hold them.
NAMES = (
    "bias",
    "segments",
    "segment_scalars",
    "relative_keys",
    "relative_values",
    "distance_keys",
    "position_query",
)


class Settings(NamedTuple):
    """What is no tensor.

    Attributes:
        scale: of the scores.
        causal: whether a query sees no later key.
        dropout_p: probability that a weight is dropped.
        keep: whether the weights must outlive their chunk.
        threads: that share the work; the chunks of the backward pass must be those of the forward,
            and it may run in a thread to which torch gives another number of threads.
    """

    scale: float
    causal: bool
    dropout_p: float
    keep: bool
    threads: int


class Pass:
    """The terms of an attention, its memory, and what is done with one chunk after the other.

    Args:
        settings: what is no tensor.
        padding_mask: ``(B, K)`` or ``None``.
        queries: ``(B, H, Q, d)``.
        keys: ``(B, H, K, d)``.
        values: ``(B, H, K, d)``.
        tables: the terms of :data:`NAMES`, or ``None``.
    """

    def __init__(
        self,
        settings: Settings,
        padding_mask: Optional[Tensor],
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        tables: Sequence[Optional[Tensor]],
    ):
        terms = dict(zip(NAMES, tables))
        self.settings, self.kept_scale = settings, 1 / (1 - settings.dropout_p)
        batch, heads, rows, _ = queries.shape
        self.layout = layout = Layout(batch, heads, rows, keys.size(2), settings.causal)
        self.queries, self.keys, self.values = flat(queries), flat(keys), flat(values)
        self.additive = Additive(layout, terms["bias"], padding_mask)
        self.segments = self.distances = self.relative_keys = self.relative_values = None
        if terms["segments"] is not None:
            self.segments = Segments(layout, terms["segments"], terms["segment_scalars"])
        if terms["distance_keys"] is not None:
            tables = terms["distance_keys"], terms["position_query"]
            self.distances = Distances(layout, *tables, settings.scale)
        if terms["relative_keys"] is not None:
            self.relative_keys = fused_relative.build(layout, terms["relative_keys"])
        if terms["relative_values"] is not None:
            self.relative_values = fused_relative.build(layout, terms["relative_values"])
        relative = (self.relative_keys, self.relative_values)
        slack = max(0 if table is None else table.slack for table in relative)
        self.scores = Scratch(queries, slack)
        self.kept = Scratch(queries, slack)
        self.part = Scratch(queries, 0)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, always in the same order."""
        head_by_head = self.distances is not None
        return self.layout.chunks(self.settings.threads, head_by_head)

    def weigh(self, chunk: Chunk) -> Tensor:
        """Return the weights; those that are dropped are negative."""
        queries, keys = self.asking(chunk), self._seen(self.keys, chunk)
        scores = self.scores.get(chunk.shape, fresh=self.settings.keep)
        beta = 1 if self.additive.fill(scores, chunk) else 0
        multiply(queries, keys.transpose(1, 2), scores, self.settings.scale, beta)
        self.additive.hide_future(scores, chunk)
        if self.segments is not None:
            self.segments.enter(scores, chunk)
        if self.distances is not None:
            self.distances.enter(scores, queries, chunk)
        if self.relative_keys is not None:
            self.relative_keys.multiply(scores, queries, chunk, self.settings.scale)
        torch.softmax(scores, dim=-1, out=scores)
        if self.settings.dropout_p:
            _drop(scores, self.settings.dropout_p, self.kept.get(chunk.shape))
        return scores

    def without_dropped(self, weights: Tensor) -> Tensor:
        """Return the weights with 0 for the dropped ones; the rest is not scaled up."""
        if not self.settings.dropout_p:
            return weights
        return torch.clamp(weights, min=0, out=self.kept.get(weights.shape))

    def blend(self, kept: Tensor, chunk: Chunk) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the outputs, and what relative values need of the weights in the backward."""
        relative, values = self.relative_values, self._seen(self.values, chunk)
        outputs = self.part.get(kept.shape[:2] + values.shape[2:])
        if relative is None:
            return multiply(kept, values, outputs, self.kept_scale), None
        multiply(kept, relative.values(values), outputs, self.kept_scale)
        condensed = relative.collect(kept, chunk)
        relative.combine(outputs, condensed, self.kept_scale)
        return outputs, None if condensed is kept else condensed

    def unblend(self, gradient: Tensor, kept: Tensor, condensed: Tensor, chunk: Chunk) -> Tensor:
        """Return the gradient of the kept weights."""
        relative, values = self.relative_values, self._seen(self.values, chunk)
        weights = self.scores.get(kept.shape)
        if relative is None:
            return multiply(gradient, values.transpose(1, 2), weights, self.kept_scale)
        values = relative.values(values).transpose(1, 2)
        multiply(gradient, values, weights, self.kept_scale)
        relative.multiply(weights, gradient, chunk, self.kept_scale)
        relative.accumulate(kept if condensed is None else condensed, gradient, self.kept_scale)
        return weights

    def unweigh(self, gradient: Tensor, weights: Tensor, kept: Tensor) -> Tensor:
        """Return the gradient of the scores from that of the kept weights, in its memory."""
        if not self.settings.dropout_p:
            return torch._softmax_backward_data(
                gradient, weights, -1, torch.float32, grad_input=gradient
            )
        sums = gradient.mul_(kept).sum(dim=-1, keepdim=True)
        # The kept weights are not needed any more, so that the memory takes all of them.
        return gradient.addcmul_(torch.abs(weights, out=kept), sums, value=-1)

    def query_gradient(self, gradient: Tensor, chunk: Chunk) -> Tensor:
        """Return the gradient of the queries from that of the scores; terms keep theirs."""
        scale, queries = self.settings.scale, self.asking(chunk)
        moved = self.part.get(queries.shape)
        multiply(gradient, self._seen(self.keys, chunk), moved, scale)
        if self.distances is not None:
            self.distances.leave(gradient, queries, moved, chunk)
        if self.relative_keys is not None:
            condensed = self.relative_keys.collect(gradient, chunk)
            self.relative_keys.combine(moved, condensed, scale)
            self.relative_keys.accumulate(condensed, queries, scale)
        if self.segments is not None:
            self.segments.leave(gradient, chunk)
        return moved

    def gradients(self, values: Tensor) -> Dict[str, Optional[Tensor]]:
        """Return the gradients of the terms at the end, given that of the values, by name."""
        found = self.additive.gradients()
        if self.segments is not None:
            found.update(self.segments.gradients())
        if self.distances is not None:
            found.update(self.distances.gradients())
        if self.relative_keys is not None:
            found["relative_keys"] = self.relative_keys.gradient()
        if self.relative_values is not None:
            found["relative_values"] = self.relative_values.gradient(values)
        return found

    def add(
        self, memory: Tensor, weights: Tensor, rows: Tensor, alpha: float, chunk: Chunk
    ) -> None:
        """Add ``alpha · weightsᵀ · rows`` to the gradient of keys or values."""
        some = self._seen(memory, chunk)
        part = multiply(weights.transpose(1, 2), rows, self.part.get(some.shape), alpha)
        if chunk.first:
            some.copy_(part)
        else:
            some.add_(part)

    def asking(self, chunk: Chunk) -> Tensor:
        """Return the chunk's queries."""
        return self.queries[chunk.flat, chunk.rows]

    def _seen(self, tensor: Tensor, chunk: Chunk) -> Tensor:
        return tensor[chunk.flat, : chunk.columns]


def flat(tensor: Tensor) -> Tensor:
    """Return ``(B, H, T, d)`` as ``(B·H, T, d)``: a view if it lies in memory as (T, B, H, d)."""
    return tensor.flatten(0, 1)


def multiply(left: Tensor, right: Tensor, out: Tensor, alpha: float, beta: float = 0) -> Tensor:
    """Write ``alpha · left · right + beta · out`` into ``out``, which is fastest if contiguous."""
    if not beta and compat.BADDBMM_READS_OUT:
        out.zero_()
    return torch.baddbmm(out, left, right, beta=beta, alpha=alpha, out=out)


def _drop(weights: Tensor, p: float, noise: Tensor) -> None:
    """Make weights negative with probability ``p``, exact to 1/65536; ``noise`` is overwritten."""
    # A fourth of the random numbers that one per weight would take, which are what costs.
    bits = torch.empty((weights.numel() + 3) // 4, dtype=torch.int64)
    bits.random_(torch.iinfo(torch.int64).min, None)
    words = bits.view(torch.int16)[: weights.numel()]
    noise.copy_(words.view(weights.shape)).sub_(round(p * 2**16) - 2**15)
    weights.copysign_(noise)
