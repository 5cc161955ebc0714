"""The language model ``posenc_transformer_lm`` and its architectures."""

import logging

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer_lm import (
    TransformerLanguageModel,
    TransformerLanguageModelConfig,
    base_lm_architecture,
    transformer_lm_baevski_wiki103,
    transformer_lm_gpt,
)
from omegaconf import OmegaConf

from fairseq_posenc import options
from fairseq_posenc.compat import portable_architecture
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import freezing, initial_checkpoint
from fairseq_posenc.guards.configuration import build_from_configuration
from fairseq_posenc.models.transformer_decoder import PosencTransformerDecoder

logger = logging.getLogger(__name__)


@register_model("posenc_transformer_lm")
class PosencTransformerLanguageModel(initial_checkpoint.CheckedLoading, TransformerLanguageModel):
    """fairseq's Transformer language model with a choice of position encodings.

    It is for fairseq's task ``language_modeling``. With ``--position-encoding sinusoidal`` or
    ``learned`` it exchanges checkpoints with stock ``transformer_lm``.
    """

    @classmethod
    def add_args(cls, parser):
        """Add fairseq's options and the ``--position-…`` ones."""
        gen_parser_from_dataclass(parser, TransformerLanguageModelConfig(), delete_default=True)
        options.add_arguments(parser)
        freezing.add_arguments(parser)

    @classmethod
    def build_model(cls, args, task):
        """Build the model, and log and keep the signature of its encoding."""
        if OmegaConf.is_config(args):
            return build_from_configuration(cls, args, task)
        options.refuse_stock(args)
        if getattr(args, "position_source_scale", None) not in (None, 1):
            raise UsageError("--position-source-scale: a language model has no source")
        if getattr(args, "add_bos_token", False) and args.max_target_positions is None:
            # <s> comes on top of what the task cuts
            args.max_target_positions = args.tokens_per_sample + 1
        initial = initial_checkpoint.inherit_options(args)
        train_only = freezing.choose(args, initial)
        dictionaries = task.source_dictionary, task.target_dictionary
        initial_checkpoint.check_dictionaries(args, initial, *dictionaries)
        args.position_encoding = options.encoding_name(args)
        args.position_signature = options.signature(args)
        initial_checkpoint.check_positions(initial, args.position_signature)
        # fairseq makes the embeddings of each kind (adaptive, of characters); its decoder is left
        embed_tokens = super().build_model(args, task).decoder.embed_tokens
        model = cls(
            PosencTransformerDecoder(
                TransformerConfig.from_namespace(args),
                task.target_dictionary,
                embed_tokens,
                no_encoder_attn=True,
            )
        )
        model.initial_checkpoint, model.signature = initial, args.position_signature
        freezing.freeze_others(model, train_only)
        logger.info(args.position_signature)
        return model


def _post_norm_architecture(args):
    """Options of fairseq's ``--arch transformer_lm``: post-norm, embeddings of 512 channels.

    Its other architectures, such as ``transformer_lm_gpt``, have LayerNorms before sub-layers.
    """
    before = getattr(args, "decoder_normalize_before", False)
    args.decoder_input_dim = getattr(args, "decoder_input_dim", 512)
    args.decoder_output_dim = getattr(args, "decoder_output_dim", 512)
    base_lm_architecture(args)
    args.decoder_normalize_before = before


def _architecture_of(layers: int, channels: int, ffn_channels: int, heads: int):
    def architecture(args):
        """Set the options that are not set yet."""
        args.decoder_layers = getattr(args, "decoder_layers", layers)
        args.decoder_embed_dim = getattr(args, "decoder_embed_dim", channels)
        args.decoder_ffn_embed_dim = getattr(args, "decoder_ffn_embed_dim", ffn_channels)
        args.decoder_attention_heads = getattr(args, "decoder_attention_heads", heads)
        base_lm_architecture(args)

    return architecture


for _name, _architecture in {
    "posenc_transformer_lm": base_lm_architecture,
    "posenc_transformer_lm_post_norm": _post_norm_architecture,
    "posenc_transformer_lm_tiny": _architecture_of(2, 64, 128, 2),  # to try things
    "posenc_transformer_lm_small": _architecture_of(4, 256, 1024, 4),  # an hour on a CPU
    "posenc_transformer_lm_wiki": transformer_lm_baevski_wiki103,
    "posenc_transformer_lm_gpt": transformer_lm_gpt,
}.items():
    register_model_architecture("posenc_transformer_lm", _name)(
        portable_architecture(_architecture)
    )
