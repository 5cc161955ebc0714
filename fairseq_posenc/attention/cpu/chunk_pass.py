"""Forward and backward pass over one chunk of scores after the other."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from fairseq_posenc.attention.cpu import relative
from fairseq_posenc.attention.cpu.chunks import Chunk, ScoreLayout, Scratch
from fairseq_posenc.attention.cpu.score_terms import (
    Additive,
    DistanceBias,
    Distances,
    IndexProducts,
    Segments,
)

# The terms that are tensors, in the order in which tuples hold them.
NAMES = (
    "bias",
    "segments",
    "segment_scalars",
    "relative_keys",
    "relative_values",
    "distance_keys",
    "position_query",
    "bias_by_distance",
    "index_queries",
    "index_keys",
)

Term = Union[DistanceBias, IndexProducts, Segments, Distances, relative.Pairs, relative.Band]


class Settings(NamedTuple):
    """Non-tensor settings of one attention."""

    scale: float
    causal: bool
    dropout_p: float
    keep: bool  # whether the weights must outlive their chunk
    recompute: bool  # whether the backward pass computes them again instead
    # how many share the work: the chunks of the backward pass must be those of the forward, and it
    # may run in a thread to which torch gives another number of threads
    threads: int


class ChunkPass:
    """One pass, forward or backward, over the chunks of an attention: its terms and its memory.

    Tensors are those of :class:`fairseq_posenc.attention.plain.Inputs`; ``tables`` are the terms of
    :data:`NAMES`, or ``None``. What is dropped comes from ``generator``, or torch's own.
    """

    def __init__(
        self,
        settings: Settings,
        padding_mask: Optional[Tensor],
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *tables: Optional[Tensor],
        generator: Optional[torch.Generator] = None,
    ):
        terms = dict(zip(NAMES, tables))
        self.settings, self.undropped_scale = settings, 1 / (1 - settings.dropout_p)
        self.generator = generator
        batch, heads, rows, _ = queries.shape
        self.layout = layout = ScoreLayout(batch, heads, rows, keys.size(2), settings.causal)
        # (B, H, T, d) as (B·H, T, d): views if they lie in memory as (T, B, H, d)
        self.queries, self.keys, self.values = (x.flatten(0, 1) for x in (queries, keys, values))
        self.additive = Additive(layout, terms["bias"], padding_mask)
        self.score_terms: List[Term] = []
        if terms["bias_by_distance"] is not None:
            self.score_terms.append(DistanceBias(layout, terms["bias_by_distance"]))
        if terms["index_queries"] is not None:
            self.score_terms.append(IndexProducts(terms["index_queries"], terms["index_keys"]))
        if terms["segments"] is not None:
            self.score_terms.append(Segments(layout, terms["segments"], terms["segment_scalars"]))
        # projected distances differ by head: one product then serves a head of all sequences
        self.head_by_head = terms["distance_keys"] is not None
        if self.head_by_head:
            distances = terms["distance_keys"], terms["position_query"]
            self.score_terms.append(Distances(layout, *distances, settings.scale))
        self.relative_values, margin = None, 0
        if terms["relative_keys"] is not None:
            table = relative.build(layout, terms["relative_keys"], settings.scale)
            self.score_terms.append(table)
            margin = table.margin
        if terms["relative_values"] is not None:
            table = relative.build(layout, terms["relative_values"], self.undropped_scale)
            self.relative_values, margin = table, max(margin, table.margin)
        self.scores, self.undropped = Scratch(queries, margin), Scratch(queries, margin)
        self.part = Scratch(queries, 0)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, always in the same order."""
        return self.layout.chunks(self.settings.threads, self.head_by_head)

    def forward(self, chunk: Chunk) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
        """Compute a chunk.

        Returns:
            The outputs ``(matrices, rows, d)``, which the next call overwrites; the signed weights
            ``(matrices, rows, columns)``, of which the dropped ones are negative; and what the
            gradient of relative values needs of them, if that is not the weights themselves.
        """
        scale, dropout_p = self.settings.scale, self.settings.dropout_p
        # queries: (matrices, rows, d); keys, values: (matrices, columns, d)
        queries = self.queries[chunk.matrices, chunk.rows]
        keys, values = (x[chunk.matrices, : chunk.columns] for x in (self.keys, self.values))

        # scores: (matrices, rows, columns) = bias and padding + scale · queries · keysᵀ + terms
        scores = self.scores.get(chunk.shape, fresh=self.settings.keep)
        beta = 1 if self.additive.fill(scores, chunk) else 0
        multiply(queries, keys.transpose(1, 2), scores, scale, beta)
        self.additive.hide_future(scores, chunk)
        for term in self.score_terms:
            term.add_to_scores(scores, queries, chunk)

        # signed: the softmax, in the scores' memory; dropped weights get a minus sign, so
        # that one tensor keeps the weights and the dropout mask for the backward pass
        signed = torch.softmax(scores, dim=-1, out=scores)
        if dropout_p:
            _negate_dropped(signed, dropout_p, self.undropped.get(chunk.shape), self.generator)
        undropped = self._without_dropped(signed)

        # outputs: (matrices, rows, d) = undropped_scale · undropped · (values + relative values)
        table = self.relative_values
        values = values if table is None else table.base_values(values)
        outputs, distance_weights = self.part.get(undropped.shape[:2] + values.shape[2:]), None
        multiply(undropped, values, outputs, self.undropped_scale)
        if table is not None:
            distance_weights = table.weights_by_distance(undropped, chunk)
            table.combine(outputs, distance_weights)
        return outputs, signed, None if distance_weights is undropped else distance_weights

    def backward(
        self,
        chunk: Chunk,
        signed: Tensor,
        distance_weights: Optional[Tensor],
        gradient: Tensor,
        into: Sequence[Tensor],
    ) -> Tensor:
        """Compute the gradients of a chunk; its terms keep theirs until the end.

        Args:
            chunk, signed, distance_weights: of :meth:`forward`, of which the last two are results.
            gradient: of the chunk's outputs.
            into: the gradients of queries, keys and values, each ``(B·H, T, d)``, to be written to.

        Returns:
            The gradient of the scores ``(matrices, rows, columns)``.
        """
        scale, table = self.settings.scale, self.relative_values
        queries = self.queries[chunk.matrices, chunk.rows]
        keys, values = (x[chunk.matrices, : chunk.columns] for x in (self.keys, self.values))
        values = values if table is None else table.base_values(values)

        # of the values: undropped_scale · undroppedᵀ · gradient
        undropped = self._without_dropped(signed)
        self._add(into[2], undropped, gradient, self.undropped_scale, chunk)

        # of the undropped weights: undropped_scale · gradient · (values + relative values)ᵀ
        scores = self.scores.get(undropped.shape)
        multiply(gradient, values.transpose(1, 2), scores, self.undropped_scale)
        if table is not None:
            table.add_to_scores(scores, gradient, chunk)
            table.accumulate(undropped if distance_weights is None else distance_weights, gradient)

        # of the scores: back through dropout and softmax, in the same memory
        self._softmax_backward(scores, signed, undropped)

        # of keys and queries, and of the terms
        self._add(into[1], scores, queries, scale, chunk)
        query_gradient = multiply(scores, keys, self.part.get(queries.shape), scale)
        for term in self.score_terms:
            term.backward(scores, queries, query_gradient, chunk)
        into[0][chunk.matrices, chunk.rows] = query_gradient
        return scores

    def table_gradients(self, values: Tensor) -> Dict[str, Tensor]:
        """Return the gradients of the terms at the end, given that of the values, by name."""
        gradients = self.additive.gradients()
        for term in self.score_terms:
            gradients.update(term.gradients())
        if self.relative_values is not None:
            gradients["relative_values"] = self.relative_values.gradient(values)
        return gradients

    def _without_dropped(self, signed: Tensor) -> Tensor:
        """Return the weights with 0 for the dropped ones; the rest is not scaled up."""
        if not self.settings.dropout_p:
            return signed
        return torch.clamp(signed, min=0, out=self.undropped.get(signed.shape))

    def _softmax_backward(self, gradient: Tensor, signed: Tensor, undropped: Tensor) -> None:
        """Turn the gradient of the undropped weights into that of the scores, in its memory.

        With weights ``w = |signed|`` and ``undropped`` ones, that is for each row
        ``gradient · undropped - w · Σ (gradient · undropped)``.
        """
        if not self.settings.dropout_p:
            torch._softmax_backward_data(gradient, signed, -1, torch.float32, grad_input=gradient)
            return
        sums = gradient.mul_(undropped).sum(dim=-1, keepdim=True)
        # undropped is not needed any more: its memory takes the weights
        gradient.addcmul_(torch.abs(signed, out=undropped), sums, value=-1)

    def _add(
        self, memory: Tensor, weights: Tensor, rows: Tensor, alpha: float, chunk: Chunk
    ) -> None:
        """Add ``alpha · weightsᵀ · rows`` to the gradient of keys or values."""
        memory = memory[chunk.matrices, : chunk.columns]
        part = multiply(weights.transpose(1, 2), rows, self.part.get(memory.shape), alpha)
        # the first chunk has the last rows, which see all keys: it sets every row, the others add
        if chunk.first:
            memory.copy_(part)
        else:
            memory.add_(part)


def multiply(left: Tensor, right: Tensor, out: Tensor, alpha: float, beta: float = 0) -> Tensor:
    """Write ``alpha · left · right + beta · out`` into ``out``, which is fastest if contiguous."""
    return torch.baddbmm(out, left, right, beta=beta, alpha=alpha, out=out)


def _negate_dropped(
    weights: Tensor, p: float, noise: Tensor, generator: Optional[torch.Generator]
) -> None:
    """Make weights negative with probability ``p``, exact to 1/65536; ``noise`` is overwritten."""
    # Random numbers take most of the time here: 16 bits are enough for a weight, so one random
    # int64 serves four of them.
    bits = torch.empty((weights.numel() + 3) // 4, dtype=torch.int64)
    bits.random_(torch.iinfo(torch.int64).min, None, generator=generator)
    words = bits.view(torch.int16)[: weights.numel()]
    # words lie in -2¹⁵ … 2¹⁵ - 1: a share p of them is below the threshold and turns negative
    noise.copy_(words.view(weights.shape)).sub_(round(p * 2**16) - 2**15)
    weights.copysign_(noise)
