"""The metrics of GLUE, each over a whole set at once.

Where a metric is not defined, because all predictions or all labels are the same, it is 0:
Matthews, Pearson, Spearman, and F1 without a positive. So are the correlations of a model that has
diverged to NaN.
"""

import math
from typing import Any, Dict, Iterable, Sequence

import numpy as np


def score(
    names: Iterable[str], targets: Sequence[Any], predictions: Sequence[Any]
) -> Dict[str, float]:
    """Return metrics by name, in percent (-100 to 100), not rounded.

    Args:
        names: of :data:`METRICS`. ``f1`` is that of label 1, of two.
        targets, predictions: (examples,) each; numbers of labels, or scores.
    """
    arrays = np.asarray(targets), np.asarray(predictions)
    return {name: measure(name, *arrays, np.ones(len(targets))) for name in names}


def measure(name: str, targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    """Return a metric, in percent, of examples that are drawn so many ``times``, (examples,)."""
    parts = name.split("_and_")  # two metrics, which GLUE averages
    values = [_MEASURES[part](targets, predictions, times) for part in parts]
    return 100 * float(np.mean(values))


def _accuracy(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    return times @ (targets == predictions) / times.sum()


def _f1(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    positives, predicted = times @ (targets == 1), times @ (predictions == 1)
    true_positives = times @ ((targets == 1) & (predictions == 1))
    return 2 * true_positives / max(positives + predicted, 1)


def _pearson(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    if not np.isfinite(predictions).all():
        return 0.0
    targets, predictions = (
        values - times @ values / times.sum() for values in (targets, predictions)
    )
    spread = (times @ targets**2) * (times @ predictions**2)
    return times @ (targets * predictions) / math.sqrt(spread) if spread > 0 else 0.0


def _matthews(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    # of two classes it is their correlation (Matthews 1975)
    return _pearson(targets == 1, predictions == 1, times)


def _spearman(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    if not np.isfinite(predictions).all():
        return 0.0
    return _pearson(_ranks(targets, times), _ranks(predictions, times), times)


def _ranks(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the mean ranks of values that are there so many times, up to a constant."""
    # a value that is there n times has the mean of n ranks: those before it, and half of its own
    order = np.unique(values, return_inverse=True)[1]
    drawn = np.bincount(order, weights=times)
    return (np.cumsum(drawn) - drawn / 2)[order]


_MEASURES = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
    "pearson": _pearson,
    "spearman": _spearman,
}
METRICS = (*_MEASURES, "accuracy_and_f1", "pearson_and_spearman")
