"""Multi-head attention: fairseq's parameters, and the position terms of a layer."""

import math
from typing import Any, Dict, Optional, Tuple

from fairseq.incremental_decoding_utils import FairseqIncrementalState
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.multihead_attention import MultiheadAttention
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor, nn

from fairseq_posenc.attention import core, projections
from fairseq_posenc.attention.cache import Prefix, Source
from fairseq_posenc.encodings.base import AttentionTerms

# What all modules of a decoder keep while decoding step by step.
State = Dict[str, Dict[str, Any]]
# While hypotheses are reordered, state[REORDERING][ON_HOST] is the new order on the CPU. It is
# copied once for all modules, as each copy from a GPU waits for it.
REORDERING, ON_HOST = "reordering", "on_host"


class _FairseqProjections(FairseqIncrementalState, projections.Projections):
    """Projections with the arguments, the drawn parameters, the dropout, the quantisation noise,
    the incremental state and the upgrade of old checkpoints of fairseq's ``MultiheadAttention``.
    """

    upgrade_state_dict_named = MultiheadAttention.upgrade_state_dict_named

    def __init__(
        self,
        channels: int,
        heads: int,
        key_channels: Optional[int] = None,
        dropout: float = 0.0,
        q_noise: float = 0.0,
        qn_block_size: int = 8,
    ):
        super().__init__(channels, heads, key_channels)
        self.dropout_module = FairseqDropout(dropout, module_name="MultiheadAttention")
        # one matrix of the three, (3 · channels, channels), has 1 / √2 of a square one's bound
        gain = 1 / math.sqrt(2) if key_channels in (None, channels) else 1.0
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)
        for projection in (self.k_proj, self.v_proj, self.q_proj, self.out_proj):
            quant_noise(projection, q_noise, qn_block_size)  # a hook, or nothing

    @property
    def dropout_p(self) -> float:  # type: ignore[override]
        """Probability that a weight is dropped now."""
        active = self.training or self.dropout_module.apply_during_inference
        return self.dropout_module.p if active else 0.0

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


class SelfAttention(_FairseqProjections, projections.SelfAttentionBase):
    """Self-attention as fairseq's layers call it."""

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

        Arguments are those of :meth:`projections.SelfAttentionBase.attend`, but for
        ``incremental_state``: when decoding step by step, what all modules keep.
        """
        prefix = None
        if incremental_state is not None:
            own = self.own_state(incremental_state)
            # not setdefault: torch.compile cannot make a Prefix
            prefix = own["cache"] = own["cache"] if "cache" in own else Prefix()
        return self.attend(x, terms, padding_mask, causal, prefix, need_weights)


class CrossAttention(_FairseqProjections):
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
            AttentionTerms(),
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
