"""Steps of whole models: training and generation.

Each function of a subject takes a setting and returns one step per contestant, stock fairseq among
them. All models share one set of random weights, so that many large ones fit into memory.
"""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, Callable, Dict, Tuple

import torch
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
from recipes.benchmark.settings import PADDING, STOCK, Setting, Step, Steps

BEAM = 4
Models = Dict[str, nn.Module]


def position_options(contestant: str) -> Namespace:
    """Parse an encoding with its options as written on a command line; `STOCK` has none."""
    parser = ArgumentParser(argument_default=SUPPRESS, add_help=False)
    options.add_arguments(parser)
    parser.add_argument("--position-segments", choices=list(segments.SEGMENT_MODULES))
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
    return args


def _build(architecture: Any, args: Namespace, setting: Setting) -> Any:
    """Build a model with random weights, for dictionaries of the setting's number of types."""
    dictionary = setting.dictionary()
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(1)
    return setting.cast(architecture.build_model(args, task))


def build_all(setting: Setting, build: Callable[[str, Setting], nn.Module]) -> Models:
    """Build the model of every contestant, stock fairseq's first.

    Every model uses the parameters of the first wherever names and shapes are equal, and has but
    those of its positions for itself.
    """
    models: Models = {}
    for name in tqdm([STOCK, *setting.contestants], "building", mininterval=1, leave=False):
        models[name] = build(name, setting)
        _share(models[STOCK], models[name])
    return models


def _share(owner: nn.Module, model: nn.Module) -> None:
    """Replace a model's parameters by the owner's of equal name and shape."""
    owned = dict(owner.named_parameters(remove_duplicate=False))
    for path, parameter in list(model.named_parameters(remove_duplicate=False)):
        if path in owned and owned[path].shape == parameter.shape:
            module, _, attribute = path.rpartition(".")
            setattr(model.get_submodule(module), attribute, owned[path])


def training(setting: Setting) -> Steps:
    """Training steps of translation models; sources are padded on the left, as fairseq does."""
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def loss(model: nn.Module) -> Tensor:
        logits = model(source, None, target)[0].flatten(0, 1).float()
        return F.cross_entropy(logits, target.flatten(), ignore_index=PADDING)

    return training_steps(build_all(setting, build_transformer), loss)


def bert_training(setting: Setting) -> Steps:
    """Training steps of masked language models: 15 % of the tokens are predicted."""
    tokens, segments = draw_pairs(setting)
    chosen = torch.rand(tokens.shape, device=tokens.device) < 0.15
    chosen[0, 0] = True  # of few tokens the chance may choose none, and the loss would be NaN

    def loss(model: nn.Module) -> Tensor:
        logits = model(tokens, segments=segments, masked_tokens=chosen)[0].float()
        return F.cross_entropy(logits, tokens[chosen])

    return training_steps(build_all(setting, build_bert), loss)


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

    return {name: step(model) for name, model in build_all(setting, build_transformer).items()}


def encoder(setting: Setting) -> Steps:
    """Forward and backward passes of translation models' encoders, embeddings included."""
    source = setting.draw_tokens(left=True)

    def step(model: TransformerModel) -> Step:
        return _both_passes(model.encoder, lambda: model.encoder(source)["encoder_out"][0])

    return {name: step(model) for name, model in build_all(setting, build_transformer).items()}


def decoder(setting: Setting) -> Steps:
    """Forward and backward passes of decoders, up to the hidden states.

    They attend to a source of their own length, whose states are not trained.
    """
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def step(model: TransformerModel) -> Step:
        with torch.no_grad():
            encoded = model.encoder(source)
        return _both_passes(
            model.decoder,
            lambda: model.decoder(target, encoder_out=encoded, features_only=True)[0],
        )

    return {name: step(model) for name, model in build_all(setting, build_transformer).items()}


def _both_passes(module: nn.Module, forward: Callable[[], Tensor]) -> Step:
    def step() -> None:
        # a loss that reaches every state, and costs nothing beside the layers
        forward().float().mean().backward()
        module.zero_grad(set_to_none=True)

    return step


def bert_inference(setting: Setting) -> Steps:
    """Forward passes of masked language models up to the hidden states, without gradients."""
    tokens, segments = draw_pairs(setting)

    def step(model: nn.Module) -> Step:
        model.eval()
        return torch.no_grad()(lambda: model(tokens, segments=segments, features_only=True))

    return {name: step(model) for name, model in build_all(setting, build_bert).items()}


def draw_pairs(setting: Setting) -> Tuple[Tensor, Tensor]:
    """Draw tokens and segments, ``(batch, length)`` each: the second half of a row is segment 1.

    Only models with segments look at them.
    """
    tokens = setting.draw_tokens()
    segments = torch.zeros_like(tokens)
    segments[:, setting.length // 2 :] = 1
    return tokens, segments


def training_steps(models: Models, loss: Callable[[nn.Module], Tensor]) -> Steps:
    """Return whole training steps: forward, ``loss`` of a model, backward, Adam.

    As the models share weights, they share Adam's averages, too. Gradients are gone when a step
    ends.
    """
    state: Any = defaultdict(dict)

    def training_step(model: nn.Module) -> Step:
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        optimiser.state = state

        def step() -> None:
            loss(model).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return step

    return {name: training_step(model) for name, model in models.items()}
