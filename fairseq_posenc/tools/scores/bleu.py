"""The metrics of translations, all through sacreBLEU, which signs them."""

import math
from typing import Any, Dict, Iterable, Optional, Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.texts import TestSet, language_code

METRICS = {
    "sacrebleu": "sacreBLEU",
    "sacrebleu_lowercase": "sacreBLEU lower-cased",
    "tokenised_bleu": "tokenised BLEU",
    "chrf": "chrF",
}
# computed from the statistics of another metric, so that older results have them too
DERIVED = {"bleu_without_penalty": "sacrebleu", "length_ratio": "tokenised_bleu"}
TITLES = {
    **METRICS,
    "bleu_without_penalty": "sacreBLEU without brevity penalty",
    "length_ratio": "tokens of the outputs / of the references",
}
# how many numbers the statistics of a sentence are: lengths, matches and n-grams by order
WIDTHS = {"sacrebleu": 10, "sacrebleu_lowercase": 10, "tokenised_bleu": 10, "chrf": 18}
Figures = Dict[str, Any]
# by metric, (sentences, numbers): sacreBLEU's sufficient statistics, which add up over sentences
Statistics = Dict[str, np.ndarray]


class Scorer:
    """Computes every metric for a test set or a part of it.

    - ``tokenised_bleu``: what Moses' multi-bleu.perl gives for the tokens: cased, no smoothing, 0
      as soon as an order of n-grams has no match. For comparison with papers that report it; it
      depends on the tokenisation.
    - ``sacrebleu``, ``sacrebleu_lowercase``, ``chrf``: sacreBLEU's defaults on the plain text.

    Args:
        language: the target language, which chooses sacreBLEU's tokeniser (13a but for Chinese,
            Japanese and Korean).
    """

    def __init__(self, language: str):
        code = language_code(language)
        try:
            self._metrics = _metrics(code)
        except RuntimeError:
            raise UsageError(
                f"sacreBLEU cannot tokenise {language} yet: pip install 'sacrebleu[{code}]'"
            ) from None

    def statistics(self, texts: TestSet, metrics: Iterable[str] = METRICS) -> Statistics:
        """Return the sufficient statistics of metrics, a row per sentence."""
        found = {}
        for name in metrics:
            pair = (texts.hypothesis, texts.reference)
            if name == "tokenised_bleu":
                pair = (texts.hypothesis_tokens, texts.reference_tokens)
            extract = self._metrics[name]._extract_corpus_statistics
            found[name] = np.array(extract(pair[0], [pair[1]]))
        return found

    def score(self, statistics: Statistics, members: Optional[Sequence[int]] = None) -> Figures:
        """Return the figures of the sentences ``members`` (all when None).

        Metrics are in percent; those of no sentences are None. ``bleu_without_penalty`` is
        sacreBLEU as if no output were too short. ``length_ratio`` is tokens of the hypotheses by
        tokens of the references. ``tokenised_detail`` has n-gram precisions (in percent) and
        brevity penalty.
        """
        count = len(next(iter(statistics.values()))) if members is None else len(members)
        figures: Figures = {"sentences": count}
        if not count:
            return {**figures, **dict.fromkeys([*TITLES, "tokenised_detail"])}
        chosen = slice(None) if members is None else list(members)
        scores = {
            name: metric._compute_score_from_stats(statistics[name][chosen].sum(axis=0).tolist())
            for name, metric in self._metrics.items()
        }
        tokenised = scores["tokenised_bleu"]
        figures.update({name: score.score for name, score in scores.items()})
        for name, source in DERIVED.items():
            value = corpus_score(name, statistics[source][chosen].sum(axis=0))
            figures[name] = None if math.isnan(value) else value
        figures["tokenised_detail"] = {
            "precisions": list(tokenised.precisions),
            "brevity_penalty": tokenised.bp,
            "hypothesis_tokens": tokenised.sys_len,
            "reference_tokens": tokenised.ref_len,
        }
        return figures

    def signatures(self) -> Dict[str, str]:
        """Return sacreBLEU's signature of each metric; only after :meth:`statistics`."""
        return {name: str(metric.get_signature()) for name, metric in self._metrics.items()}


def corpus_score(name: str, total: Sequence[float]) -> float:
    """Return a metric of ``TITLES`` from the sum of the statistics of its source over sentences.

    It is in percent, but for ``length_ratio``, which is not a number where references are empty.
    """
    if name == "length_ratio":
        return float(total[0] / total[1]) if total[1] else math.nan
    numbers = [int(value) for value in total]
    if name == "bleu_without_penalty":
        # the references' length; outputs that are longer have no penalty
        numbers[1] = 0
    return _BY_SUMS[source_of(name)]._compute_score_from_stats(numbers).score


def source_of(name: str) -> str:
    """Return the metric from whose statistics a metric of ``TITLES`` is computed."""
    return DERIVED.get(name, name)


def _metrics(code: str) -> Dict[str, Any]:
    return {
        "sacrebleu": BLEU(trg_lang=code),
        "sacrebleu_lowercase": BLEU(lowercase=True, trg_lang=code),
        "tokenised_bleu": BLEU(tokenize="none", smooth_method="none", force=True),
        "chrf": CHRF(),
    }


# sums need no tokeniser, and so no language
_BY_SUMS = _metrics("")
