"""fairseq's Transformer encoder with a position encoding of ours."""

from typing import Dict, List, Optional

from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from torch import Tensor

from fairseq_posenc import compat, options
from fairseq_posenc.encodings import Positions, Stack, Terms
from fairseq_posenc.models.state import drop_stock_position_buffers


class PosencTransformerEncoder(TransformerEncoderBase):
    """Encoder of ``--arch posenc_transformer``; parameter names are those of fairseq.

    Args:
        cfg: configuration, which carries the options of the encoding as ``position_…``.
        dictionary: source dictionary.
        embed_tokens: source embeddings.
    """

    def __init__(self, cfg: TransformerConfig, dictionary, embed_tokens):
        super().__init__(cfg, dictionary, embed_tokens)
        stack = Stack(
            channels=embed_tokens.embedding_dim,
            max_length=cfg.max_source_positions,
            first_index=self.padding_idx + 1,
        )
        self.embed_positions = options.build(cfg, stack)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
    ) -> Dict[str, List[Tensor]]:
        """Encode ``(batch, length)`` tokens.

        Returns:
            fairseq's dictionary, and ``position_shared``: what the decoder's encoding must share.
        """
        positions = Positions.of_tokens(src_tokens, self.padding_idx)
        terms: Terms = self.embed_positions(positions)
        mask = positions.padding_mask
        x, embedding = self.embed(src_tokens, token_embeddings, terms.input)
        if mask is not None:
            x = x * (~mask).unsqueeze(-1).type_as(x)
        x = x.transpose(0, 1)
        states = [x]
        for index, layer in enumerate(self.layers):
            x = layer(x, encoder_padding_mask=mask)
            if index in terms.after_layer:
                x = terms.after_layer[index](x)
            states.append(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        real = src_tokens.ne(self.padding_idx)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [~real],
            "encoder_embedding": [embedding],
            "encoder_states": states if return_all_hiddens else [],
            "src_tokens": [],
            "src_lengths": [real.sum(dim=1, keepdim=True).int()],
            "position_shared": terms.shared,
        }

    def build_encoder_layer(self, cfg):
        """Build a layer of fairseq's."""
        return compat.without_fused_path(super().build_encoder_layer(cfg))

    def embed(self, tokens: Tensor, embedded: Optional[Tensor], position: Optional[Tensor]):
        """Return the input of the first layer, and the scaled embeddings alone."""
        if embedded is None:
            embedded = self.embed_tokens(tokens)
        x = embedding = self.embed_scale * embedded
        if position is not None:
            x = embedding + position.type_as(embedding)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        return x, embedding

    def reorder_encoder_out(self, encoder_out: Dict[str, List[Tensor]], new_order: Tensor):
        """Reorder along the batch, as the beam search asks for."""
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        shared = encoder_out["position_shared"]
        reordered["position_shared"] = [tensor.index_select(0, new_order) for tensor in shared]
        return reordered

    def max_positions(self) -> int:
        """Return the longest sequence that can be encoded; the task holds the user's limit."""
        return self.embed_positions.max_positions

    def upgrade_state_dict_named(self, state_dict, name: str):
        """Accept the checkpoints of stock models, too."""
        drop_stock_position_buffers(state_dict, f"{name}.embed_positions")
        return super().upgrade_state_dict_named(state_dict, name)
