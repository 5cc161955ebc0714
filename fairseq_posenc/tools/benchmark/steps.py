"""Steps of whole models and of parts of them: training, forward and backward passes, generation.

Each function takes a setting and returns one step per contestant, stock fairseq among them.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any, Callable

import torch
from fairseq.models.transformer import TransformerModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc.tools.benchmark.models import (
    Models,
    build_all,
    build_bert,
    build_transformer,
)
from fairseq_posenc.tools.benchmark.settings import PADDING, Setting, Steps

BEAM = 4


def encoder(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and encoder."""
    tokens = setting.draw_tokens()

    def step(model: TransformerModel) -> Callable[[], None]:
        encoder = model.encoder
        return _forward_and_backward(encoder, lambda: encoder(tokens)["encoder_out"][0])

    return {name: step(model) for name, model in build_all(setting, build_transformer).items()}


def layer(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and one encoder layer."""
    one_layer = {**setting.model, "encoder_layers": 1, "decoder_layers": 1}
    return encoder(replace(setting, model=one_layer))


def decoder(setting: Setting) -> Steps:
    """Forward and backward pass of embeddings and decoder, without the scores of words.

    The decoder attends to states of its encoder, as long as its own input, that are not trained.
    """
    source, target = setting.draw_tokens(left=True), setting.draw_tokens()

    def step(model: TransformerModel) -> Callable[[], None]:
        with torch.no_grad():
            encoded = model.encoder(source)
        decode = model.decoder
        return _forward_and_backward(
            decode, lambda: decode(target, encoder_out=encoded, features_only=True)[0]
        )

    return {name: step(model) for name, model in build_all(setting, build_transformer).items()}


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

    def step(model: nn.Module) -> Callable[[], object]:
        model.eval()
        return torch.no_grad()(lambda: model(tokens, segments=segments, features_only=True))

    return {name: step(model) for name, model in build_all(setting, build_bert).items()}


def generation(setting: Setting) -> Steps:
    """Beam search for a batch of sources, all hypotheses of the sources' length."""
    source = setting.draw_tokens(left=True)
    sample = {
        "net_input": {"src_tokens": source, "src_lengths": source.ne(PADDING).sum(dim=1)},
        "ntokens": source.numel(),
    }

    def step(model: TransformerModel) -> Callable[[], object]:
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


def training_steps(setting: Setting, models: Models, loss: Callable[[nn.Module], Tensor]) -> Steps:
    """Return whole training steps: forward, ``loss`` of a model, backward, Adam.

    Models that share weights share Adam's averages, too. Gradients are gone when a step ends.
    """
    state: Any = defaultdict(dict)

    def training_step(model: nn.Module) -> Callable[[], None]:
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        if setting.shared:
            optimiser.state = state

        def step() -> None:
            loss(model).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return step

    return {name: training_step(model) for name, model in models.items()}


def _forward_and_backward(module: nn.Module, forward: Callable[[], Tensor]) -> Callable[[], None]:
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
