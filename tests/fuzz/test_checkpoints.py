"""Damaged and hostile checkpoints: weights as they were saved or one line, and nothing is run."""

import argparse
import copy
import logging
import random

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

import fairseq_posenc.models.transformer  # noqa: F401 (registers it)
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging
from fairseq_posenc.tools.predict import load_any
from fairseq_posenc.tools.recipe.newest_checkpoint import restore

VALUES = [None, True, -1, 10**30, 1e308, float("nan"), "", "x", "3", [], {}, [[]], {"a": 1}, b"x",
          torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64), torch.zeros(0), (1, 2),
          argparse.Namespace(a=1)]  # fmt: skip
METRIC = {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False}
STATE = {
    "args": None,
    "cfg": {"checkpoint": METRIC},
    "model": {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2])},
    "optimizer_history": [
        {"criterion_name": "x", "optimizer_name": "x", "lr_scheduler_state": {}, "num_updates": 7}
    ],
    "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": 3.5},
    "last_optimizer_state": {"state": {}},
}
TINY = "--arch posenc_transformer_tiny --task posenc_translation -s en -t de --encoder-layers 1"
TINY += " --decoder-layers 1 --position-encoding shaw --max-source-positions 64"
TINY += "".join(f" --{side}-{part} 4" for side in ("encoder", "decoder")
                for part in ("embed-dim", "ffn-embed-dim", "attention-heads"))  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder with two checkpoints of one run."""
    for name in ("checkpoint1.pt", "checkpoint2.pt"):
        torch.save(STATE, tmp_path / name)
    return tmp_path


@pytest.fixture
def trained(tmp_path):
    """A checkpoint of a model that can be loaded, its folder of data, and what is in it."""
    for side in ("en", "de"):
        (tmp_path / f"dict.{side}.txt").write_text("a 2\nb 1\n")
    arguments = options.parse_args_and_arch(
        options.get_training_parser(), [str(tmp_path), *TINY.split()]
    )
    cfg = convert_namespace_to_omegaconf(arguments)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    content = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    state = {**STATE, "cfg": content, "model": model.state_dict()}
    torch.save(state, tmp_path / "checkpoint1.pt")
    return tmp_path, state


def load(folder):
    return load_checkpoint(str(folder / "checkpoint1.pt"))


def newest(folder):
    return restore(str(folder))


def average(folder):
    return averaging.average([str(folder / f"checkpoint{number}.pt") for number in (2, 1)])


def best(folder):
    return averaging.best([str(folder / f"checkpoint{number}.pt") for number in (2, 1)], 1)


def other_weights(state, data):
    found, weights = state["model"], STATE["model"]
    same = found.keys() == weights.keys() and all(
        map(torch.equal, found.values(), weights.values())
    )
    return not same and "other weights"


READERS = {
    load: (1000, other_weights),
    newest: (150, lambda path, data: not path and "the other one is whole"),
    average: (150, other_weights),
    best: (150, None),
}
each_reader = pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)


@each_reader
def test_changed_bytes_are_told_or_change_nothing(fuzz, folder, read):
    cases, wrong = READERS[read]
    fuzz(read.__name__, folder / "checkpoint1.pt", lambda: read(folder), wrong, cases)


def places(value, found):
    """Collect all (container, key) of a state."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            places(value[key], found)
    return found


def changed(chance, state, hostile):
    """Return a state with other things in one or two places; deep ones are as likely as others."""
    state = copy.deepcopy(state)
    for _ in range(chance.choice([1, 1, 2])):
        top = chance.choice(list(state) or ["model"])
        inner = state.get(top)
        inner = places(inner, []) if isinstance(inner, (dict, list)) else []
        container, key = chance.choice([(state, top), *inner])
        if chance.random() < 0.2 and isinstance(container, dict):
            container.pop(key, None)
        else:
            container[key] = chance.choice([*VALUES, hostile])
    return state


def check_all(name, cases, state, path, read, hostile):
    for case in range(cases):
        found = changed(random.Random(f"{name} {case}"), state, hostile)
        path.unlink()
        torch.save(found, path)
        try:
            read()
        except UsageError as error:
            assert "\n" not in str(error)
        except BaseException as error:
            raise AssertionError(f"{name}, case {case}: {error!r}") from error
        assert not hostile.witness.exists()


@each_reader
def test_other_types_and_shapes_are_told(folder, read, hostile):
    path = folder / "checkpoint1.pt"
    check_all(read.__name__, 100, STATE, path, lambda: read(folder), hostile)


def test_other_options_and_weights_are_told(trained, hostile):
    folder, state = trained
    path = folder / "checkpoint1.pt"
    logging.disable(logging.CRITICAL)
    try:
        check_all("load_any", 20, state, path, lambda: load_any(str(path), str(folder)), hostile)
    finally:
        logging.disable(logging.NOTSET)
