"""The metrics of GLUE, each over a whole set at once; scikit-learn and scipy compute them.

Where a metric is not defined, because all predictions or all labels are the same, it is 0:
Matthews (as in scikit-learn), Pearson, Spearman, and F1 without a positive. So are the
correlations of a model that has diverged to NaN.
"""

import warnings
from importlib import import_module
from typing import Any, Dict, Iterable, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError

# functions of scikit-learn and scipy; a tuple: the mean of others, as GLUE averages two metrics
METRICS: Dict[str, Any] = {
    "accuracy": "sklearn.metrics.accuracy_score",
    "f1": "sklearn.metrics.f1_score",
    "accuracy_and_f1": ("accuracy", "f1"),
    "matthews": "sklearn.metrics.matthews_corrcoef",
    "pearson": "scipy.stats.pearsonr",
    "spearman": "scipy.stats.spearmanr",
    "pearson_and_spearman": ("pearson", "spearman"),
}


def score(
    names: Iterable[str], targets: Sequence[Any], predictions: Sequence[Any]
) -> Dict[str, float]:
    """Return metrics by name, in percent (-100 to 100), not rounded.

    Args:
        names: of :data:`METRICS`. ``f1`` is that of label 1, of two.
        targets, predictions: (examples,) each; numbers of labels, or scores.

    Raises:
        UsageError: scikit-learn or scipy is missing.
    """
    arrays = np.asarray(targets), np.asarray(predictions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about undefined metrics
        return {name: 100 * float(_measure(name, *arrays)) for name in names}


def _measure(name: str, targets: np.ndarray, predictions: np.ndarray) -> Any:
    if isinstance(METRICS[name], tuple):
        return np.mean([_measure(part, targets, predictions) for part in METRICS[name]])
    module, function = METRICS[name].rsplit(".", 1)
    try:
        # imported here, as training without GLUE needs neither library
        measure = getattr(import_module(module), function)
    except ImportError:
        raise UsageError("scores need two libraries: pip install scikit-learn scipy") from None
    if module == "sklearn.metrics":
        options = {"zero_division": 0} if name == "f1" else {}
        return measure(targets, predictions, **options)
    if len(targets) < 2 or not np.isfinite(predictions).all():
        return 0.0
    correlation = measure(targets, predictions)[0]
    return correlation if np.isfinite(correlation) else 0.0
