"""Checkpoints of fairseq, which come file by file, are continued or left alone."""

import errno
import itertools
import logging
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import DamagedCheckpoint, UsageError
from recipes.lib.newest_checkpoint import restore
from tests.faults.conftest import KILLED, chosen


def save(folder, updates, value=None, epoch=None):
    """Save as fairseq-train does: a checkpoint, its copies to checkpoint_{best,last}.pt.

    ``value`` is of the validation, the higher the better; with ``epoch``, that is at its end.
    """
    weights = torch.full((3000,), float(updates))
    history = [{"num_updates": updates}]
    state = {"model": {"a": weights}, "optimizer_history": history, "last_optimizer_state": {}}
    trainer = SimpleNamespace(
        data_parallel_rank=0, should_save_checkpoint_on_current_rank=True, checkpoint_suffix="",
        consolidate_optimizer=lambda: None, get_num_updates=lambda: updates, task=None,
    )  # fmt: skip
    trainer.save_checkpoint = lambda path, extra: checkpoint_utils.torch_persistent_save(
        {**state, "extra_state": extra}, path
    )
    iterator = SimpleNamespace(
        epoch=epoch or 1, end_of_epoch=lambda: epoch is not None, state_dict=dict
    )
    cfg = CheckpointConfig(
        save_dir=str(folder), save_interval_updates=6, keep_interval_updates=2, keep_last_epochs=1,
        maximize_best_checkpoint_metric=True,
    )  # fmt: skip
    checkpoint_utils.save_checkpoint(cfg, trainer, iterator, value)


def newest(folder):
    """The updates of the newest checkpoint, whose weights are those of that update."""
    state = load_checkpoint(restore(str(folder)))
    (update,) = set(state["model"]["a"].tolist())
    assert update == state["optimizer_history"][-1]["num_updates"]
    return update


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "disk full"])
def test_a_training_that_ends_while_it_saves_can_be_continued(faulty, tmp_path, kill):
    logging.disable(logging.CRITICAL)
    try:
        for number in chosen(faulty(lambda: save(tmp_path, 0), tmp_path), 8):
            save(tmp_path, 6)
            save(tmp_path, 12)
            outcome = faulty(lambda: save(tmp_path, 18), tmp_path, number, kill)
            assert outcome == KILLED if kill else outcome.startswith("cannot write")
            assert kill or not list(tmp_path.glob("*.tmp"))
            assert newest(tmp_path) in (12, 18)
            save(tmp_path, 18)
            assert newest(tmp_path) == 18
            for path in tmp_path.iterdir():
                path.unlink()
    finally:
        logging.disable(logging.NOTSET)


def updates_of(path):
    return load_checkpoint(str(path))["optimizer_history"][-1]["num_updates"]


@pytest.mark.parametrize("value, best", [(3.0, 12), (2.0, 12), (1.0, 6)], ids=str)
@pytest.mark.parametrize("per_epoch", [True, False], ids=["epochs", "updates"])
def test_the_best_is_that_which_the_newest_has_counted(
    faulty, tmp_path, monkeypatch, value, best, per_epoch
):
    monkeypatch.setattr(checkpoint_utils.save_checkpoint, "best", 2.0, raising=False)
    restored = set()

    def second():
        save(tmp_path, 12, value, 2 if per_epoch else None)

    for number in itertools.count():
        save(tmp_path, 6, 2.0, 1 if per_epoch else None)
        outcome = faulty(second, tmp_path, number, kill=True)
        path = restore(str(tmp_path), best=True)
        restored.add(newest := updates_of(path))
        assert updates_of(tmp_path / "checkpoint_last.pt") == newest
        assert updates_of(tmp_path / "checkpoint_best.pt") == (best if newest == 12 else 6)
        for left in tmp_path.iterdir():
            left.unlink()
        if outcome != KILLED:
            break
    # before the checkpoint, in each copy, and after them
    assert number >= (5 if best == 12 else 3) and restored == {6, 12}


def test_without_the_best_checkpoint_nothing_is_continued_and_nothing_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_utils.save_checkpoint, "best", 2.0, raising=False)
    save(tmp_path, 6, 2.0, 1)
    save(tmp_path, 12, 1.0, 2)
    best = tmp_path / "checkpoint_best.pt"
    best.write_bytes(best.read_bytes()[:-100])
    half = best.read_bytes()
    with pytest.raises(UsageError, match="no checkpoint of the best validation so far, 2.0: put"):
        restore(str(tmp_path), best=True)
    assert (tmp_path / "checkpoint_best.pt.damaged").read_bytes() == half
    # where the last checkpoints are averaged, the best one is not needed
    assert restore(str(tmp_path)) == str(tmp_path / "checkpoint2.pt")


@pytest.mark.parametrize("error", [OSError(errno.ESTALE, "Stale file handle"), MemoryError()])
def test_what_may_be_over_in_a_moment_is_no_damage(tmp_path, monkeypatch, error):
    save(tmp_path, 6)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def failing(*args, **kwargs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("zipfile.ZipFile.testzip", failing)
        with pytest.raises(UsageError, match="^cannot read checkpoint ") as told:
            restore(str(tmp_path))
    assert not isinstance(told.value, DamagedCheckpoint) and "delete" not in str(told.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert updates_of(restore(str(tmp_path))) == 6


def test_the_most_updates_win_and_averages_do_not_count(tmp_path):
    assert restore(str(tmp_path)) is None and restore(str(tmp_path / "missing")) is None
    state = {"last_optimizer_state": {}, "model": {}}
    for name, updates in (("1", 30), ("2", 10), ("_last", 20), ("_average", 60)):
        state["optimizer_history"] = [{"num_updates": updates}]
        state["last_optimizer_state"] = None if name == "_average" else {}
        torch.save(state, tmp_path / f"checkpoint{name}.pt")
    assert restore(str(tmp_path)) == str(tmp_path / "checkpoint1.pt")
    assert updates_of(tmp_path / "checkpoint_last.pt") == 30


def test_what_is_damaged_is_moved_aside_and_never_deleted(tmp_path, capsys):
    last = tmp_path / "checkpoint_last.pt"
    spoilt = []
    for spoil in (lambda data: data[:-9], lambda data: b"", lambda data: data[:900] + b"?" * 99
                  + data[999:]):  # fmt: skip
        save(tmp_path, 6)
        spoilt.append(spoil(last.read_bytes()))
        last.write_bytes(spoilt[-1])
        assert updates_of(restore(str(tmp_path))) == 6
        assert "is damaged: moved to" in capsys.readouterr().err
    assert [path.read_bytes() for path in sorted(tmp_path.glob("*.damaged*"))] == spoilt
    assert updates_of(last) == 6


def test_the_checkpoint_of_another_seed_is_not_continued(tmp_path):
    save(tmp_path, 6)
    path = str(tmp_path / "checkpoint_last.pt")
    torch.save({**load_checkpoint(path), "cfg": {"common": {"seed": 1}}}, path)
    for other in tmp_path.glob("checkpoint_[1b]*"):
        other.unlink()
    settings = tmp_path / "settings"
    settings.write_text("--seed 1\n")
    assert restore(str(tmp_path)) == path
    settings.write_text("--seed 2\n--note seed=2\n")
    with pytest.raises(
        UsageError, match="checkpoint_last.pt is of seed 1, and .* of seed 2: it is"
    ):
        restore(str(tmp_path))
