"""Training steps of whole models, and passes through parts of them."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from types import SimpleNamespace
from typing import Callable

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerEncoder, TransformerModel, base_architecture
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc import options
from fairseq_posenc.encodings import segments
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.benchmark.setting import PADDING, STOCK, Setting
from fairseq_posenc.tools.benchmark.timing import Steps
from fairseq_posenc.tools.benchmark.weights import built, training_steps


def position_options(contestant: str) -> Namespace:
    """Parse an encoding with its options as written on a command line; `STOCK` has none."""
    parser = ArgumentParser(argument_default=SUPPRESS, add_help=False)
    options.add_arguments(parser)
    parser.add_argument("--position-segments", choices=segments.names())
    return parser.parse_args(
        [] if contestant == STOCK else ["--position-encoding", *contestant.split()]
    )


def build_model(contestant: str, setting: Setting, layers: int = 0) -> TransformerModel:
    """Build a translation model with random weights: ``STOCK``, or a position encoding's."""
    args = Namespace(share_all_embeddings=True, **vars(position_options(contestant)))
    args.dropout = args.attention_dropout = setting.dropout
    args.max_source_positions = args.max_target_positions = max(1024, setting.length)
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_embed_dim", setting.width)
        setattr(args, f"{side}_ffn_embed_dim", setting.ffn)
        setattr(args, f"{side}_layers", layers or setting.layers)
        setattr(args, f"{side}_attention_heads", setting.heads)
    vars(args).update(setting.model)
    base_architecture(args)
    dictionary = Dictionary()
    for index in range(setting.types - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(1)
    architecture = TransformerModel if contestant == STOCK else PosencTransformerModel
    return setting.cast(architecture.build_model(args, task))


def _passes(module: nn.Module, forward: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a forward and a backward pass; its gradients are gone when it ends."""
    with torch.no_grad():
        gradient = torch.randn_like(forward())

    def step() -> None:
        forward().backward(gradient)
        module.zero_grad(set_to_none=True)

    return step


def prepare_encoder(setting: Setting, layers: int = 0) -> Steps:
    """Forward and backward pass of embeddings and encoder, of so many layers or all."""
    tokens = setting.draw_tokens()

    def contestant(encoder: TransformerEncoder) -> Callable[[], None]:
        return _passes(encoder, lambda: encoder(tokens)["encoder_out"][0])

    models = built(setting, lambda name: build_model(name, setting, layers).encoder)
    return {name: contestant(encoder) for name, encoder in models.items()}


def prepare_layer(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and one encoder layer."""
    return prepare_encoder(setting, layers=1)


def prepare_decoder(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and decoder, without the scores of words.

    The decoder attends to states of its encoder, as long as its own input, that are not trained.
    """
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def contestant(model: TransformerModel) -> Callable[[], None]:
        with torch.no_grad():
            encoded = model.encoder(source)
        decode = model.decoder
        return _passes(decode, lambda: decode(target, encoder_out=encoded, features_only=True)[0])

    models = built(setting, lambda name: build_model(name, setting))
    return {name: contestant(model) for name, model in models.items()}


def prepare_training(setting: Setting) -> Steps:
    """Training steps of translation models; sources are padded on the left, as fairseq does."""
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def loss(model: nn.Module) -> Tensor:
        logits = model(source, None, target)[0].flatten(0, 1).float()
        return F.cross_entropy(logits, target.flatten(), ignore_index=PADDING)

    return training_steps(setting, built(setting, lambda name: build_model(name, setting)), loss)
