import warnings

import numpy as np
import pytest

from fairseq_posenc.metrics.glue import METRICS, score

stats = pytest.importorskip("scipy.stats")
metrics = pytest.importorskip("sklearn.metrics")

EXPECTED = {
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,
    "matthews": metrics.matthews_corrcoef,
    "pearson": lambda targets, predictions: stats.pearsonr(targets, predictions)[0],
    "spearman": lambda targets, predictions: stats.spearmanr(targets, predictions)[0],
}
EXPECTED["accuracy_and_f1"] = lambda *both: (
    (EXPECTED["accuracy"](*both) + EXPECTED["f1"](*both)) / 2
)
EXPECTED["pearson_and_spearman"] = lambda *both: (
    (EXPECTED["pearson"](*both) + EXPECTED["spearman"](*both)) / 2
)


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_those_of_scikit_learn_and_scipy_in_percent(name):
    generator = np.random.default_rng(1)
    targets = generator.integers(0, 2, 500)
    predictions = np.where(generator.random(500) < 0.8, targets, 1 - targets)
    if "pearson" in name or "spearman" in name:
        predictions = targets + generator.random(500)
    found = score([name], targets.tolist(), predictions.tolist())[name]
    assert abs(found / 100 - EXPECTED[name](targets, predictions)) < 1e-12
    assert type(found) is float  # a checkpoint that holds anything else is refused on loading


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("targets", [[0, 1, 0], [1, 1, 1], [0, 0, 0], [1]])
def test_predictions_that_are_all_the_same_are_scored_without_a_warning(name, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = score([name], targets, [0] * len(targets))[name]
    if "accuracy" in name:
        assert found > 0 or 0 not in targets
    else:
        assert found == 0


def test_diverged_scores_correlate_with_nothing():
    assert score(["pearson"], [1.0, 2.0, 3.0], [np.nan] * 3) == {"pearson": 0.0}
