"""Which checkpoint a killed run continues from."""

import torch

from fairseq_posenc.tools.recipe.newest_checkpoint import restore


def save(path, updates, optimiser=True):
    state = {"last_optimizer_state": {} if optimiser else None, "model": {}}
    torch.save({**state, "optimizer_history": [{"num_updates": updates}]}, path)


def test_no_checkpoint_is_no_error(tmp_path):
    assert restore(str(tmp_path)) is None
    assert restore(str(tmp_path / "missing")) is None


def test_the_most_updates_win_whatever_the_name(tmp_path):
    save(tmp_path / "checkpoint_last.pt", 20)
    save(tmp_path / "checkpoint1.pt", 30)
    save(tmp_path / "checkpoint2.pt", 10)
    assert restore(str(tmp_path)) == str(tmp_path / "checkpoint1.pt")


def test_half_a_file_and_averages_do_not_count(tmp_path):
    save(tmp_path / "checkpoint1.pt", 10)
    save(tmp_path / "checkpoint_last.pt", 20)
    whole = (tmp_path / "checkpoint_last.pt").read_bytes()
    (tmp_path / "checkpoint_last.pt").write_bytes(whole[: len(whole) // 2])
    save(tmp_path / "checkpoint_average.pt", 30, optimiser=False)
    assert restore(str(tmp_path)) == str(tmp_path / "checkpoint1.pt")
