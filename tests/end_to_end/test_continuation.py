"""Runs that begin with a checkpoint, by the real command lines: resumed or fine-tuned."""

import shutil

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.guards import signatures
from tests.end_to_end.conftest import TINY

CAPE = "--position-encoding cape --position-source-scale auto".split()
BRIEF = "--disable-validation --no-epoch-checkpoints --max-update".split()


def signature(folder):
    return signatures.of_checkpoint(load_checkpoint(str(folder / "checkpoint_last.pt")))


def warnings(printed):
    return [line for line in printed.splitlines() if "| WARNING | fairseq_posenc" in line]


@pytest.fixture(scope="module")
def trained(trains, binarised, tmp_path_factory):
    """The folder of a run with CAPE, α measured, that was stopped after two updates."""
    folder = tmp_path_factory.mktemp("trained")
    trains("fairseq-train", binarised, *TINY, *CAPE, *BRIEF, "2", "--save-dir", folder)
    return folder


@pytest.fixture
def cape(trained, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(trained, tmp_path / "cape")


def test_a_run_is_resumed_with_its_own_positions_alone(cape, trains, training, refuses):
    before = (cape / "checkpoint_last.pt").read_bytes()
    trained = signature(cape)
    for options in (CAPE[:2], [*CAPE, "--position-global-shift", "3"]):
        line = refuses(*training(*options, *BRIEF, "3", "--save-dir", cape))
        assert f"trained with {trained}, this run has position:" in line
    path = cape / "checkpoint_last.pt"
    line = refuses(*training(*BRIEF, "3", "--save-dir", cape / "new", "--restore-file", path))
    assert f"trained with {trained}, this run has position:sinusoidal" in line
    assert (cape / "checkpoint_last.pt").read_bytes() == before
    trains(*training(*CAPE, *BRIEF, "3", "--save-dir", cape))
    assert signature(cape) == trained


def test_a_run_that_has_ended_stays_as_it_is(cape, trains, training):
    before = (cape / "checkpoint_last.pt").read_bytes()
    for last in "21":
        printed = trains(*training(*CAPE, *BRIEF, last, "--save-dir", cape))
        assert f"2 updates are done, and --max-update is {last}: nothing is left" in printed
        assert (cape / "checkpoint_last.pt").read_bytes() == before
    trains(*training(*CAPE, *BRIEF, "3", "--save-dir", cape))
    assert (cape / "checkpoint_last.pt").read_bytes() != before


def test_a_run_that_is_validated_by_bleu_is_resumed(trains, training, tmp_path):
    # its meters hold counts by order of n-gram
    bleu = "--eval-bleu --eval-tokenized-bleu --best-checkpoint-metric bleu".split()
    bleu += ["--maximize-best-checkpoint-metric", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}']
    bleu += ["--save-dir", tmp_path]
    trains(*training(*bleu, "--max-update", "1"))
    start = ["--finetune-from-model", tmp_path / "checkpoint_last.pt", "--save-dir"]
    trains(*training(*start, tmp_path / "fine", *BRIEF, "1"))
    assert '"valid_bleu"' in trains(*training(*bleu, "--max-update", "2"))


def test_no_other_training_writes_over_a_run(cape, trains, training, refuses, tmp_path):
    last = cape / "checkpoint_last.pt"
    before, rotary = last.read_bytes(), ["--position-encoding", "rotary", *BRIEF, "3"]
    for wrong in ("checkpoint_lst.pt", "checkpoint_last .pt"):
        line = refuses(*training(*rotary, "--save-dir", cape, "--restore-file", wrong))
        assert line == f"there is no checkpoint {wrong} (--restore-file)"
    (tmp_path / "other.pt").write_bytes(before)
    elsewhere = [*CAPE, "--restore-file", tmp_path / "other.pt", "--reset-optimizer", *BRIEF, "3"]
    line = refuses(*training(*elsewhere, "--save-dir", cape))
    assert f"{cape} holds checkpoints of another training" in line
    assert last.read_bytes() == before
    trains(*training(*elsewhere, "--save-dir", tmp_path / "new"))
    # a damaged checkpoint: the advice can be followed as it stands
    last.write_bytes(before[:-9])
    line = refuses(*training(*CAPE, *BRIEF, "3", "--save-dir", cape, "--no-save"))
    assert line.endswith("there is no other one beside it")


def test_a_fine_tuned_run_has_the_positions_of_its_model(cape, trains, training, refuses, tmp_path):
    start = ["--finetune-from-model", cape / "checkpoint_last.pt", "--save-dir", tmp_path / "fine"]
    assert warnings(trains(*training(*start, *BRIEF, "1"))) == []
    assert signature(tmp_path / "fine") == signature(cape)
    # the same command goes on, even if the first model is gone
    (cape / "checkpoint_last.pt").rename(cape / "moved.pt")
    trains(*training(*start, *BRIEF, "2"))
    assert signature(tmp_path / "fine").startswith("position:cape|")
    line = refuses(*training(*start[2:], *BRIEF, "3"))
    assert "trained with position:cape" in line and "this run has position:sinusoidal" in line
    start[1] = cape / "moved.pt"
    line = refuses(*training(*start, *BRIEF, "3", "--position-encoding", "shaw"))
    assert "trained with position:cape" in line and "this run has position:shaw" in line


def test_frozen_parameters_stay_and_have_no_state_of_the_optimizer(
    cape, trains, training, refuses, tmp_path
):
    only, new = ["--train-only", "*embed_positions*"], tmp_path / "shaw"
    start = ["--position-encoding", "shaw", "--save-dir", new]
    before = load_checkpoint(str(cape / "checkpoint_last.pt"))["model"]
    printed = trains(
        *training(*start, *only, "--finetune-from-model", cape / "checkpoint_last.pt", *BRIEF, "2")
    )
    assert "--train-only *embed_positions*: 4 of " in printed
    # resumed as it was begun, which need not be said again
    assert "--train-only *embed_positions*: 4 of " in trains(*training(*start, *BRIEF, "3"))
    state = load_checkpoint(str(new / "checkpoint_last.pt"))
    assert len(state["last_optimizer_state"]["state"]) == 4
    after, tables = state["model"], [f"{s}.embed_positions.keys" for s in ("encoder", "decoder")]
    assert all(torch.equal(after[key], before[key]) for key in after.keys() & before.keys())
    assert all(after[key].std() > 0 for key in tables)
    line = refuses(*training(*start, "--train-only", "*fc1*", *BRIEF, "4"))
    assert "was trained with --train-only *embed_positions*: resume it so" in line
    other = ["--save-dir", tmp_path / "other", *BRIEF, "1", "--train-only"]
    assert "*posit matches no parameter" in refuses(*training(*other, "*posit"))
    assert "'(a+)+': a pattern has letters" in refuses(*training(*other, "(a+)+"))
