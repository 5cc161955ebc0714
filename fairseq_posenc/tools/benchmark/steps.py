"""Steps of whole models and of parts of them: training, forward and backward passes, generation.

Each function of a subject takes a setting and returns one step per contestant, stock fairseq among
them. Models have random weights, each its own, or all one set of them.
"""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Callable, Dict

import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import model as roberta
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from fairseq_posenc import options
from fairseq_posenc.encodings import segments
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.benchmark.settings import PADDING, STOCK, Setting, Step, Steps

BEAM = 4
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
    args = _model_options(contestant, setting)
    args.share_all_embeddings = True
    args.max_source_positions = args.max_target_positions = max(1024, setting.length)
    base_architecture(args)
    return _build(
        TransformerModel if contestant == STOCK else PosencTransformerModel, args, setting
    )


def build_bert(contestant: str, setting: Setting) -> nn.Module:
    """Build a masked language model: fairseq's RoBERTa for ``STOCK``, or ours."""
    args = _model_options(contestant, setting)
    args.max_positions = max(512, setting.length)
    if contestant == STOCK:
        roberta.base_architecture(args)
    return _build(roberta.RobertaModel if contestant == STOCK else PosencBertModel, args, setting)


def _model_options(contestant: str, setting: Setting) -> Namespace:
    args = position_options(contestant)
    args.dropout = args.attention_dropout = setting.dropout
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_embed_dim", setting.sizes.width)
        setattr(args, f"{side}_ffn_embed_dim", setting.sizes.ffn)
        setattr(args, f"{side}_layers", setting.sizes.layers)
        setattr(args, f"{side}_attention_heads", setting.sizes.heads)
    vars(args).update(setting.model)
    return args


def _build(architecture: Any, args: Namespace, setting: Setting) -> Any:
    """Build a model with random weights, for dictionaries of the setting's number of types."""
    dictionary = Dictionary()
    for index in range(setting.sizes.types - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(1)
    return setting.cast(architecture.build_model(args, task))


def build_all(setting: Setting, build: Callable[[str, Setting], nn.Module]) -> Models:
    """Build the model of every contestant, stock fairseq's first.

    If the setting's weights are shared, every model uses the parameters of the first wherever names
    and shapes are equal, and has but those of its positions for itself.
    """
    models: Models = {}
    for name in tqdm([STOCK, *setting.contestants], "building", mininterval=1, leave=False):
        models[name] = build(name, setting)
        if setting.shared:
            _share(models[STOCK], models[name])
    return models


def _share(owner: nn.Module, model: nn.Module) -> None:
    """Replace a model's parameters by the owner's of equal name and shape."""
    owned = dict(owner.named_parameters(remove_duplicate=False))
    for place, parameter in list(model.named_parameters(remove_duplicate=False)):
        if place in owned and owned[place].shape == parameter.shape:
            module, _, attribute = place.rpartition(".")
            setattr(model.get_submodule(module), attribute, owned[place])


def _steps(
    setting: Setting, build: Callable[[str, Setting], nn.Module], step: Callable[[Any], Step]
) -> Steps:
    return {name: step(model) for name, model in build_all(setting, build).items()}


def encoder(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and encoder."""
    tokens = setting.draw_tokens()

    def step(model: TransformerModel) -> Step:
        encoder = model.encoder
        return _forward_and_backward(encoder, lambda: encoder(tokens)["encoder_out"][0])

    return _steps(setting, build_transformer, step)


def layer(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and one encoder layer."""
    one_layer = {**setting.model, "encoder_layers": 1, "decoder_layers": 1}
    return encoder(replace(setting, model=one_layer))


def decoder(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and decoder, without the scores of words.

    The decoder attends to states of its encoder, as long as its own input, that are not trained.
    """
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def step(model: TransformerModel) -> Step:
        with torch.no_grad():
            encoded = model.encoder(source)
        decode = model.decoder
        return _forward_and_backward(
            decode, lambda: decode(target, encoder_out=encoded, features_only=True)[0]
        )

    return _steps(setting, build_transformer, step)


def training(setting: Setting) -> Steps:
    """Training steps of translation models; sources are padded on the left, as fairseq does."""
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def loss(model: nn.Module) -> Tensor:
        logits = model(source, None, target)[0].flatten(0, 1).float()
        return F.cross_entropy(logits, target.flatten(), ignore_index=PADDING)

    return training_steps(setting, build_all(setting, build_transformer), loss)


def bert_training(setting: Setting) -> Steps:
    """Training steps of masked language models: 15 % of the tokens are predicted.

    The second half of every row is segment 1, which only models with segments look at.
    """
    tokens = setting.draw_tokens()
    segments = _second_half(tokens)
    chosen = torch.rand(tokens.shape, device=tokens.device) < 0.15
    chosen[0, 0] = True

    def loss(model: nn.Module) -> Tensor:
        logits = model(tokens, segments=segments, masked_tokens=chosen)[0].float()
        return F.cross_entropy(logits, tokens[chosen])

    return training_steps(setting, build_all(setting, build_bert), loss)


def bert_inference(setting: Setting) -> Steps:
    """Forward pass to the hidden states, without scores of words; the second half is segment 1."""
    tokens = setting.draw_tokens()
    segments = _second_half(tokens)

    def step(model: nn.Module) -> Step:
        model.eval()
        return torch.no_grad()(lambda: model(tokens, segments=segments, features_only=True))

    return _steps(setting, build_bert, step)


def generation(setting: Setting) -> Steps:
    """Beam search for a batch of sources, all hypotheses of the sources' length."""
    source = setting.draw_tokens(left=True)
    sample = {
        "net_input": {"src_tokens": source, "src_lengths": source.ne(PADDING).sum(dim=1)},
        "ntokens": source.numel(),
    }

    def step(model: TransformerModel) -> Step:
        model.eval()
        generator = SequenceGenerator(
            [model],
            model.decoder.dictionary,
            beam_size=BEAM,
            max_len_a=0,
            max_len_b=setting.length,
            min_len=setting.length,
        )
        return torch.no_grad()(lambda: generator.generate([model], sample))

    return _steps(setting, build_transformer, step)


def training_steps(setting: Setting, models: Models, loss: Callable[[nn.Module], Tensor]) -> Steps:
    """Return whole training steps: forward, ``loss`` of a model, backward, Adam.

    Models that share weights share Adam's averages, too. Gradients are gone when a step ends.
    """
    state: Any = defaultdict(dict)

    def training_step(model: nn.Module) -> Step:
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        if setting.shared:
            optimiser.state = state

        def step() -> None:
            loss(model).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return step

    return {name: training_step(model) for name, model in models.items()}


def _forward_and_backward(module: nn.Module, forward: Callable[[], Tensor]) -> Step:
    """Return a forward and a backward pass; the module's gradients are gone when it ends."""
    with torch.no_grad():
        gradient = torch.randn_like(forward())

    def step() -> None:
        forward().backward(gradient)
        module.zero_grad(set_to_none=True)

    return step


def _second_half(tokens: Tensor) -> Tensor:
    """Return segment numbers: 0 in the first half of each row, 1 in the second."""
    numbers = torch.zeros_like(tokens)
    numbers[:, tokens.size(1) // 2 :] = 1
    return numbers
