"""Flags of big trainings, with every encoding: fairseq-train by two workers on the CPU."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_posenc.encodings import names

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[2]
FLAGS = {
    "reference": "--ddp-backend legacy_ddp",
    "same": "--ddp-backend pytorch_ddp --checkpoint-activations --offload-activations",
    "sharded": "--ddp-backend fully_sharded --min-params-to-wrap 1 --checkpoint-activations",
    "layerdrop": "--ddp-backend pytorch_ddp --find-unused-parameters --encoder-layerdrop 0.5"
    " --decoder-layerdrop 0.5 --dropout 0 --attention-dropout 0",
    "amp": "--ddp-backend pytorch_ddp --amp --checkpoint-activations --offload-activations",
    "half": "--ddp-backend pytorch_ddp --memory-efficient-fp16",
    "noisy": "--ddp-backend pytorch_ddp --find-unused-parameters --encoder-layerdrop 0.5"
    " --decoder-layerdrop 0.5 --quant-noise-pq 0.3 --quant-noise-pq-block-size 8"
    " --dropout 0 --attention-dropout 0",
}
# how far loss and norm of the gradient may be from those without flags: what is drawn differs
TOLERANCES = {"amp": (0.01, 0.05), "half": (0.05, 0.05)}
ELSEWHERE = "sharded", "layerdrop", "noisy"  # flags with a test of their own
HAS_FAIRSCALE = importlib.util.find_spec("fairscale") is not None
MODELS = ["stock", *names()]
# which layers are left out is drawn alike for all models; without fairscale nothing is trained
CHOSEN = {"layerdrop": ["stock", "sinusoidal"], **({} if HAS_FAIRSCALE else {"sharded": ["stock"]})}
each_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def trained(binarised, tmp_path_factory):
    """What train_with_flags.py prints, by flags and model."""
    flags = tmp_path_factory.mktemp("flags") / "flags.json"
    sets = {name: [words, CHOSEN.get(name, MODELS)] for name, words in FLAGS.items()}
    flags.write_text(json.dumps(sets), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("train_with_flags.py")
    workers = [
        subprocess.Popen(
            [sys.executable, script, str(rank), str(port), binarised, flags], cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    printed, _ = [worker.communicate(timeout=600)[0] for worker in workers]
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"flags"')]
    found = {(line["flags"], line["model"]): line for line in lines}
    assert len(found) == sum(len(models) for _, models in sets.values()), printed[-2000:]
    return found


@each_model
@pytest.mark.parametrize("flags", [flags for flags in FLAGS if flags not in ELSEWHERE])
def test_losses_and_gradients_are_those_of_training_without_flags(trained, flags, model):
    """Half precision drops other weights than float32; that is never the same."""
    found, expected = trained[flags, model], trained["reference", model]["updates"]
    assert "error" not in found
    of_loss, of_gradient = TOLERANCES.get(flags, (1e-6, 1e-6))
    assert len(found["updates"]) == 2
    for (loss, norm), (wanted, wanted_norm) in zip(found["updates"], expected):
        assert loss == pytest.approx(wanted, rel=of_loss)
        assert norm == pytest.approx(wanted_norm, rel=of_gradient)
    assert (found["updates"] == expected) <= (flags not in TOLERANCES)


def test_layerdrop_leaves_out_the_layers_that_stock_fairseq_does(trained):
    """Without dropout nothing else is drawn, and sinusoids are stock fairseq's."""
    found, stock = (trained["layerdrop", model]["updates"] for model in ("sinusoidal", "stock"))
    for update, wanted in zip(found, stock):
        assert update == pytest.approx(wanted, rel=1e-5)
    assert found != trained["reference", "stock"]["updates"]


@each_model
def test_noise_and_layerdrop_train_every_encoding(trained, model):
    noisy = trained["noisy", model]
    assert "error" not in noisy and len(noisy["updates"]) == 2


@pytest.mark.parametrize("model", CHOSEN["layerdrop"])
def test_noise_disturbs_the_weights_that_layerdrop_leaves_in(trained, model):
    """They are projections that know no encoding."""
    noisy, quiet = trained["noisy", model], trained["layerdrop", model]
    assert all(found != wanted for found, wanted in zip(noisy["updates"], quiet["updates"]))


def test_fully_sharded_needs_fairscale_and_is_right_with_it(trained):
    for model in CHOSEN.get("sharded", MODELS):
        found, expected = trained["sharded", model], trained["reference", model]["updates"]
        if not HAS_FAIRSCALE:
            assert "pip install fairscale" in found["error"]
            pytest.skip("fully_sharded is only refused here: there is no fairscale")
        assert "error" not in found and len(found["updates"]) == 2
        for update, wanted in zip(found["updates"], expected):
            assert update == pytest.approx(wanted, rel=1e-6)
