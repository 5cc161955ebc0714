"""Random models, one for each class of transformers that ``posenc export`` writes."""

import os
from argparse import Namespace
from types import SimpleNamespace
from typing import Any, Dict, NamedTuple, Type

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_posenc.checkpoints.folders import as_checkpoint
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.models.transformer_lm import PosencTransformerLanguageModel

TYPES = 40  # of the vocabulary, with the special ones
_NOISE = 0.3  # added to every weight, so that all of them matter
_PRE_NORM = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "share_all_embeddings": True,
}
_BLOOM = {"layernorm_embedding": True, "activation_fn": "gelu_accurate"}


class Architecture(NamedTuple):
    """A kind of model: its class, ``--arch``, task, and sizes."""

    model: Type[Any]
    arch: str
    task: str
    sizes: Dict[str, Any]


_SIZES = {"embed_dim": 32, "ffn_embed_dim": 64, "layers": 2, "attention_heads": 2}
_SIDES = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in _SIZES.items()}
_LIMITS = {"max_source_positions": 48, "max_target_positions": 48}
TRANSLATION = Architecture(
    PosencTransformerModel,
    "posenc_transformer",
    "posenc_translation",
    {**_SIDES, **_LIMITS, "share_all_embeddings": True},
)
BERT = Architecture(
    PosencBertModel, "posenc_bert", "posenc_masked_lm", {**_SIDES, "max_positions": 48}
)
LANGUAGE_MODEL = Architecture(
    PosencTransformerLanguageModel,
    "posenc_transformer_lm",
    "language_modeling",
    # BLOOM's feed-forward layers are four times as wide as its embeddings
    {**_SIDES, "decoder_ffn_embed_dim": 128, "tokens_per_sample": 48},
)


class ExportedClass(NamedTuple):
    """A model that is exported as one class: architecture, encoding, further options."""

    architecture: Architecture
    encoding: str
    options: Dict[str, Any] = {}


CLASSES = {
    "FSMT": ExportedClass(TRANSLATION, "sinusoidal"),
    "M2M100": ExportedClass(TRANSLATION, "sinusoidal", _PRE_NORM),
    "Blenderbot": ExportedClass(TRANSLATION, "learned", _PRE_NORM),
    "MBart": ExportedClass(TRANSLATION, "learned", {**_PRE_NORM, "layernorm_embedding": True}),
    "Roberta": ExportedClass(BERT, "learned"),
    "RoFormer": ExportedClass(BERT, "rotary"),
    "MPNet": ExportedClass(BERT, "t5"),
    "XGLM": ExportedClass(LANGUAGE_MODEL, "sinusoidal"),
    "OPT": ExportedClass(LANGUAGE_MODEL, "learned"),
    "GPTNeoX": ExportedClass(LANGUAGE_MODEL, "rotary"),
    "Bloom": ExportedClass(LANGUAGE_MODEL, "alibi", _BLOOM),
}


def write_data(folder: str) -> None:
    """Write the dictionaries that all the models have."""
    os.makedirs(folder)
    for name in ("dict.txt", "dict.en.txt", "dict.de.txt"):
        _dictionary().save(os.path.join(folder, name))


def _dictionary() -> Dictionary:
    dictionary = Dictionary()
    while len(dictionary) < TYPES:
        dictionary.add_symbol(f"w{len(dictionary) - 4}")
    return dictionary


def write_checkpoint(exported: ExportedClass, path: str, data: str, **of_task: Any) -> Any:
    """Write a checkpoint of a random model as fairseq-train does, and return the model.

    ``of_task`` are further options of its task.
    """
    architecture = exported.architecture
    args = Namespace(
        arch=architecture.arch, position_encoding=exported.encoding, dropout=0.0,
        **{**architecture.sizes, **exported.options},
    )  # fmt: skip
    ARCH_CONFIG_REGISTRY[args.arch](args)
    source, target = _dictionary(), _dictionary()
    if architecture is BERT:
        source.add_symbol("<mask>")
    torch.manual_seed(1)
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    model = architecture.model.build_model(args, task).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter += _NOISE * torch.randn(parameter.shape)
    task_options = {"_name": architecture.task, "data": data, **of_task}
    if architecture is TRANSLATION:
        task_options.update(source_lang="en", target_lang="de")
    state = as_checkpoint(vars(args), task_options, model.state_dict())
    state["cfg"]["common"] = {"user_dir": "fairseq_posenc"}
    torch.save(state, path)
    return model
