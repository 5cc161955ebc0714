"""Multi-head attention: fairseq's parameters, and the position terms of a layer."""

from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.attention import core
from fairseq_posenc.attention.cache import Prefix, Source
from fairseq_posenc.attention.projections import Projections, State
from fairseq_posenc.encodings.base import AttentionTerms


class SelfAttention(Projections):
    """Multi-head self-attention with the position terms of its layer; it names no encoding.

    The formula is that of :class:`fairseq_posenc.encodings.base.AttentionTerms`, and is the same
    for whole sequences and step by step.
    """

    def forward(
        self,
        x: Tensor,
        terms: AttentionTerms,
        padding_mask: Optional[Tensor] = None,
        causal: bool = False,
        incremental_state: Optional[State] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the output ``(length, batch, channels)``, and the weights if asked for.

        Args:
            x: ``(length, batch, channels)``.
            terms: this layer's.
            padding_mask: ``(batch, length)`` bool, true at padding, which is not looked at.
            causal: whether a token sees no later ones.
            incremental_state: when decoding step by step, what all modules remember. ``x`` and
                ``padding_mask`` are then of the newest token, ``terms`` of the prefix so far.
            need_weights: whether to return the weights ``(batch, heads, length, keys)`` too.
        """
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if terms.rotation is not None:
            turn = torch.complex(*terms.rotation)[:, None, None]
            queries, keys = rotated(queries, turn), rotated(keys, turn)
        prefix = None
        if incremental_state is not None:
            prefix = self.remembered(incremental_state).setdefault("prefix", Prefix())
            keys, values = prefix.keys.append(keys), prefix.values.append(values)
            padding_mask = prefix.append_padding(padding_mask)
        outputs, weights = core.attend(
            self.split(queries),
            self.split(keys),
            self.split(values),
            self.core_terms(terms, prefix, causal),
            padding_mask,
            causal=causal,
            dropout_p=self.dropout_p,
            need_weights=need_weights,
        )
        return self.join(outputs), weights

    def reorder_incremental_state(self, state: State, order: Tensor) -> State:
        """Follow the beam search, which calls this on every module of a decoder."""
        prefix = self.remembered(state).get("prefix")
        if prefix is not None:
            prefix.reorder(order)
        return state

    def core_terms(
        self, terms: AttentionTerms, prefix: Optional[Prefix] = None, causal: bool = False
    ) -> core.CoreTerms:
        """Return the terms as the core wants them: rotation apart, distances projected."""
        return core.CoreTerms(
            scale=self.head_dim**-0.5 if terms.scale is None else terms.scale,
            bias=terms.bias,
            segments=terms.segments,
            segment_scalars=terms.segment_scalars,
            relative_keys=terms.relative_keys,
            relative_values=terms.relative_values,
            distance_keys=self._distance_keys(terms.distances, prefix, causal),
            content_query=terms.content_query,
            position_query=terms.position_query,
        )

    def _distance_keys(
        self, distances: Optional[Tensor], prefix: Optional[Prefix], causal: bool
    ) -> Optional[Tensor]:
        """Return distances ``(D, channels)`` projected to ``(heads, D, head channels)``.

        Of the future, which nobody sees if ``causal``, there is one. Step by step each distance is
        projected once: the newest is the largest, the first row.
        """
        if distances is None:
            return None
        if causal:
            distances = distances[: distances.size(0) // 2 + 2]
        known = None if prefix is None else prefix.distances
        new = distances if known is None else distances[: distances.size(0) - known.size(0)]
        projected = F.linear(new.to(self.k_proj.weight.dtype), self.k_proj.weight)
        if known is not None:
            projected = torch.cat([projected, known])
        if prefix is not None:
            prefix.distances = projected
        return projected.view(projected.size(0), -1, self.head_dim).transpose(0, 1)


class CrossAttention(Projections):
    """Multi-head attention to the encoder's output, without position terms.

    Step by step the source is projected once. When the beam search has then made several hypotheses
    of each sentence, they share it: they are to it what the tokens of a sequence are.
    """

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor,
        padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[State] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the output ``(length, batch, channels)``, and the weights if asked for.

        Args:
            x: ``(length, batch, channels)``; step by step of the newest token alone.
            encoder_out: ``(source length, batch, encoder channels)``.
            padding_mask: ``(batch, source length)`` bool, true at padding.
            incremental_state: when decoding step by step, what all modules remember. The source is
                read in the first step only.
            need_weights: whether to return the weights ``(batch, heads, length, source length)``.
        """
        queries = self.q_proj(x)
        if incremental_state is None:
            source = self._project(encoder_out, padding_mask)
        else:
            memory = self.remembered(incremental_state)
            if "source" not in memory:
                memory["source"] = self._project(encoder_out, padding_mask)
            source = memory["source"]
        if source.beam > 1:
            queries = queries.view(-1, source.beam, x.size(-1)).transpose(0, 1)
        outputs, weights = core.attend(
            self.split(queries),
            source.keys,
            source.values,
            core.CoreTerms(scale=self.head_dim**-0.5),
            source.padding_mask,
            dropout_p=self.dropout_p,
            need_weights=need_weights,
        )
        if source.beam > 1:
            outputs = outputs.transpose(1, 2).flatten(0, 1).unsqueeze(2)
            if weights is not None:
                weights = weights.transpose(1, 2).flatten(0, 1).unsqueeze(2)
        return self.join(outputs), weights

    def _project(self, encoder_out: Tensor, mask: Optional[Tensor]) -> Source:
        keys, values = self.k_proj(encoder_out), self.v_proj(encoder_out)
        return Source(self.split(keys), self.split(values), mask)

    def reorder_incremental_state(self, state: State, order: Tensor) -> State:
        """Follow the beam search, which calls this on every module of a decoder."""
        memory = self.remembered(state)
        if "source" in memory:
            memory["source"] = memory["source"].reordered(order)
        return state


def rotated(x: Tensor, turn: Tensor) -> Tensor:
    """Turn the pairs of channels of ``(length, batch, channels)`` by complex numbers.

    Args:
        x: computed with in float32 at least.
        turn: ``(length, 1, 1, head channels // 2)``, of absolute value 1.
    """
    length, batch, channels = x.shape
    pairs = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = torch.view_as_complex(pairs.view(length, batch, -1, turn.size(-1), 2))
    return torch.view_as_real(pairs * turn).view(length, batch, channels).to(x.dtype)
