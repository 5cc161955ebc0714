"""Multi-head attention: fairseq's parameters, and the position terms of a layer."""

import math
from dataclasses import replace
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.incremental_decoding_utils import FairseqIncrementalState
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor, nn

from fairseq_posenc.attention import core
from fairseq_posenc.attention.cache import Prefix, Source
from fairseq_posenc.attention.plain import rotated
from fairseq_posenc.encodings.base import AttentionTerms

# What all modules of a decoder keep while decoding step by step.
State = Dict[str, Dict[str, Any]]
# While hypotheses are reordered, state[REORDERING][ON_HOST] is the new order on the CPU. It is
# copied once for all modules, as each copy from a GPU waits for it.
REORDERING, ON_HOST = "reordering", "on_host"


class Projections(FairseqIncrementalState, nn.Module):
    """Projections to and from attention heads.

    Parameters (``k_proj``, ``v_proj``, ``q_proj``, ``out_proj``, each ``weight`` and ``bias``), how
    they are drawn and in which order are those of fairseq's ``MultiheadAttention``, and so are the
    arguments; ``key_channels`` is the width of what keys and values are made from, if another.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        key_channels: Optional[int] = None,
        dropout: float = 0.0,
        q_noise: float = 0.0,
        qn_block_size: int = 8,
    ):
        super().__init__()
        key_channels = key_channels or channels
        self.num_heads = heads
        self.head_dim = channels // heads
        self.dropout_module = FairseqDropout(dropout, module_name="MultiheadAttention")
        noise = {"p": q_noise, "block_size": qn_block_size}
        self.k_proj = quant_noise(nn.Linear(key_channels, channels), **noise)
        self.v_proj = quant_noise(nn.Linear(key_channels, channels), **noise)
        self.q_proj = quant_noise(nn.Linear(channels, channels), **noise)
        self.out_proj = quant_noise(nn.Linear(channels, channels), **noise)
        gain = 1 / math.sqrt(2) if key_channels == channels else 1.0
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    @property
    def dropout_p(self) -> float:
        """Probability that a weight is dropped now."""
        active = self.training or self.dropout_module.apply_during_inference
        return self.dropout_module.p if active else 0.0

    def split(self, x: Tensor) -> Tensor:
        """Return ``(length, batch, channels)`` as ``(batch, heads, length, head channels)``."""
        length, batch, _ = x.shape
        return x.view(length, batch, -1, self.head_dim).permute(1, 2, 0, 3)

    def join(self, x: Tensor) -> Tensor:
        """Undo :meth:`split`, and project to the output."""
        return self.out_proj(x.permute(2, 0, 1, 3).flatten(2))

    def own_state(self, state: State) -> Dict[str, Any]:
        """Return the part of the state that belongs to this module: its ``cache``, if any yet."""
        name: str = self._get_full_incremental_state_key("attention")  # type: ignore[operator]
        return state.setdefault(name, {})

    def reorder_incremental_state(self, state: State, order: Tensor) -> State:
        """Follow the beam search, which calls this on every module of a decoder."""
        own = self.own_state(state)
        if "cache" in own:
            rows = state[REORDERING][ON_HOST] if REORDERING in state else order.cpu()
            own["cache"] = own["cache"].reordered(order, rows)
        return state


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
            padding_mask: ``(batch, keys)`` bool, true at padding, which is not looked at.
            causal: whether a token sees no later ones.
            incremental_state: when decoding step by step, what all modules keep. ``x`` is then of
                the newest token, ``padding_mask`` and ``terms`` of the prefix so far.
            need_weights: whether to return the weights ``(batch, heads, length, keys)`` too.
        """
        # each (length, batch, channels)
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if terms.rotation is not None:
            # rotation: (length, batch or 1, 1, head channels / 2)
            rotation = torch.complex(*terms.rotation).unsqueeze(-2)
            queries, keys = rotated(queries, rotation), rotated(keys, rotation)
        prefix = None
        if incremental_state is not None:
            own = self.own_state(incremental_state)
            if "cache" not in own:
                own["cache"] = Prefix()
            prefix = own["cache"]
            # of the newest token → of the prefix so far
            keys, values = prefix.keys.append(keys), prefix.values.append(values)
        # outputs: (batch, heads, queries, head channels); weights: (batch, heads, queries, keys)
        outputs, weights = core.attend(
            self.split(queries),
            self.split(keys),
            self.split(values),
            self.core_terms(terms, prefix, causal, x.dtype),
            padding_mask,
            causal=causal,
            dropout_p=self.dropout_p,
            need_weights=need_weights,
        )
        return self.join(outputs), weights

    def core_terms(
        self,
        terms: AttentionTerms,
        prefix: Optional[Prefix] = None,
        causal: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> AttentionTerms:
        """Return the terms as :func:`core.attend` takes them, once the rotation is done.

        The scale is filled in, and distances are projected as keys of that ``dtype`` are. If
        ``causal``, distances of the future are left out but one. Step by step only the newest
        distance is projected, which is the largest and the first row.
        """
        scale = self.head_dim**-0.5 if terms.scale is None else terms.scale
        distances = terms.distances
        if distances is None:
            return replace(terms, scale=scale, rotation=None)
        if causal:
            distances = distances[: distances.size(0) // 2 + 2]
        past = None if prefix is None else prefix.distances
        # projected: (distances, channels), from the largest distance down
        new = distances if past is None else distances[: distances.size(0) - past.size(0)]
        # by the module, which may be quantised, or have a LoRA; its bias adds the same to all
        # scores of a query, which the softmax does not see
        projected = self.k_proj(new.to(dtype))
        if past is not None:
            projected = torch.cat([projected, past])
        if prefix is not None:
            prefix.distances = projected
        # (heads, distances, head channels)
        by_head = projected.view(projected.size(0), -1, self.head_dim).transpose(0, 1)
        return replace(terms, scale=scale, rotation=None, distances=None, distance_keys=by_head)


class CrossAttention(Projections):
    """Multi-head attention to the encoder's output, without position terms.

    Step by step the source is projected once, and the hypotheses of a sentence share it: they are
    computed as if they were the tokens of one sequence of queries.
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

        Arguments are those of :class:`SelfAttention`, but for ``encoder_out`` ``(source length,
        batch, encoder channels)``, which step by step is read in the first step only.
        """
        queries = self.q_proj(x)  # (length, batch, channels)
        own = {} if incremental_state is None else self.own_state(incremental_state)
        if "cache" not in own:
            # each (source length, batch, channels)
            keys, values = self.k_proj(encoder_out), self.v_proj(encoder_out)
            own["cache"] = Source(self.split(keys), self.split(values), padding_mask)
        source: Source = own["cache"]
        if source.beam > 1:
            # hypotheses as tokens: (1, sentences · beam, channels) → (beam, sentences, channels)
            queries = queries.view(-1, source.beam, x.size(-1)).transpose(0, 1)
        outputs, weights = core.attend(
            self.split(queries),
            source.keys,
            source.values,
            AttentionTerms(scale=self.head_dim**-0.5),
            source.padding_mask,
            dropout_p=self.dropout_p,
            need_weights=need_weights,
        )
        if source.beam > 1:
            # back: (sentences, heads, beam, …) → (sentences · beam, heads, 1, …)
            outputs = outputs.transpose(1, 2).flatten(0, 1).unsqueeze(2)
            if weights is not None:
                weights = weights.transpose(1, 2).flatten(0, 1).unsqueeze(2)
        return self.join(outputs), weights
