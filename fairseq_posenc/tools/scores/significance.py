"""How likely a difference of two trainings is by the choice of sentences, by sacreBLEU's own test.

Its paired bootstrap (``sacrebleu … --paired-bs``) tells of two outputs. It knows nothing of seeds;
intervals over seeds are in :mod:`.intervals`.
"""

from types import SimpleNamespace
from typing import Any, List, Sequence, Tuple, cast

import numpy as np
from sacrebleu.metrics.base import Signature
from sacrebleu.significance import PairedTest, Result

from fairseq_posenc.tools.scores.metrics import corpus_score

EQUAL = "equal"
"""In the place of a p-value: sacreBLEU's test counts samples that differ by more than the scores,
and would call no difference a significant one."""
# a row of numbers per sentence
Rows = Sequence[Sequence[float]]


def paired_bootstrap(metric: str, first: Rows, second: Rows) -> Tuple[str, str]:
    """Return the p-value of the difference of two outputs, and the test's signature.

    The p-value of equal scores is ``EQUAL``.

    Args:
        metric: its name.
        first, second: the outputs' statistics of its base metric.
    """
    pair: Any = [("first", first), ("second", second)]
    metrics: Any = {metric: _Statistics(metric)}
    signatures, results = PairedTest(pair, metrics, None, test_type="bs")()
    first_result, second_result = cast(List[Result], results[metric])
    are_equal = second_result.score == first_result.score
    p_value = EQUAL if are_equal else f"{second_result.p_value:.4f}"
    return p_value, str(signatures[metric])


class _Statistics:
    """What sacreBLEU's test asks of a metric, where statistics stand in the place of outputs."""

    def __init__(self, metric: str):
        self._metric = metric
        self._signature = Signature({"num_refs": None})

    def get_signature(self) -> Signature:
        return self._signature

    def _extract_corpus_statistics(self, outputs: Rows, references: None) -> np.ndarray:
        return np.array(outputs)

    def _compute_score_from_stats(self, total: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(name=self._metric, score=corpus_score(self._metric, total.tolist()))

    def _aggregate_and_compute(self, rows: np.ndarray) -> SimpleNamespace:
        return self._compute_score_from_stats(np.sum(rows, axis=0))
