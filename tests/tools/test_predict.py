"""Checkpoints that predict nothing; what others predict is tested with their tasks."""

from types import SimpleNamespace

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import predict as module
from fairseq_posenc.tools.predict import load


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"there is no checkpoint {tmp_path}/a.pt"):
        load(f"{tmp_path}/a.pt", "data")


def test_a_checkpoint_that_predicts_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.pt").write_text("")
    found = [None], SimpleNamespace(task=SimpleNamespace(_name="posenc_masked_lm")), object()
    monkeypatch.setattr(
        module.checkpoint_utils, "load_model_ensemble_and_task", lambda *_, **__: found
    )
    with pytest.raises(UsageError, match="--task posenc_masked_lm, which predicts nothing"):
        load(str(tmp_path / "a.pt"), "data")
