"""``--amp`` on a CPU, by fairseq-train."""

import json

import pytest
import torch

from fairseq_posenc.attention.bfloat16 import Bfloat16Linear
from fairseq_posenc.checkpoints import load_checkpoint

UPDATES = "--max-update 6 --save-interval-updates 3 --dropout 0.1 --position-encoding".split()


def losses(logged):
    lines = [line[line.index("{") :] for line in logged.splitlines() if '"loss"' in line]
    return [float(found["loss"]) for found in map(json.loads, lines) if "gnorm" in found]


@pytest.mark.parametrize("task", ["posenc_translation", "translation"])
def test_amp_computes_in_bfloat16_and_trains_as_float32_does(trains, training, tmp_path, task):
    words = [*UPDATES, "rel_scalar", "--task", task]
    logged = {
        flag: trains(*training(*words, *flag.split(), "--save-dir", tmp_path / (flag or "float32")))
        for flag in ("", "--amp")
    }
    narrow, wide = losses(logged["--amp"]), losses(logged[""])
    assert len(narrow) == len(wide) == 6
    assert narrow != wide and narrow == pytest.approx(wide, rel=0.01)
    assert "--amp on a CPU: products of linear layers are in bfloat16" in logged["--amp"]
    assert "products of linear layers" not in logged[""]
    state = load_checkpoint(str(tmp_path / "--amp" / "checkpoint_last.pt"))
    assert state["cfg"]["common"]["amp"] is True
    assert {value.dtype for value in state["model"].values()} == {torch.float32}


@pytest.mark.parametrize("fast", [True, False])
def test_a_cpu_without_bfloat16_is_told_of(trains, training, tmp_path, fast, monkeypatch):
    monkeypatch.setattr("fairseq_posenc.guards.precision.has_fast_bfloat16", lambda: fast)
    logged = trains(*training("--max-update", 1, "--amp", "--save-dir", tmp_path))
    assert ("neither AVX512-BF16 nor AMX" in logged) is not fast


def test_a_gradient_that_is_not_a_number_ends_the_training(trains, training, tmp_path, monkeypatch):
    """fairseq's own would take a step with it, as the scaler of a GPU's is not there."""
    forward = Bfloat16Linear.forward
    monkeypatch.setattr(Bfloat16Linear, "forward", lambda *inputs: forward(*inputs) * float("nan"))
    with pytest.raises(FloatingPointError):
        trains(*training("--max-update", 2, "--amp", "--save-dir", tmp_path))
