"""The metrics of GLUE, each over a whole set at once; scikit-learn and scipy compute them.

Where a metric is not defined, because all predictions or all labels are the same, it is 0:
Matthews (as in scikit-learn), Pearson, Spearman, and F1 without a positive. So are the
correlations of a model that has diverged to NaN.
"""

import warnings
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError


def _library(name: str) -> Any:
    # late: every start of fairseq imports this file, and these libraries take a second
    try:
        return import_module(name)
    except ImportError:
        raise UsageError("scores need two libraries: pip install scikit-learn scipy") from None


def _accuracy(targets: np.ndarray, predictions: np.ndarray) -> float:
    return _library("sklearn.metrics").accuracy_score(targets, predictions)


def _f1(targets: np.ndarray, predictions: np.ndarray) -> float:
    return _library("sklearn.metrics").f1_score(targets, predictions, zero_division=0)


def _matthews(targets: np.ndarray, predictions: np.ndarray) -> float:
    return _library("sklearn.metrics").matthews_corrcoef(targets, predictions)


def _pearson(targets: np.ndarray, predictions: np.ndarray) -> float:
    return _correlation(_library("scipy.stats").pearsonr, targets, predictions)


def _spearman(targets: np.ndarray, predictions: np.ndarray) -> float:
    return _correlation(_library("scipy.stats").spearmanr, targets, predictions)


def _correlation(measure: Callable, targets: np.ndarray, predictions: np.ndarray) -> float:
    if len(targets) < 2 or not np.isfinite(predictions).all():
        return 0.0
    found = measure(targets, predictions)[0]
    return found if np.isfinite(found) else 0.0


def _mean(*parts: Callable) -> Callable:
    return lambda targets, predictions: np.mean([part(targets, predictions) for part in parts])


METRICS: Dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "accuracy_and_f1": _mean(_accuracy, _f1),
    "matthews": _matthews,
    "pearson": _pearson,
    "spearman": _spearman,
    "pearson_and_spearman": _mean(_pearson, _spearman),
}


def score(
    names: Iterable[str], targets: Sequence[Any], predictions: Sequence[Any]
) -> Dict[str, float]:
    """Score predictions.

    Args:
        names: of :data:`METRICS`. ``f1`` is that of label 1, of two; those with ``and`` are means,
            as GLUE averages where a task has two metrics.
        targets, predictions: (examples,) each; numbers of labels, or scores.

    Returns:
        Metrics by name, in percent (-100 to 100), not rounded.
    """
    both = np.asarray(targets), np.asarray(predictions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what is not defined
        return {name: 100 * float(METRICS[name](*both)) for name in names}
