"""Masked language models, trained and used: ours with every encoding and segments, and RoBERTa."""

from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace
from typing import Callable

import torch
from fairseq.data import Dictionary
from fairseq.models.roberta.model import RobertaModel, base_architecture
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.tools.benchmark.models import position_options
from fairseq_posenc.tools.benchmark.setting import STOCK, Setting
from fairseq_posenc.tools.benchmark.timing import Steps
from fairseq_posenc.tools.benchmark.weights import built, training_steps

BASE = "learned"
SEGMENTED = {
    "learned": "learned --position-segments input",
    "rel_scalar": "rel_scalar --position-segments per_head",
}


def build_bert(contestant: str, setting: Setting) -> nn.Module:
    """Build a masked language model with random weights: ``STOCK``, or an encoding's."""
    dictionary = Dictionary()
    for index in range(setting.types - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    task = SimpleNamespace(source_dictionary=dictionary)
    args = Namespace(
        encoder_layers=setting.layers,
        encoder_embed_dim=setting.width,
        encoder_ffn_embed_dim=setting.ffn,
        encoder_attention_heads=setting.heads,
        max_positions=max(512, setting.length),
        dropout=setting.dropout,
        attention_dropout=setting.dropout,
        **vars(position_options(contestant)),
    )
    vars(args).update(setting.model)
    torch.manual_seed(1)
    if contestant == STOCK:
        base_architecture(args)
        return setting.cast(RobertaModel.build_model(args, task))
    return setting.cast(PosencBertModel.build_model(args, task))


def prepare(setting: Setting) -> Steps:
    """Training steps; encodings that papers use with segments are there with them, too."""
    extra = [SEGMENTED[name] for name in SEGMENTED if name in setting.encodings]
    return prepare_training(replace(setting, encodings=[*setting.encodings, *extra]))


def prepare_training(setting: Setting) -> Steps:
    """Predict 15 % of the tokens, forward, backward and Adam; the second half is segment 1."""
    tokens = setting.draw_tokens()
    numbers = _halves(tokens)
    chosen = torch.rand(tokens.shape, device=tokens.device) < 0.15
    chosen[0, 0] = True

    def loss(model: nn.Module) -> Tensor:
        logits = model(tokens, segments=numbers, masked_tokens=chosen)[0].float()
        return F.cross_entropy(logits, tokens[chosen])

    return training_steps(setting, built(setting, lambda name: build_bert(name, setting)), loss)


def prepare_inference(setting: Setting) -> Steps:
    """Forward pass to the hidden states, without scores of words; the second half is segment 1."""
    tokens = setting.draw_tokens()
    numbers = _halves(tokens)

    def contestant(model: nn.Module) -> Callable[[], object]:
        model.eval()
        return torch.no_grad()(lambda: model(tokens, segments=numbers, features_only=True))

    models = built(setting, lambda name: build_bert(name, setting))
    return {name: contestant(model) for name, model in models.items()}


def _halves(tokens: Tensor) -> Tensor:
    """Return segment numbers: 0 in the first half of each row, 1 in the second."""
    numbers = torch.zeros_like(tokens)
    numbers[:, tokens.size(1) // 2 :] = 1
    return numbers
