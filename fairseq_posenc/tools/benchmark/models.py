"""Models with random weights, each with its own, or all with one set of them."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from types import SimpleNamespace
from typing import Callable, Dict

import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import model as roberta
from fairseq.models.transformer import TransformerModel, base_architecture
from torch import nn
from tqdm import tqdm

from fairseq_posenc import options
from fairseq_posenc.encodings import segments
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.benchmark.settings import STOCK, Setting

Models = Dict[str, nn.Module]


def position_options(contestant: str) -> Namespace:
    """Parse an encoding with its options as written on a command line; `STOCK` has none."""
    parser = ArgumentParser(argument_default=SUPPRESS, add_help=False)
    options.add_arguments(parser)
    parser.add_argument("--position-segments", choices=list(segments.KINDS))
    return parser.parse_args(
        [] if contestant == STOCK else ["--position-encoding", *contestant.split()]
    )


def build_transformer(contestant: str, setting: Setting) -> TransformerModel:
    """Build a translation model: ``STOCK``, or one with a position encoding."""
    args = Namespace(share_all_embeddings=True, **vars(position_options(contestant)))
    args.dropout = args.attention_dropout = setting.dropout
    args.max_source_positions = args.max_target_positions = max(1024, setting.length)
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_embed_dim", setting.sizes.width)
        setattr(args, f"{side}_ffn_embed_dim", setting.sizes.ffn)
        setattr(args, f"{side}_layers", setting.sizes.layers)
        setattr(args, f"{side}_attention_heads", setting.sizes.heads)
    vars(args).update(setting.model)
    base_architecture(args)
    torch.manual_seed(1)
    architecture = TransformerModel if contestant == STOCK else PosencTransformerModel
    return setting.cast(architecture.build_model(args, _task(setting)))


def build_bert(contestant: str, setting: Setting) -> nn.Module:
    """Build a masked language model: fairseq's RoBERTa for ``STOCK``, or ours."""
    args = Namespace(
        encoder_layers=setting.sizes.layers,
        encoder_embed_dim=setting.sizes.width,
        encoder_ffn_embed_dim=setting.sizes.ffn,
        encoder_attention_heads=setting.sizes.heads,
        max_positions=max(512, setting.length),
        dropout=setting.dropout,
        attention_dropout=setting.dropout,
        **vars(position_options(contestant)),
    )
    vars(args).update(setting.model)
    torch.manual_seed(1)
    if contestant == STOCK:
        roberta.base_architecture(args)
        return setting.cast(roberta.RobertaModel.build_model(args, _task(setting)))
    return setting.cast(PosencBertModel.build_model(args, _task(setting)))


def build_all(setting: Setting, build: Callable[[str, Setting], nn.Module]) -> Models:
    """Build the model of every contestant, stock fairseq's first.

    If the setting's weights are shared, every model uses the parameters of the first wherever names
    and shapes are equal, and has but those of its positions for itself.
    """
    models: Models = {}
    for name in tqdm([STOCK, *setting.contestants], "building", mininterval=1, leave=False):
        models[name] = build(name, setting)
        if setting.shared:
            _use_parameters(models[name], models[STOCK])
    return models


def _use_parameters(model: nn.Module, owner: nn.Module) -> None:
    """Make a model use the parameters of another wherever names and shapes are equal."""
    owned = dict(owner.named_parameters(remove_duplicate=False))
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        if name in owned and owned[name].shape == parameter.shape:
            prefix, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(prefix), attribute, owned[name])


def _task(setting: Setting) -> SimpleNamespace:
    """Return what a model wants from a task: dictionaries of the setting's number of types."""
    dictionary = Dictionary()
    for index in range(setting.sizes.types - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
