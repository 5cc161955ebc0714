import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics

from fairseq_posenc.criterions.sentence_prediction import (
    PosencSentencePredictionCriterion,
    PosencSentencePredictionCriterionConfig,
)
from fairseq_posenc.errors import UsageError


class Model(torch.nn.Module):
    """Says what it was given."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = torch.tensor(outputs, requires_grad=True)

    def forward(self, classification_head_name, features_only, **inputs):
        assert classification_head_name == "head" and features_only
        return self.outputs, {}


def criterion(regression=False, best="loss", maximise=False):
    description = SimpleNamespace(regression=regression)
    cfg = PosencSentencePredictionCriterionConfig(
        classification_head_name="head",
        best_checkpoint_metric=best,
        maximize_best_checkpoint_metric=maximise,
    )
    names = ["accuracy", "f1"]
    task = SimpleNamespace(
        description=description, target_dictionary=None, metric_names=names, cfg=cfg
    )
    return PosencSentencePredictionCriterion(cfg, task)


def sample(targets):
    count = len(targets)
    return {
        "id": torch.arange(count) + 10,
        "net_input": {},
        "ntokens": 7 * count,
        "target": torch.tensor(targets),
    }


def logged(*logs):
    with metrics.aggregate() as aggregator:
        PosencSentencePredictionCriterion.reduce_metrics(list(logs))
    return aggregator.get_smoothed_values()


def test_labels_have_a_cross_entropy_that_is_logged_in_bits_per_example():
    model = Model([[2.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    loss, size, log = criterion()(model, sample([0, 1]))
    expected = sum(
        math.log(sum(map(math.exp, row))) - row[label]
        for row, label in (([2, 0, 1], 0), ([0, 0, 3], 1))
    )
    assert loss.item() == pytest.approx(expected) and size == 2
    assert logged(log)["loss"] == pytest.approx(expected / 2 / math.log(2), abs=1e-4)
    loss.backward()
    assert model.outputs.grad is not None


def test_scores_have_a_squared_error_that_is_logged_as_it_is():
    loss, size, log = criterion(regression=True)(
        Model([[2.0], [1.0]]), sample([torch.tensor(2.5, dtype=torch.float64), 3.0])
    )
    assert loss.item() == pytest.approx(0.25 + 4) and size == 2
    assert logged(log) == {"loss": pytest.approx(2.125)}


def test_training_logs_the_accuracy_of_all_examples_since_the_last_time():
    first = criterion()(Model([[2.0, 0.0]]), sample([0]))[2]
    second = criterion()(Model([[2.0, 0.0]] * 4), sample([1, 0, 1, 1]))[2]
    assert logged(first, second)["accuracy"] == 40
    assert "predictions" not in first


@pytest.mark.parametrize("regression, expected", [(False, (0, 0)), (True, (2.5, 0.0))])
def test_validation_hands_over_predictions_and_targets_by_example(regression, expected):
    model = Model([[2.5] if regression else [2.0, 0.0]]).eval()
    log = criterion(regression)(model, sample([0.0 if regression else 0]))[2]
    assert log["predictions"] == {10: expected}
    assert "accuracy" not in logged(log)


@pytest.mark.parametrize(
    "best, maximise, message",
    [
        ("matthews", True, "the task has loss, accuracy, f1"),
        ("f1", False, "goes with --maximize-best-checkpoint-metric"),
        ("loss", True, "goes without --maximize-best-checkpoint-metric"),
    ],
)
def test_a_metric_that_would_choose_a_wrong_checkpoint_is_refused(best, maximise, message):
    with pytest.raises(UsageError, match=message):
        criterion(best=best, maximise=maximise)


def test_a_set_without_labels_is_no_validation_set():
    unlabelled = sample([0])
    del unlabelled["target"]
    with pytest.raises(UsageError, match="set without labels"):
        criterion()(Model([[2.0, 0.0]]), unlabelled)
