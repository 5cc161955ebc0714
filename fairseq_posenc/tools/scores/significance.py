"""How likely a difference of two trainings is by the choice of sentences, by sacreBLEU's own test.

Its paired bootstrap (``sacrebleu … --paired-bs``) tells of two outputs. It knows nothing of seeds;
intervals over seeds are in :mod:`.intervals`.
"""

from types import SimpleNamespace
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np
from sacrebleu.metrics.base import Signature
from sacrebleu.significance import PairedTest

from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS, corpus_score

EQUAL = "equal"
"""In the place of a p-value: sacreBLEU's test counts samples that differ by more than the scores,
and would call no difference a significant one."""


def paired_bootstrap(
    metric: str,
    outputs: Sequence[Tuple[str, Sequence[Any]]],
    references: Optional[Sequence[Sequence[str]]],
    language: str,
) -> Tuple[List[Union[float, str, None]], str]:
    """Return the p-value of each output against the first, whose own is None, and the signature.

    That of an output with the same score is ``EQUAL``.

    Args:
        metric: one of plain text, or one of which sentences have scores.
        outputs: names with the plain text of the translations, or their statistics where the metric
            is of another kind.
        references: plain text, a list for each reference of a sentence; None where statistics are
            given.
    """
    chosen: Any = _Segments(metric)
    if metric in SACREBLEU_METRICS:
        chosen = SACREBLEU_METRICS[metric](language)
    lists = None if references is None else [list(lines) for lines in references]
    test = PairedTest([*outputs], {metric: chosen}, lists, test_type="bs")
    signatures, results = test()
    [(name, signature)] = signatures.items()
    rows: List[Any] = list(results[name])
    first, *rest = rows
    values = [EQUAL if result.score == first.score else result.p_value for result in rest]
    return [None, *values], str(signature)


class _Segments:
    """What sacreBLEU's test asks of a metric, for scores of sentences from elsewhere."""

    def __init__(self, name: str):
        self._name = name
        self._signature = Signature({"num_refs": 0})

    def get_signature(self) -> Signature:
        return self._signature

    def _extract_corpus_statistics(self, outputs: np.ndarray, references: None) -> np.ndarray:
        return np.array(outputs)

    def _compute_score_from_stats(self, total: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(name=self._name, score=corpus_score(self._name, total.tolist()))

    def _aggregate_and_compute(self, rows: np.ndarray) -> SimpleNamespace:
        return self._compute_score_from_stats(np.sum(rows, axis=0))
