"""What a resumed training takes from a stranger's checkpoint: right, or refused in one line."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.optim import build_optimizer
from omegaconf import OmegaConf

import fairseq_posenc.models  # noqa: F401 (makes loading safe)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.guards.resumed_state import check_progress

OPTIMIZERS = {
    "adam": {"adam_betas": "(0.9, 0.999)", "adam_eps": 1e-8, "use_old_adam": True, "tpu": False},
    "sgd": {"momentum": 0.9},
    "adagrad": {},
    "adafactor": {
        "adafactor_eps": "(1e-30, 1e-3)",
        "clip_threshold": 1.0,
        "decay_rate": -0.8,
        "beta1": None,
        "scale_parameter": False,
        "relative_step": False,
        "warmup_init": False,
    },
    "posenc_radam": {"radam_betas": "(0.9, 0.999)", "radam_eps": 1e-8},
}


def optimizer(name, size=6):
    weights = torch.nn.Parameter(torch.ones(size))
    options = {"_name": name, "lr": [0.1], "weight_decay": 0.0}
    found = build_optimizer(OmegaConf.create({**options, **OPTIMIZERS[name]}), [weights])
    weights.grad = torch.ones(size)
    return found


def state_of(name, **group):
    """The state of an optimizer after a step; its group has further values."""
    trained = optimizer(name)
    trained.step()
    state = trained.state_dict()
    state["param_groups"][0].update(group)
    return state


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_how_an_optimizer_computes_is_said_by_the_run(name):
    plain, other = optimizer(name), optimizer(name)
    plain.load_state_dict(state_of(name))
    switches = {"fused": True, "foreach": True, "capturable": True, "maximize": True, "x": 1}
    other.load_state_dict(state_of(name, **switches, lr=0.2))
    assert {**plain.param_groups[0], "lr": 0.2, "params": 0} == {
        **other.param_groups[0], "params": 0
    }  # fmt: skip
    other.step()


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "adafactor"])
def test_a_state_of_other_parameters_is_refused(name):
    state = state_of(name)
    for key, value in state["state"][0].items():
        if isinstance(value, torch.Tensor) and value.dim():
            for wrong in (value[:2], value[0].clone()):  # a single number, too
                state["state"][0][key] = wrong
                with pytest.raises(UsageError, match="does not fit its parameter"):
                    optimizer(name).load_state_dict(state)
            state["state"][0][key] = value
    for parts in ({"param_groups": []}, {"param_groups": 5}, {"state": 5}):
        # fairseq ignores --finetune-from-model where the folder has a checkpoint_last.pt
        with pytest.raises(
            UsageError, match="optimizer.*--finetune-from-model and another --save-"
        ):
            optimizer(name).load_state_dict({**state_of(name), **parts})


SHORT = {"step": 1, "exp_avg_sq_row": torch.ones(2), "exp_avg_sq_col": torch.ones(2), "RMS": 1.0}
UNUSABLE = [
    ("adam", {"a": 1}),
    ("adam", 5),
    ("adam", {"exp_avg": None}),
    ("adam", {"exp_avg": 1.5}),
]
UNUSABLE.append(("adafactor", SHORT))


@pytest.mark.parametrize("name, state", UNUSABLE, ids=str)
def test_a_state_that_an_optimizer_cannot_use_ends_in_one_line(name, state):
    found = optimizer(name, (3, 4) if name == "adafactor" else 6)
    found.load_state_dict({**found.state_dict(), "state": {0: state}})
    with pytest.raises(UsageError, match="cannot go on with the checkpoint's state"):
        found.step()


PROGRESS = {
    "epoch": [None, "x", -1, 1.5, 10**30], "iterations_in_epoch": ["x", -1], "shuffle": [[], "x"],
    "num_updates": [None, 1.5, -1, 10**30], "best": [None, [], "x"],
    "previous_training_time": [None, {}],
    "metrics": [{"default": []}, {"valid": [(10, "_bleu_counts", "", {"val": np.array(["x"])})]}],
}  # fmt: skip


@pytest.mark.parametrize("name, value", [(n, value) for n in PROGRESS for value in PROGRESS[n]])
def test_odd_progress_is_refused(name, value):
    def check(**odd):
        iterator = {"epoch": 1, "iterations_in_epoch": 0, "shuffle": True, "version": 2}
        extra = {"best": 1.0, "previous_training_time": 3.0, "val_loss": None, "metrics": {}}
        iterator.update({key: odd[key] for key in odd if key in iterator})
        extra.update({key: odd[key] for key in odd if key in extra})
        scheduler = SimpleNamespace(state_dict=lambda: {"best": None})
        updates = odd.get("num_updates", 3)
        trainer = SimpleNamespace(get_num_updates=lambda: updates, lr_scheduler=scheduler)
        check_progress({"train_iterator": iterator, **extra}, trainer)

    check()
    with pytest.raises(UsageError, match=f"the checkpoint's {name} is not"):
        check(**{name: value})


def test_a_signature_is_printed_in_one_line():
    state = {"args": None, "cfg": {"model": {"position_signature": "position:none\n\x1b[2J"}}}
    assert signatures.of_checkpoint(state) == "position:none\\n\\x1b[2J"
