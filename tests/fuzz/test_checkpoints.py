"""Damaged and hostile checkpoints: weights as they were saved or one line, and nothing is run."""

import argparse
import copy
import random

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging

VALUES = [None, True, -1, 10**30, 1e308, float("nan"), "", "x", "3", [], {}, [[]], {"a": 1}, b"x",
          torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64), torch.zeros(0), (1, 2),
          argparse.Namespace(a=1)]  # fmt: skip
METRIC = {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False}
STATE = {
    "args": None,
    "cfg": {"checkpoint": METRIC},
    "model": {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2])},
    "optimizer_history": [{"criterion_name": "x", "optimizer_name": "x", "num_updates": 7}],
    "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": 3.5},
    "last_optimizer_state": {"state": {}},
}


@pytest.fixture
def folder(tmp_path):
    """A folder with two checkpoints of one run."""
    for name in ("checkpoint1.pt", "checkpoint2.pt"):
        torch.save(STATE, tmp_path / name)
    return tmp_path


def load(folder):
    return load_checkpoint(str(folder / "checkpoint1.pt"))


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


@pytest.mark.parametrize(
    "read, cases, wrong", [(load, 1000, other_weights), (average, 150, other_weights)]
)
def test_changed_bytes_are_told_or_change_nothing(fuzz, folder, read, cases, wrong):
    fuzz(read.__name__, folder / "checkpoint1.pt", lambda: read(folder), wrong, cases)


def places(value, found):
    """Collect all (container, key) of a state."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            places(value[key], found)
    return found


@pytest.mark.parametrize("read", [load, average, best])
def test_other_types_and_shapes_are_told(folder, read, hostile):
    for case in range(100):
        chance, state = random.Random(f"{read.__name__} {case}"), copy.deepcopy(STATE)
        for _ in range(chance.choice([1, 1, 2])):
            # deep ones are as likely as others
            top = chance.choice(list(state) or ["model"])
            inner = state.get(top)
            inner = places(inner, []) if isinstance(inner, (dict, list)) else []
            container, key = chance.choice([(state, top), *inner])
            if chance.random() < 0.2 and isinstance(container, dict):
                container.pop(key, None)
            else:
                container[key] = chance.choice([*VALUES, hostile])
        torch.save(state, folder / "checkpoint1.pt")
        try:
            read(folder)
        except UsageError as error:
            assert "\n" not in str(error), case
        assert not hostile.witness.exists()
