"""Checkpoints of fairseq and downloads, which come bit by bit, are continued or left alone."""

import logging
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig

from fairseq_posenc.checkpoints import newest_whole
from fairseq_posenc.compat import load_checkpoint
from fairseq_posenc.data.corpus.mirror.server import MirrorServer
from fairseq_posenc.data.downloads.archives import Checksum
from fairseq_posenc.data.downloads.download import download

CONTENT = bytes(range(256)) * 12_000
SHA1 = Checksum.parse("0ac5afbde3bc0fd3f1a81b6c3cb3cd2cad5ba1ba")


def save(folder, updates):
    """Save as fairseq-train does after some updates: a checkpoint, copied to checkpoint_last.pt."""
    weights = torch.full((3000,), float(updates))
    history = [{"num_updates": updates}]
    state = {"model": {"a": weights}, "optimizer_history": history, "last_optimizer_state": {}}
    trainer = SimpleNamespace(
        data_parallel_rank=0, should_save_checkpoint_on_current_rank=True, checkpoint_suffix="",
        consolidate_optimizer=lambda: None, get_num_updates=lambda: updates, task=None,
        save_checkpoint=lambda path, _: checkpoint_utils.torch_persistent_save(state, path),
    )  # fmt: skip
    epoch = SimpleNamespace(epoch=1, end_of_epoch=lambda: False, state_dict=dict)
    cfg = CheckpointConfig(save_dir=str(folder), save_interval_updates=6, keep_interval_updates=2)
    checkpoint_utils.save_checkpoint(cfg, trainer, epoch, None)


def newest(folder):
    """The updates of the newest checkpoint, whose weights are those of that update."""
    state = load_checkpoint(newest_whole(str(folder)))
    (update,) = set(state["model"]["a"].tolist())
    assert update == state["optimizer_history"][-1]["num_updates"]
    return update


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "disk full"])
def test_a_training_that_ends_while_it_saves_can_be_continued(faults, tmp_path, monkeypatch, kill):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # fairseq tries three times
    logging.disable(logging.CRITICAL)
    try:
        for number in faults.chosen(faults.faulty(lambda: save(tmp_path, 0), tmp_path), 8):
            save(tmp_path, 6)
            save(tmp_path, 12)
            outcome = faults.faulty(lambda: save(tmp_path, 18), tmp_path, number, kill)
            assert outcome == "killed" if kill else outcome.startswith("failed: ")
            assert newest(tmp_path) in (12, 18)
            save(tmp_path, 18)
            assert newest(tmp_path) == 18
            for path in tmp_path.iterdir():
                path.unlink()
    finally:
        logging.disable(logging.NOTSET)


@pytest.fixture
def url(tmp_path, monkeypatch):
    """The address of a file."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "file.bin").write_bytes(CONTENT)
    with MirrorServer(str(tmp_path / "site")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"{server.url}/file.bin"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "disk full"])
def test_a_download_that_ends_anywhere_is_continued(faults, url, tmp_path, kill):
    folder, path = tmp_path / "raw", tmp_path / "raw" / "file.bin"

    def load():
        download([url], str(path), SHA1, quiet=True)

    for number in faults.chosen(faults.faulty(load, folder), 4):
        for old in folder.iterdir():
            old.unlink()
        outcome = faults.faulty(load, folder, number, kill)
        # blocks come as the network gives them, at times in fewer writes
        known = ("killed", "done") if kill else ("told: cannot write", "done")
        assert outcome.startswith(known) and (number or not outcome.startswith("done"))
        assert not path.exists() or path.read_bytes() == CONTENT
        load()
        assert path.read_bytes() == CONTENT
        assert [left.name for left in folder.iterdir() if "note" not in left.name] == ["file.bin"]


def test_a_limit_of_the_kernel_ends_a_download_in_one_line(faults, url, tmp_path):
    folder, path = tmp_path / "raw", tmp_path / "raw" / "file.bin"

    def load():
        download([url], str(path), SHA1, quiet=True)

    outcome = faults.faulty(load, folder, largest=len(CONTENT) // 2)
    assert outcome.startswith(f"told: cannot write {path}")
    assert not path.exists() and (folder / "file.bin.part").stat().st_size == len(CONTENT) // 2
    load()
    assert path.read_bytes() == CONTENT
