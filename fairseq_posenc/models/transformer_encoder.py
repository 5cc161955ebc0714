"""fairseq's Transformer encoder with a position encoding of ours."""

from typing import Any, Dict, List, Optional

import torch
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_posenc import options
from fairseq_posenc.attention import admin
from fairseq_posenc.attention.layers import (
    EncoderLayer,
    as_arguments,
    layers_after_layerdrop,
    wrapped,
)
from fairseq_posenc.encodings import Positions, StackConfig, Terms
from fairseq_posenc.models.padding import find_padding, left_padding, roll_rows, without_eos


class PosencTransformerEncoder(TransformerEncoderBase):
    """Encoder of ``--arch posenc_transformer``; parameter names and arguments are fairseq's.

    The configuration carries the options of the encoding as ``position_…``.
    """

    def __init__(self, cfg: TransformerConfig, dictionary, embed_tokens):
        # fairseq's constructor calls build_encoder_layer once per layer, from the first on
        self.omegas = iter(admin.omegas_by_layer(cfg, "encoder"))
        super().__init__(cfg, dictionary, embed_tokens)
        self.embed_positions = options.build(cfg, self.stack(cfg))
        if getattr(cfg, "no_embedding_dropout", False):
            self.dropout_module.p = 0.0
        self.hidden_eos = dictionary.eos() if getattr(cfg, "no_source_eos", False) else None

    def stack(self, cfg: TransformerConfig) -> StackConfig:
        """Return the sizes of this encoder, for the encoding."""
        return options.stack(
            channels=cfg.encoder.embed_dim,
            max_length=cfg.max_source_positions,
            first_index=self.padding_idx + 1,
            layers=cfg.encoder.layers,
            heads=cfg.encoder.attention_heads,
        )

    def terms(self, positions: Positions) -> Terms:
        """Return the terms for the embeddings and the layers."""
        return self.embed_positions(positions)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
        segments: Optional[Tensor] = None,
    ) -> Dict[str, Any]:
        """Encode ``(batch, length)`` tokens, with the numbers of their segments if there are any.

        Returns:
            fairseq's dictionary, and what the decoder gets besides, see below.
        """
        src_tokens = without_eos(src_tokens, self.hidden_eos, self.padding_idx)
        padded, left = find_padding(src_tokens, self.padding_idx)
        padding = None
        if left and self.embed_positions.by_index:
            # Tables by index need the first token in column 0: padding moves to the right, and
            # back at the end.
            padding = left_padding(src_tokens, self.padding_idx)  # (batch,)
            src_tokens, token_embeddings, segments = (
                roll_rows(x, -padding) for x in (src_tokens, token_embeddings, segments)
            )
        # tokens → positions → terms
        positions = Positions.of_tokens(src_tokens, self.padding_idx, padded, segments=segments)
        terms = self.terms(positions)
        mask = positions.padding_mask  # (batch, length), or None without padding
        # terms.input is added to the embeddings; x: (batch, length, channels)
        x, embedding = self.embed(src_tokens, token_embeddings, terms.input)
        if mask is not None:
            x = x.masked_fill(mask.unsqueeze(-1), 0)

        # terms.attention goes into the layers; states: each (length, batch, channels)
        states = self._states(x.transpose(0, 1), mask, terms)
        x = states[-1] if self.layer_norm is None else self.layer_norm(states[-1])
        if mask is None:
            mask = torch.zeros_like(src_tokens, dtype=torch.bool)
        states = states if return_all_hiddens else []

        if padding is not None:
            mask, embedding = roll_rows(mask, padding), roll_rows(embedding, padding)
            x, *states = (
                roll_rows(y.transpose(0, 1), padding).transpose(0, 1) for y in [x, *states]
            )
        return {
            # fairseq's
            "encoder_out": [x],
            "encoder_padding_mask": [mask],
            "encoder_embedding": [embedding],
            "encoder_states": states,
            "src_tokens": [],
            "src_lengths": [(~mask).sum(dim=1, keepdim=True).int()],
            # ours, which reorder_encoder_out keeps: what the decoder's encoding must share, such as
            # CAPE's shift and scale, each (batch, 1)
            "position_shared": terms.shared,
            # (batch,): equal numbers where the sentence is the same, as for the beam's hypotheses
            "sentences": [torch.arange(len(mask), device=mask.device)],
            # whether there is padding; without it attention needs no mask
            "padded": padded,
        }

    def _states(self, x: Tensor, mask: Optional[Tensor], terms: Terms) -> List[Tensor]:
        """Return ``(length, batch, channels)`` before the first layer and after each."""
        states = [x]
        for number, layer in enumerate(layers_after_layerdrop(self.layers)):
            if layer is not None:
                arguments = as_arguments(terms.attention.get(number))
                x = layer(x, encoder_padding_mask=mask, **arguments)
            if number in terms.after_layer:
                x = terms.after_layer[number](x)
            states.append(x)
        return states

    def build_encoder_layer(self, cfg) -> nn.Module:
        """Build a layer whose self-attention takes position terms."""
        return wrapped(EncoderLayer(cfg, next(self.omegas)), cfg)

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

    def reorder_encoder_out(self, encoder_out: Dict[str, Any], new_order: Tensor):
        """Reorder along the batch, as the beam search asks for.

        A beam search mostly moves hypotheses of one sentence, whose sources are the same. On a GPU
        it costs more to look than to reorder.
        """
        sentences = encoder_out["sentences"][0]
        reordered_sentences = sentences.index_select(0, new_order)
        if not sentences.is_cuda and torch.equal(reordered_sentences, sentences):
            return encoder_out
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        shared = encoder_out["position_shared"]
        reordered["position_shared"] = [tensor.index_select(0, new_order) for tensor in shared]
        reordered["sentences"] = [reordered_sentences]
        reordered["padded"] = encoder_out["padded"]
        return reordered

    def max_positions(self) -> int:
        """Return the longest sequence that can be encoded; the task holds the user's limit."""
        return self.embed_positions.max_positions
