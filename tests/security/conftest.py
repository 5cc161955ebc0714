"""A checkpoint that loads, for tests to put something hostile into."""

import copy
import functools
import logging
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from fairseq import file_utils, options, tasks
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

import fairseq_posenc.models.bert
import fairseq_posenc.models.transformer  # noqa: F401 (registers it)
from fairseq_posenc.guards import option_checks
from tests.tiny import checkpoint_of

SIZES = "--encoder-layers 1 --encoder-embed-dim 4 --encoder-ffn-embed-dim 4"
SIZES += " --encoder-attention-heads 2"
TRANSLATION = f"--arch posenc_transformer_tiny --task posenc_translation -s en -t de {SIZES} "
TRANSLATION += SIZES.replace("encoder", "decoder")
DECLARED = {}
BERT = f"--arch posenc_bert_tiny --task posenc_masked_lm --tokens-per-sample 8 {SIZES}"


class Trained:
    """A checkpoint: `folder` of its data, its `state`, `args` for an old one, and `save`."""

    def __init__(self, folder, command):
        for name in ("dict.en.txt", "dict.de.txt", "dict.txt"):
            (folder / name).write_text("a 2\nb 1\n")
        words = [str(folder), *command.split(), "--optimizer", "adam", "--criterion"]
        words += ["masked_lm" if "masked" in command else "cross_entropy", "--lr", "0.1"]
        self.args = options.parse_args_and_arch(options.get_training_parser(), words)
        cfg = convert_namespace_to_omegaconf(self.args)
        self.weights = tasks.setup_task(cfg.task).build_model(cfg.model).state_dict()
        self.cfg = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
        self.folder, self.path = str(folder), os.path.join(str(folder), "model.pt")

    def save(self, **parts):
        """Write the checkpoint with other `args`, `cfg` and so on, and return its path."""
        torch.save(self.state(**parts), self.path)
        return self.path

    def state(self, **parts):
        """What a checkpoint with other `args`, `cfg` and so on holds."""
        return {**checkpoint_of(self.cfg, self.weights), **parts}


@pytest.fixture(scope="module", params=[TRANSLATION, BERT], ids=["translation", "bert"])
def trained(request, tmp_path_factory):
    """A checkpoint of a tiny model."""
    return Trained(tmp_path_factory.mktemp("trained"), request.param)


@pytest.fixture(scope="module")
def translation(tmp_path_factory):
    """A checkpoint of a tiny translation model."""
    return Trained(tmp_path_factory.mktemp("translation"), TRANSLATION)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A checkpoint of a tiny BERT."""
    return Trained(tmp_path_factory.mktemp("bert"), BERT)


@functools.cache
def _defaults():
    defaults = OmegaConf.structured(FairseqConfig())
    return OmegaConf.to_container(defaults, resolve=True, enum_to_str=True)


@pytest.fixture
def defaults_once(monkeypatch):
    """fairseq's defaults, and what models and tasks declare, are found once, not for each check.

    That takes nearly all of a check's time.
    """
    declared = option_checks._declared

    def declared_once(asked):
        if repr(asked) not in DECLARED:
            DECLARED[repr(asked)] = declared(asked)
        return DECLARED[repr(asked)]

    found_once = SimpleNamespace(
        structured=lambda _: None, to_container=lambda *_, **__: copy.deepcopy(_defaults())
    )
    monkeypatch.setattr(option_checks, "_declared", declared_once)
    monkeypatch.setattr(option_checks, "OmegaConf", found_once)


@pytest.fixture
def quiet(monkeypatch):
    """No log, no user's command line, and an error for whoever asks the web."""
    logging.disable(logging.CRITICAL)
    monkeypatch.setattr(sys, "argv", ["program"])

    def fetch(url, *_, **__):
        raise AssertionError(f"{url} was asked for")

    monkeypatch.setattr(file_utils, "get_from_cache", fetch)
    yield
    logging.disable(logging.NOTSET)
