"""Checkpoints by the real program, where a disk is full or a training ends while one is written."""

import shutil

import pytest

from fairseq_posenc.errors import UsageError

SAVES = "--disable-validation --save-interval-updates 1 --max-update".split()
LAST = "checkpoint_last.pt"


def checkpoints(folder):
    return {path.name: path.read_bytes() for path in folder.glob("checkpoint*")}


@pytest.fixture
def begun(trains, training, tmp_path):
    """The folder of a run that was stopped after an update, and what continues it."""
    trains(*training(*SAVES, "1", "--save-dir", tmp_path / "run"))
    assert sorted(checkpoints(tmp_path / "run")) == ["checkpoint_1_1.pt", LAST]
    return tmp_path / "run", training(*SAVES, "2", "--save-dir", tmp_path / "run")


def test_a_full_disk_is_one_line_and_the_next_start_goes_on(begun, trains, outcome):
    folder, words = begun
    before = checkpoints(folder)
    told = outcome(lambda: trains(*words), megabytes=4000, seconds=60, largest=10_000)
    assert told == f"cannot write a checkpoint to {folder}: File too large"
    assert checkpoints(folder) == before
    trains(*words)
    assert "checkpoint_1_2.pt" in checkpoints(folder)


@pytest.mark.parametrize("end", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_copy_that_is_cut_has_no_checkpoints_name(begun, trains, monkeypatch, end):
    folder, words = begun
    before = checkpoints(folder)

    def copy_half(source, target):
        with open(source, "rb") as whole, open(target, "wb") as half:
            half.write(whole.read(1000))
        raise end

    with monkeypatch.context() as during:
        during.setattr(shutil, "copyfile", copy_half)
        with pytest.raises(UsageError if isinstance(end, OSError) else KeyboardInterrupt):
            trains(*words)
    assert checkpoints(folder)[LAST] == before[LAST]
    trains(*words)
    after = checkpoints(folder)
    assert after[LAST] == after["checkpoint_1_2.pt"] and not list(folder.glob("*.tmp"))
