"""fairseq's Transformer decoder with a position encoding of ours."""

from typing import Any, Dict, List, Optional

from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from torch import Tensor

from fairseq_posenc import options
from fairseq_posenc.encodings import Positions, Stack, Terms
from fairseq_posenc.models.state import drop_stock_position_buffers


class PosencTransformerDecoder(TransformerDecoderBase):
    """Decoder of ``--arch posenc_transformer``; parameter names are those of fairseq.

    Args:
        cfg: configuration, which carries the options of the encoding as ``position_…``.
        dictionary: target dictionary.
        embed_tokens: target embeddings.
        no_encoder_attn: leave out the attention to the encoder.
    """

    def __init__(
        self, cfg: TransformerConfig, dictionary, embed_tokens, no_encoder_attn: bool = False
    ):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=no_encoder_attn)
        stack = Stack(
            channels=self.embed_dim,
            decoder=True,
            max_length=cfg.max_target_positions,
            first_index=self.padding_idx + 1,
        )
        self.embed_positions = options.build(cfg, stack)

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Dict[str, List[Tensor]]],
        incremental_state: Optional[Dict[str, Dict[str, Any]]] = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ):
        """Return features ``(batch, length, channels)`` and fairseq's dictionary of extras.

        With ``incremental_state``, the tokens are the prefix so far and the features those of the
        newest token.
        """
        encoder_out = encoder_out or {}
        positions = Positions.of_tokens(
            prev_output_tokens,
            self.padding_idx,
            shared=encoder_out.get("position_shared", []),
            cache=incremental_state,
        )
        terms: Terms = self.embed_positions(positions)
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
        mask = positions.padding_mask
        if self.cross_self_attention and mask is None:
            mask = prev_output_tokens.eq(self.padding_idx)
        if alignment_layer is None:
            alignment_layer = self.num_layers - 1

        x = self.embed(prev_output_tokens, terms.input).transpose(0, 1)
        causal = incremental_state is None and not full_context_alignment
        future = self.buffered_future_mask(x) if causal else None
        attention: Optional[Tensor] = None
        states = [x]
        for index, layer in enumerate(self.layers):
            x, weights, _ = layer(
                x,
                _first(encoder_out, "encoder_out"),
                _first(encoder_out, "encoder_padding_mask"),
                incremental_state,
                self_attn_mask=future,
                self_attn_padding_mask=mask,
                need_attn=index == alignment_layer,
                need_head_weights=index == alignment_layer,
            )
            if index in terms.after_layer:
                x = terms.after_layer[index](x)
            states.append(x)
            if weights is not None and index == alignment_layer:
                attention = weights.float().to(x)[:alignment_heads].mean(dim=0)

        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.transpose(0, 1)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x, {"attn": [attention], "inner_states": states}

    def embed(self, tokens: Tensor, position: Optional[Tensor]) -> Tensor:
        """Return the input of the first layer ``(batch, length, channels)``."""
        x = self.embed_scale * self.embed_tokens(tokens)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if position is not None:
            x = x + position.type_as(x)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)

    def max_positions(self) -> int:
        """Return the longest sequence that can be decoded; the task holds the user's limit."""
        return self.embed_positions.max_positions

    def upgrade_state_dict_named(self, state_dict, name: str):
        """Accept the checkpoints of stock models, too."""
        drop_stock_position_buffers(state_dict, f"{name}.embed_positions")
        return super().upgrade_state_dict_named(state_dict, name)


def _first(encoder_out: Dict[str, List[Tensor]], key: str) -> Optional[Tensor]:
    values = encoder_out.get(key, [])
    return values[0] if values else None
