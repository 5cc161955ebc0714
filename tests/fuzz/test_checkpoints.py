"""Damaged and hostile checkpoints: weights as they were saved or one line, and nothing is run."""

import copy
import random
from contextlib import suppress

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging

VALUES = [None, True, -1, 10**30, 1e308, float("nan"), "", "x", "3", [], {}, [[]], {"a": 1}, b"x",
          torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64), torch.zeros(0), (1, 2)]  # fmt: skip
METRIC = {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False}
STATE = {
    "args": None,
    "cfg": {"checkpoint": METRIC},
    "model": {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2])},
    "optimizer_history": [{"criterion_name": "x", "optimizer_name": "x", "num_updates": 7}],
    "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": 3.5},
    "last_optimizer_state": {"state": {}},
}


def other_weights(state, data):
    found, weights = state["model"], STATE["model"]
    same = found.keys() == weights.keys()
    return not (same and all(torch.equal(found[key], weights[key]) for key in found)) and "others"


def test_changed_bytes_are_reported_or_change_nothing(fuzz, tmp_path):
    path = tmp_path / "checkpoint1.pt"
    torch.save(STATE, path)
    fuzz("load", path, lambda: load_checkpoint(str(path)), other_weights)


@pytest.mark.parametrize("read", [averaging.average, lambda paths: averaging.best(paths, 1)])
def test_other_types_and_shapes_are_reported(tmp_path, read, hostile):
    paths = [str(tmp_path / f"checkpoint{number}.pt") for number in (2, 1)]
    torch.save(STATE, paths[0])
    for case in range(100):
        chance, state = random.Random(case), copy.deepcopy(STATE)
        # deep ones are as likely as others
        places = [(state, key) for key in state]
        groups = [inner for inner in state.values() if isinstance(inner, dict)]
        places += [(inner, key) for inner in groups for key in inner]
        places.append((state["cfg"]["checkpoint"], chance.choice(list(METRIC))))
        places += [(state["optimizer_history"][0], "num_updates")] * 2
        for container, key in chance.choices(places, k=2):
            container[key] = chance.choice([*VALUES, hostile])
        torch.save(state, paths[1])
        with suppress(UsageError):
            read(paths)
        assert not hostile.witness.exists()
