"""Which checkpoint a killed run continues from."""

import torch

from fairseq_posenc.tools.recipe.newest_checkpoint import restore


def save(path, updates, optimiser=True):
    state = {"last_optimizer_state": {} if optimiser else None, "model": {}}
    torch.save({**state, "optimizer_history": [{"num_updates": updates}]}, path)


def test_the_most_updates_win_and_half_files_averages_and_none_do_not_count(tmp_path):
    assert restore(str(tmp_path)) is None and restore(str(tmp_path / "missing")) is None
    for name, updates in (("1", 30), ("2", 10), ("_last", 20)):
        save(tmp_path / f"checkpoint{name}.pt", updates)
    save(tmp_path / "checkpoint_average.pt", 60, optimiser=False)
    whole = (tmp_path / "checkpoint1.pt").read_bytes()
    (tmp_path / "checkpoint3.pt").write_bytes(whole[: len(whole) // 2])
    assert restore(str(tmp_path)) == str(tmp_path / "checkpoint1.pt")
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == whole
    assert (tmp_path / "checkpoint3.pt.damaged").exists()
