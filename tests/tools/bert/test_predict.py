"""Checkpoints that predict nothing; what others predict is tested with their tasks."""

from types import SimpleNamespace

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import predict as module
from fairseq_posenc.tools.bert.predict import load


def test_predictions_come_in_the_order_of_the_examples():
    task = SimpleNamespace(
        load_dataset=lambda subset: None, dataset=lambda subset: range(4), max_positions=lambda: 16,
        get_batch_iterator=lambda *_, **__: SimpleNamespace(
            next_epoch_itr=lambda shuffle: [[3, 1], [0, 2]]
        ),
        predict=lambda model, sample: [(number, model.training) for number in sample],
    )  # fmt: skip
    model = torch.nn.Linear(1, 1).eval()
    model.max_positions = lambda: 8
    expected = [(number, False) for number in range(4)]
    assert module.predictions(model, task, "valid", 100) == expected


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"there is no checkpoint {tmp_path}/a.pt"):
        load(f"{tmp_path}/a.pt", "data")


def test_a_checkpoint_that_predicts_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.pt").write_text("")
    found = [None], SimpleNamespace(task=SimpleNamespace(_name="posenc_masked_lm")), object()
    state, utils = {"cfg": {"task": {}}}, module.checkpoint_utils
    monkeypatch.setattr(utils, "load_checkpoint_to_cpu", lambda *_: state)
    monkeypatch.setattr(utils, "load_model_ensemble_and_task", lambda *_, **__: found)
    with pytest.raises(UsageError, match="--task posenc_masked_lm, which predicts nothing"):
        load(str(tmp_path / "a.pt"), "data")
