"""Encoder and decoder layers: fairseq's, with self-attention that takes position terms.

The terms of a layer arrive as keyword arguments, one tensor each (:func:`as_arguments`): inside an
object, they would get no gradients under ``--checkpoint-activations``. Hidden states are
``(length, batch, channels)``, step by step those of the newest token alone; padding masks are
``(batch, length)`` bool, true at padding.
"""

from typing import Any, Dict, List, Optional, Tuple

from fairseq.distributed import fsdp_wrap
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

from fairseq_posenc import compat
from fairseq_posenc.attention import admin
from fairseq_posenc.attention.attention import CrossAttention, SelfAttention, State
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.errors import UsageError


def as_arguments(terms: Optional[AttentionTerms]) -> Dict[str, Any]:
    """Return the terms of a layer, if it has any, as its keyword arguments."""
    if terms is None:
        return {}
    return {name: value for name, value in vars(terms).items() if value is not None}


def wrapped(layer: nn.Module, cfg) -> nn.Module:
    """Return a layer that checkpoints its activations and is sharded, if ``cfg`` says so."""
    smallest = cfg.min_params_to_wrap
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
        smallest = 0
    return fsdp_wrap(layer, min_num_params=smallest)


def layers_after_layerdrop(layers: nn.ModuleList) -> List[Optional[nn.Module]]:
    """Return all layers in order, with ``None`` for those that LayerDrop leaves out this time."""
    remaining = set(layers)
    return [layer if layer in remaining else None for _, layer in layers.named_children()]


def _options(cfg, side) -> Dict[str, Any]:
    if side.xformers_att_config is not None:
        raise UsageError("xFormers' attention takes no position terms; leave its options out")
    return {
        "dropout": cfg.attention_dropout,
        "q_noise": cfg.quant_noise.pq,
        "qn_block_size": cfg.quant_noise.pq_block_size,
    }


class EncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer; parameter names are the same, and ``omegas`` are ADMIN's, if any."""

    def __init__(self, cfg, omegas: Optional[Dict[str, float]] = None):
        super().__init__(cfg)
        compat.remove_fused_weights(self)
        self.residual = admin.Residual()
        admin.add_ratios(self, admin.ENCODER_RATIOS, self.embed_dim, omegas)

    def build_self_attention(self, embed_dim: int, cfg) -> SelfAttention:
        """Build the attention that takes position terms."""
        return SelfAttention(embed_dim, cfg.encoder.attention_heads, **_options(cfg, cfg.encoder))

    def forward(
        self, x: Tensor, encoder_padding_mask: Optional[Tensor] = None, **terms: Any
    ) -> Tensor:
        """Return the output; ``terms`` are fields of :class:`AttentionTerms`."""
        # each step: normalise before or after, and add to x: (length, batch, channels)
        before = self.normalize_before
        # self-attention
        y = self.self_attn_layer_norm(x) if before else x
        y, _ = self.self_attn(y, AttentionTerms(**terms), encoder_padding_mask)
        x = self.residual(self.dropout_module(y), x, self.attention_ratio_change)
        x = x if before else self.self_attn_layer_norm(x)

        # feed-forward; fc1: (length, batch, inner channels)
        y = self.final_layer_norm(x) if before else x
        y = self.activation_dropout_module(self.activation_fn(self.fc1(y)))
        x = self.residual(self.dropout_module(self.fc2(y)), x, self.fc_ratio_change)
        return x if before else self.final_layer_norm(x)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        # that of fairseq 0.12.2 would add the second copy of the weights
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)


class DecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer; parameter names are the same, ``omegas`` as in the encoder's."""

    def __init__(
        self, cfg, no_encoder_attn: bool = False, omegas: Optional[Dict[str, float]] = None
    ):
        super().__init__(cfg, no_encoder_attn)
        self.residual = admin.Residual()
        admin.add_ratios(self, admin.DECODER_RATIOS, self.embed_dim, omegas)

    def build_self_attention(self, embed_dim: int, cfg, **_) -> SelfAttention:
        """Build the attention that takes position terms."""
        return SelfAttention(embed_dim, cfg.decoder.attention_heads, **_options(cfg, cfg.decoder))

    def build_encoder_attention(self, embed_dim: int, cfg) -> CrossAttention:
        """Build the attention to the encoder's output."""
        return CrossAttention(
            embed_dim,
            cfg.decoder.attention_heads,
            key_channels=cfg.encoder.embed_dim,
            **_options(cfg, cfg.encoder),
        )

    def forward(
        self,
        x: Tensor,
        encoder_out: Optional[Tensor] = None,
        encoder_padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[State] = None,
        self_attn_padding_mask: Optional[Tensor] = None,
        causal: bool = False,
        need_attn: bool = False,
        **terms: Any,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the output, and the weights of the attention to the encoder if ``need_attn``.

        For the arguments see :class:`fairseq_posenc.attention.attention.SelfAttention`, and for
        ``terms`` :class:`AttentionTerms`; weights are ``(batch, heads, length, source length)``.
        """
        # each step: normalise before or after, and add to x: (length, batch, channels)
        before, weights = self.normalize_before, None
        # self-attention
        y = self.self_attn_layer_norm(x) if before else x
        y, _ = self.self_attn(
            y, AttentionTerms(**terms), self_attn_padding_mask, causal, incremental_state
        )
        if self.c_attn is not None:
            # NormFormer's factor of each head; by_head: (length, batch, heads, head channels)
            by_head = y.view(*y.shape[:-1], self.nh, self.head_dim)
            y = (by_head * self.c_attn.unsqueeze(-1)).flatten(-2)
        y = y if self.attn_ln is None else self.attn_ln(y)
        x = self.residual(self.dropout_module(y), x, self.self_ratio_change)
        x = x if before else self.self_attn_layer_norm(x)

        # attention to the source; weights: (batch, heads, length, source length)
        if self.encoder_attn is not None and encoder_out is not None:
            y = self.encoder_attn_layer_norm(x) if before else x
            y, weights = self.encoder_attn(
                y, encoder_out, encoder_padding_mask, incremental_state, need_attn
            )
            x = self.residual(self.dropout_module(y), x, self.encoder_ratio_change)
            x = x if before else self.encoder_attn_layer_norm(x)

        # feed-forward; fc1: (length, batch, inner channels)
        y = self.final_layer_norm(x) if before else x
        y = self.activation_dropout_module(self.activation_fn(self.fc1(y)))
        if self.ffn_layernorm is not None:
            y = self.ffn_layernorm(y)
        y = self.dropout_module(self.fc2(y))
        x = x if self.w_resid is None else self.w_resid * x
        x = self.residual(y, x, self.fc_ratio_change)
        return x if before else self.final_layer_norm(x), weights
