"""The decoder layer of ``--cross-self-attention``: one attention for source and target."""

import math
from typing import Any, Optional, Tuple

import torch
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from fairseq_posenc.attention.attention import State
from fairseq_posenc.errors import UsageError


class JointDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's layer for ``--cross-self-attention``, called like ours.

    Its one attention sees the source and the target, between which there are no distances.
    """

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor,
        encoder_padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[State] = None,
        self_attn_padding_mask: Optional[Tensor] = None,
        causal: bool = False,
        need_attn: bool = False,
        **terms: Any,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the output, and weights ``(batch, 1, length, source length)`` if ``need_attn``.

        Weights are of the attention to the encoder, if there is one besides.
        """
        if terms:
            raise UsageError(
                "with --cross-self-attention, distances mean nothing; leave it out, or choose a "
                "--position-encoding that works at the input"
            )
        if self_attn_padding_mask is None:
            self_attn_padding_mask = x.new_zeros(x.size(1), x.size(0), dtype=torch.bool)
        x, weights, _ = super().forward(
            x,
            encoder_out,
            encoder_padding_mask,
            incremental_state,
            self_attn_mask=x.new_full((len(x), len(x)), -math.inf).triu(1) if causal else None,
            self_attn_padding_mask=self_attn_padding_mask,
            need_attn=need_attn,
        )
        return x, weights if weights is None else weights.unsqueeze(1)
