"""The metrics of translations, all through sacreBLEU, which signs them."""

from typing import Any, Dict, Optional, Sequence

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import BLEUScore

from fairseq_posenc.evaluation.texts import Texts

METRICS = {
    "sacrebleu": "sacreBLEU",
    "sacrebleu_lowercase": "sacreBLEU lower-cased",
    "tokenised_bleu": "tokenised BLEU",
    "chrf": "chrF",
}
Figures = Dict[str, Any]


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
        self._tokenised = BLEU(tokenize="none", smooth_method="none", force=True)
        self._plain = {
            "sacrebleu": BLEU(trg_lang=language),
            "sacrebleu_lowercase": BLEU(lowercase=True, trg_lang=language),
            "chrf": CHRF(),
        }

    def score(self, texts: Texts, members: Optional[Sequence[int]] = None) -> Figures:
        """Return the figures of the sentences ``members`` (all when None).

        Metrics are in percent; those of no sentences are None. ``length_ratio`` is tokens of the
        hypotheses by tokens of the references. ``tokenised_detail`` has n-gram precisions (in
        percent) and brevity penalty.
        """
        members = range(len(texts)) if members is None else members
        figures: Figures = {"sentences": len(members)}
        if not members:
            return {**figures, **dict.fromkeys([*METRICS, "length_ratio", "tokenised_detail"])}
        hypotheses, references, hypothesis_tokens, reference_tokens = (
            [lines[i] for i in members]
            for lines in (
                texts.hypothesis,
                texts.reference,
                texts.hypothesis_tokens,
                texts.reference_tokens,
            )
        )
        tokenised = self._tokenised.corpus_score(hypothesis_tokens, [reference_tokens])
        for name, metric in self._plain.items():
            figures[name] = metric.corpus_score(hypotheses, [references]).score
        return {
            **figures,
            "tokenised_bleu": tokenised.score,
            "length_ratio": tokenised.sys_len / tokenised.ref_len if tokenised.ref_len else None,
            "tokenised_detail": _detail(tokenised),
        }

    def signatures(self) -> Dict[str, str]:
        """Return sacreBLEU's signature of each metric; only after :meth:`score`."""
        metrics = {"tokenised_bleu": self._tokenised, **self._plain}
        return {name: str(metric.get_signature()) for name, metric in metrics.items()}


def _detail(score: BLEUScore) -> Figures:
    return {
        "precisions": list(score.precisions),
        "brevity_penalty": score.bp,
        "hypothesis_tokens": score.sys_len,
        "reference_tokens": score.ref_len,
    }
