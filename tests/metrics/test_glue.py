"""GLUE's metrics against formulas written out."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest

from fairseq_posenc.metrics.glue import METRICS, score

pytest.importorskip("scipy")
pytest.importorskip("sklearn")


def of_labels(targets, predictions):
    count = Counter(zip(targets, predictions))
    hits, alarms, rejections, misses = count[1, 1], count[0, 1], count[0, 0], count[1, 0]
    squares = (hits + alarms) * (hits + misses) * (rejections + alarms) * (rejections + misses)
    matthews = hits * rejections - alarms * misses
    found = {
        "accuracy": (hits + rejections) / len(targets),
        "f1": 2 * hits / max(2 * hits + alarms + misses, 1),
        "matthews": matthews / math.sqrt(squares) if squares else 0.0,
    }
    return {**found, "accuracy_and_f1": (found["accuracy"] + found["f1"]) / 2}


def correlation(one, other):
    """Pearson's correlation, 0 where a side does not vary."""
    one, other = ([v - sum(side) / len(side) for v in side] for side in (one, other))
    squares = sum(v * v for v in one) * sum(v * v for v in other)
    return sum(v * w for v, w in zip(one, other)) / math.sqrt(squares) if squares else 0.0


def ranks(side):
    """The mean of the places that each value takes among all."""
    return [sum(v < w for v in side) + (sum(v == w for v in side) + 1) / 2 for w in side]


def of_scores(targets, predictions):
    pearson = correlation(targets, predictions)
    spearman = correlation(ranks(targets), ranks(predictions))
    both = (pearson + spearman) / 2
    return {"pearson": pearson, "spearman": spearman, "pearson_and_spearman": both}


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_metrics_are_those_of_their_formulas_in_percent_without_a_warning(count):
    rng = np.random.default_rng(count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in range(20):
            # now and then all the same
            labels = rng.integers(0, 1 + (case % 5 > 0), (2, count)).tolist()
            values = (rng.integers(0, 1 + 4 * (case % 5 > 1), (2, count)) / 4).tolist()
            expected = {**of_labels(*labels), **of_scores(*values)}
            assert expected.keys() == METRICS.keys()
            for name, value in expected.items():
                found = score([name], *(values if "pear" in name else labels))[name]
                assert found == pytest.approx(100 * value, abs=1e-6), (name, labels, values)
                # a checkpoint that holds anything else is refused on loading
                assert type(found) is float


def test_diverged_scores_correlate_with_nothing():
    assert score(["pearson"], [1.0, 2.0, 3.0], [np.nan] * 3) == {"pearson": 0.0}
