"""fairseq's RoBERTa encoder with a position encoding and segments of ours."""

from dataclasses import replace
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.models.roberta.model import RobertaEncoder
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from torch import Tensor

from fairseq_posenc.encodings import Positions, StackConfig, Terms
from fairseq_posenc.encodings.segments import SEGMENT_MODULES
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder

INITIAL_STD = 0.02


class SentenceEncoder(PosencTransformerEncoder):
    """Layers of ``--arch posenc_bert``; ``segments`` is one of :data:`SEGMENT_MODULES`."""

    def __init__(self, cfg: TransformerConfig, dictionary, embed_tokens, segments: str):
        super().__init__(cfg, dictionary, embed_tokens)
        self.segments = SEGMENT_MODULES[segments](self.stack(cfg))

    def stack(self, cfg: TransformerConfig) -> StackConfig:
        """Return the sizes of this encoder, for encoding and segments."""
        return replace(
            super().stack(cfg), has_cls=True, table_std=INITIAL_STD, token_std=INITIAL_STD
        )

    def terms(self, positions: Positions) -> Terms:
        """Return the terms of positions and segments; without numbers all are of segment 0."""
        numbers = positions.segments  # (batch, length)
        if numbers is None:
            numbers = torch.zeros_like(positions.numbers, dtype=torch.long)
        return self.segments(super().terms(positions), numbers)


class PosencBertEncoder(RobertaEncoder):
    """Encoder and language-model head of ``--arch posenc_bert``."""

    def build_encoder(self, args, dictionary, embed_tokens) -> SentenceEncoder:
        """Build the layers, drawn as BERT's."""
        cfg = TransformerConfig.from_namespace(args)
        encoder = SentenceEncoder(cfg, dictionary, embed_tokens, args.position_segments)
        encoder.apply(init_bert_params)
        return encoder

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        masked_tokens: Optional[Tensor] = None,
        segments: Optional[Tensor] = None,
        **unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return fairseq's output: scores of words, or hidden states ``(batch, length, channels)``.

        Arguments are those of fairseq's encoder, besides ``segments`` ``(batch, length)`` long, the
        segment of each token; all 0 by default.
        """
        encoded = self.sentence_encoder(
            src_tokens, return_all_hiddens=return_all_hiddens, segments=segments
        )
        # (length, batch, channels) → (batch, length, channels)
        x = encoded["encoder_out"][0].transpose(0, 1)
        # scores of words: (batch, length, types), or (masked tokens, types) if they are given
        if not features_only:
            x = self.output_layer(x, masked_tokens=masked_tokens)
        return x, {"inner_states": encoded["encoder_states"] if return_all_hiddens else None}
