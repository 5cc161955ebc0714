"""The translation model ``posenc_transformer`` and its architectures."""

import logging

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.models.transformer.transformer_legacy import (
    tiny_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from omegaconf import OmegaConf
from torch import nn

from fairseq_posenc import options
from fairseq_posenc.attention import admin
from fairseq_posenc.compat import portable_architecture
from fairseq_posenc.data.token_ratio import set_source_scale
from fairseq_posenc.guards import freezing, initial_checkpoint, source_bos
from fairseq_posenc.guards.configuration import build_from_configuration
from fairseq_posenc.models import translation_hub
from fairseq_posenc.models.transformer_decoder import PosencTransformerDecoder
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder

logger = logging.getLogger(__name__)


@register_model("posenc_transformer")
class PosencTransformerModel(initial_checkpoint.CheckedLoading, TransformerModel):
    """fairseq's Transformer with a choice of position encodings.

    With ``--position-encoding sinusoidal`` it exchanges checkpoints with stock ``transformer``.
    """

    @classmethod
    def from_pretrained(
        cls, model_name_or_path, checkpoint_file="model.pt", data_name_or_path=".", **options
    ):
        """Load a trained model, for ``translate`` and the rest of fairseq's hub interface.

        Sentences are tokenised and cut into subwords, and their translations joined and
        detokenised, as ``codes`` and ``tokeniser.json`` say, which are looked for beside the model
        and then in the data folder, where the recipes leave them.

        Args:
            model_name_or_path: folder of the checkpoint.
            checkpoint_file: its name; of an ensemble, several, separated by ``:``.
            data_name_or_path: folder of the binarised data, with the dictionaries; one that begins
                with a dot is looked for in the model's folder.
            options: others than those of the training, such as ``cpu=True``. ``bpe_codes`` is a
                file of merges; ``bpe=None`` takes sentences that are tokenised and cut already;
                ``bpe`` and ``tokenizer`` may also name one of fairseq's, with its options.

        Raises:
            UsageError: folder or checkpoint is missing, the model does not translate, or it takes
                subwords and nothing says how to make them.
        """
        return translation_hub.load(model_name_or_path, checkpoint_file, data_name_or_path, options)

    @staticmethod
    def add_args(parser):
        """Add fairseq's options, the ``--position-…`` ones and our others."""
        TransformerModel.add_args(parser)
        parser.add_argument(
            "--no-embedding-dropout",
            action="store_true",
            help="no dropout of the embeddings, as in OpenNMT-py where no positions are added",
        )
        parser.add_argument(
            "--embedding-initialization",
            choices=("normal", "xavier"),
            default="normal",
            help="how embeddings start: normal, of deviation 1 after scaling, as fairseq's, or "
            "xavier, Glorot's uniform one, much smaller, as in OpenNMT-py (default: normal)",
        )
        parser.add_argument(
            "--no-source-eos",
            action="store_true",
            help="the encoder does not see </s> at the end of sources, as in OpenNMT-py",
        )
        options.add_arguments(parser)
        freezing.add_arguments(parser)
        admin.add_arguments(parser)

    @classmethod
    def build_model(cls, args, task):
        """Build the model, and log and keep the signature of its encoding."""
        if OmegaConf.is_config(args):
            return build_from_configuration(cls, args, task)
        options.refuse_stock(args)
        initial = initial_checkpoint.inherit_options(args)
        train_only = freezing.choose(args, initial)
        source_bos.check_task(args, task)
        dictionaries = task.source_dictionary, task.target_dictionary
        initial_checkpoint.check_dictionaries(args, initial, *dictionaries)
        args.position_encoding = options.encoding_name(args)
        set_source_scale(args, task)
        args.position_signature = options.signature(args)
        initial_checkpoint.check_positions(initial, args.position_signature)
        if getattr(args, "admin_profile", None):
            args.admin_profile = admin.load_profile(args)
        model = super().build_model(args, task)
        model.initial_checkpoint, model.signature = initial, args.position_signature
        freezing.freeze_others(model, train_only)
        logger.info(args.position_signature)
        return model

    @classmethod
    def build_embedding(cls, cfg, dictionary, embed_dim, path=None):
        """Build the embeddings; those in the file ``path`` stay as they are."""
        embeddings = super().build_embedding(cfg, dictionary, embed_dim, path)
        if getattr(cfg, "embedding_initialization", "normal") == "xavier" and not path:
            nn.init.xavier_uniform_(embeddings.weight)
            nn.init.zeros_(embeddings.weight[dictionary.pad()])
        return embeddings

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        """Build the encoder."""
        return PosencTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """Build the decoder."""
        return PosencTransformerDecoder(
            cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention
        )


def _deep_architecture(args):
    """Eighteen layers on either side, for the deep models of CAPE's Table 2."""
    args.encoder_layers = getattr(args, "encoder_layers", 18)
    args.decoder_layers = getattr(args, "decoder_layers", 18)
    transformer_wmt_en_de(args)


for _name, _architecture in {
    "posenc_transformer": base_architecture,
    "posenc_transformer_tiny": tiny_architecture,
    "posenc_transformer_iwslt_de_en": transformer_iwslt_de_en,
    "posenc_transformer_wmt_en_de": transformer_wmt_en_de,
    "posenc_transformer_wmt_en_de_big": transformer_wmt_en_de_big,
    "posenc_transformer_wmt_en_de_18l": _deep_architecture,
}.items():
    register_model_architecture("posenc_transformer", _name)(portable_architecture(_architecture))
