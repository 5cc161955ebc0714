"""The masked language model ``posenc_bert`` and its architectures."""

import logging
from typing import Any, Optional

from fairseq.models import register_model, register_model_architecture
from fairseq.models.roberta.model import RobertaModel, base_architecture
from omegaconf import OmegaConf
from torch import Tensor, nn

from fairseq_posenc import options
from fairseq_posenc.compat import portable_architecture
from fairseq_posenc.data.token_ratio import set_source_scale
from fairseq_posenc.encodings import segments
from fairseq_posenc.guards import freezing, initial_checkpoint, signatures
from fairseq_posenc.guards.configuration import build_from_configuration
from fairseq_posenc.guards.segments import check_task as check_segments
from fairseq_posenc.models.bert_encoder import PosencBertEncoder
from fairseq_posenc.models.bert_hub import BertHub

logger = logging.getLogger(__name__)


class SpanHead(nn.Module):
    """Scores of every token as the first and as the last of an answer (Devlin et al. 2019, 4.2).

    Args:
        channels: width of the hidden states.
        dropout: on the hidden states.
    """

    def __init__(self, channels: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(channels, 2)

    def forward(self, features: Tensor) -> Tensor:
        """Return ``(batch, length, 2)`` scores for ``(batch, length, channels)`` hidden states."""
        return self.out_proj(self.dropout(features))


@register_model("posenc_bert")
class PosencBertModel(initial_checkpoint.CheckedLoading, RobertaModel):
    """BERT (post-norm, GELU, tied embeddings) with a choice of position encodings and segments.

    With ``--position-encoding learned`` and no segments it exchanges checkpoints with stock
    ``roberta``. A checkpoint without segments gets segments of weight zero, which change nothing
    before they are trained.
    """

    train_only: Optional[str] = None  # see --train-only

    def __init__(self, args, encoder):
        super().__init__(args, encoder)
        self.span_heads = nn.ModuleDict()

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str,
        checkpoint_file: str = "model.pt",
        data_name_or_path: str = ".",
        **overrides: Any,
    ) -> BertHub:
        """Load a trained model, for use in Python.

        Args:
            model_name_or_path: folder of the checkpoint.
            checkpoint_file: its name.
            data_name_or_path: folder of the training's data, or of others with the same subwords;
                one that begins with a dot is looked for in the checkpoint's.
            **overrides: further options of the model or the task.

        Raises:
            UsageError: the checkpoint is missing, damaged or not of a BERT model, or its data are.
        """
        return BertHub.load(model_name_or_path, checkpoint_file, data_name_or_path, overrides)

    @staticmethod
    def add_args(parser):
        """Add fairseq's options of RoBERTa, the ``--position-…`` ones and ``--train-only``."""
        RobertaModel.add_args(parser)
        options.add_arguments(parser)
        freezing.add_arguments(parser)
        parser.add_argument(
            "--position-segments",
            choices=list(segments.SEGMENT_MODULES),
            help="how the model learns which text a token is of: not at all, by a vector at the "
            "input (BERT), or by scalars per head and layer (REL-SCALAR) (default: none)",
        )
        parser.add_argument(
            "--layer-norm-eps",
            type=float,
            metavar="E",
            help="added to variances in LayerNorms; 1e-12 in Devlin et al.'s BERT (default: 1e-5)",
        )

    @classmethod
    def build_model(cls, args, task):
        """Build the model, and log and keep the signature of its encoding."""
        if OmegaConf.is_config(args):
            return build_from_configuration(cls, args, task)
        if signatures.name_older_defaults(vars(args)):
            logger.warning(
                "conditional positions convolve [CLS] in this model, as when it was trained; the "
                "paper's class token passes by, as it does in new models"
            )
        initial = initial_checkpoint.inherit_options(args, "segments")
        train_only = freezing.choose(args, initial)
        initial_checkpoint.check_dictionaries(args, initial, task.source_dictionary)
        args.position_encoding = options.encoding_name(args)
        set_source_scale(args, task)
        args.position_segments = getattr(args, "position_segments", None) or "none"
        check_segments(args, task)
        args.position_signature = options.signature(args, segments=args.position_segments)
        initial_checkpoint.check_positions(initial, args.position_signature)
        base_architecture(args)
        args.max_positions = (
            getattr(args, "max_positions", None)
            or task.max_positions()
            or args.tokens_per_sample  # the masked_lm task of fairseq 0.12.2 has no max_positions
        )
        args.max_source_positions = args.max_positions
        model = cls(args, PosencBertEncoder(args, task.source_dictionary))
        for module in model.modules():
            if getattr(args, "layer_norm_eps", None) and isinstance(module, nn.LayerNorm):
                module.eps = args.layer_norm_eps
        model.initial_checkpoint, model.signature = initial, args.position_signature
        model.train_only = train_only
        if not hasattr(task, "add_head"):
            freezing.freeze_others(model, train_only)  # else its head may be trained
        logger.info(args.position_signature)
        return model

    def register_classification_head(self, *args, **kwargs) -> None:
        """Add fairseq's head that classifies sentences."""
        super().register_classification_head(*args, **kwargs)
        freezing.freeze_others(self, self.train_only)

    def register_span_head(self, name: str) -> None:
        """Add a head that scores tokens as the start and the end of an answer."""
        self.span_heads[name] = SpanHead(self.args.encoder_embed_dim, self.args.pooler_dropout)
        freezing.freeze_others(self, self.train_only)

    def forward(self, src_tokens, span_head_name: Optional[str] = None, **kwargs: Any):
        """Return fairseq's output, or that of a span head: ``(batch, length, 2)``.

        ``kwargs`` are ``segments`` ``(batch, length)`` and fairseq's own arguments.
        """
        if span_head_name is None:
            return super().forward(src_tokens, **kwargs)
        features, extra = super().forward(src_tokens, features_only=True, **kwargs)
        return self.span_heads[span_head_name](features), extra

    def upgrade_state_dict_named(self, state_dict, name: str):
        """Accept the checkpoints of stock models, without segments, and with other heads."""
        prefix = f"{name}." if name else ""
        super().upgrade_state_dict_named(state_dict, name)
        segments_name = f"{prefix}encoder.sentence_encoder.segments."
        own = self.encoder.sentence_encoder.segments
        added = initial_checkpoint.add_missing_weights(state_dict, own, segments_name, zeros=True)
        if added:
            logger.info("not in the checkpoint, start at zero: %s", ", ".join(added))
        initial_checkpoint.add_missing_weights(state_dict, self.span_heads, f"{prefix}span_heads.")
        for key in [key for key in state_dict if key.startswith(f"{prefix}span_heads.")]:
            if key[len(prefix) :].split(".")[1] not in self.span_heads:
                del state_dict[key]


def _architecture(layers: int, channels: int, heads: int):
    def architecture(args):
        """Set the options that are not set yet."""
        args.encoder_layers = getattr(args, "encoder_layers", layers)
        args.encoder_embed_dim = getattr(args, "encoder_embed_dim", channels)
        args.encoder_ffn_embed_dim = getattr(args, "encoder_ffn_embed_dim", 4 * channels)
        args.encoder_attention_heads = getattr(args, "encoder_attention_heads", heads)
        base_architecture(args)

    return architecture


for _name, _shape in {
    "posenc_bert": (12, 768, 12),
    "posenc_bert_tiny": (2, 128, 2),
    "posenc_bert_small": (4, 512, 8),
    "posenc_bert_base": (12, 768, 12),
    "posenc_bert_large": (24, 1024, 16),
}.items():
    register_model_architecture("posenc_bert", _name)(portable_architecture(_architecture(*_shape)))
