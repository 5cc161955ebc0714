import json
from types import SimpleNamespace

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import predict as module
from fairseq_posenc.tools.predict import load, predict


class Task:
    """Predicts the square of each example's number, in an order of its own."""

    predictions_suffix = "json"

    def load_dataset(self, subset):
        if subset != "valid":
            raise UsageError(f"no split '{subset}'")

    def dataset(self, subset):
        return range(4)

    def max_positions(self):
        return 16

    def get_batch_iterator(self, dataset, max_tokens, max_positions):
        self.max_tokens = max_tokens
        return SimpleNamespace(next_epoch_itr=lambda shuffle: [[3, 1], [0, 2]])

    def predict(self, model, sample):
        assert not model.training and not torch.is_grad_enabled()
        return [(number, number**2) for number in sample]

    def score(self, subset, pairs):
        return {"last": float(pairs[-1][1])}

    def write(self, subset, pairs, stream):
        json.dump(pairs, stream)


@pytest.fixture
def arguments(monkeypatch, tmp_path):
    """What `predict` needs, with a task that needs no checkpoint."""
    task, model = Task(), torch.nn.Linear(1, 1)
    model.max_positions = lambda: 8
    monkeypatch.setattr(module, "load", lambda path, data: (model, task))
    return {"path": "x", "data": "y", "output": str(tmp_path / "out"), "notes": {}, "cpu": True}


def test_predictions_are_written_in_the_order_of_examples(arguments, tmp_path):
    result = predict(subsets=["valid"], command=["predict.py"], **arguments)
    with open(tmp_path / "out" / "predictions.valid.json") as stream:
        assert json.load(stream) == [[0, 0], [1, 1], [2, 4], [3, 9]]
    with open(tmp_path / "out" / "score.json") as stream:
        assert json.load(stream) == result
    assert result["scores"] == {"valid": {"last": 9.0}} and result["examples"] == {"valid": 4}
    assert {"torch", "scikit-learn", "scipy"} <= set(result["versions"])


def test_no_score_is_left_when_a_subset_is_missing(arguments, tmp_path):
    with pytest.raises(UsageError, match="no split 'other'"):
        predict(subsets=["valid", "other"], **arguments)
    assert not (tmp_path / "out" / "score.json").exists()


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
