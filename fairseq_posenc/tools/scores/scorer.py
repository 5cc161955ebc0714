"""``Scorer``: the figures of a test set, and of its parts."""

from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.intervals import bootstrap, drawn_score, interval
from fairseq_posenc.tools.scores.metrics import (
    DERIVED,
    METRICS,
    SACREBLEU_METRICS,
    base_metric,
    corpus_score,
    why_undefined,
)
from fairseq_posenc.tools.scores.result import (
    RoundTripScore,
    Subset,
    TokenisedDetail,
    WithoutToken,
)
from fairseq_posenc.tools.scores.texts import TestSet

DEFAULT = ("sacrebleu", "sacrebleu_lowercase", "tokenised_bleu", "chrf")
# always computed: by the first a model is told from chance, by the second lengths are compared
_ALWAYS = ("sacrebleu", "tokenised_bleu")
# in BLEU: a model that is less above chance has learned nothing
_LEAST = 1.0
_CHUNK = 1000  # sentences whose n-grams are counted at once: sacreBLEU keeps those of all
# by metric, (sentences, numbers): sacreBLEU's sufficient statistics, which add up over sentences
Statistics = Dict[str, np.ndarray]


class Scorer:
    """Computes metrics for a test set or a part of it, as sacreBLEU's own command does.

    Args:
        language: the target language, which chooses sacreBLEU's tokeniser.
        metrics: of ``SACREBLEU_METRICS``; ``sacrebleu`` and ``tokenised_bleu`` are always computed.

    Attributes:
        remarks: what the user should know of metrics in this language.
    """

    def __init__(self, language: str, metrics: Sequence[str] = DEFAULT):
        unknown = [name for name in metrics if name not in SACREBLEU_METRICS]
        if unknown:
            raise UsageError(
                f"no metric is called {unknown[0]!r}; known: {', '.join(SACREBLEU_METRICS)}"
            )
        computed = [name for name in SACREBLEU_METRICS if name in (*metrics, *_ALWAYS)]
        self.metrics = {name: SACREBLEU_METRICS[name](language) for name in computed}
        self.remarks = [*filter(None, (METRICS[name].remark(language) for name in computed))]

    def statistics(self, texts: TestSet, metrics: Optional[Iterable[str]] = None) -> Statistics:
        """Return the sufficient statistics of metrics (all), a row per sentence."""
        statistics = {}
        for name in metrics or self.metrics:
            outputs, references = texts.hypothesis, [texts.reference, *texts.more_references]
            if not METRICS[name].has_plain_text:
                outputs = texts.hypothesis_tokens
                references = [texts.reference_tokens, *texts.more_reference_tokens]
            extract = self.metrics[name]._extract_corpus_statistics
            parts = [slice(at, at + _CHUNK) for at in range(0, len(outputs) or 1, _CHUNK)]
            statistics[name] = np.concatenate(
                [
                    np.array(extract(outputs[part], [lines[part] for lines in references]), float)
                    for part in parts
                ]
            )
        return statistics

    def score(self, statistics: Statistics, members: Optional[Sequence[int]] = None) -> Subset:
        """Return the figures of the sentences ``members`` (all when None).

        They are :func:`corpus_score`'s, and None where a metric is not defined.
        ``bleu_without_penalty`` is sacreBLEU as if no output were too short. ``length_ratio`` is
        tokens of the hypotheses by tokens of the references.
        """
        count = len(next(iter(statistics.values()))) if members is None else len(members)
        figures: Dict[str, Optional[float]] = dict.fromkeys((*statistics, *DERIVED))
        if not count:
            return Subset(0, figures)
        chosen = slice(None) if members is None else list(members)
        parts = {name: rows[chosen] for name, rows in statistics.items()}
        totals = {name: rows.sum(axis=0).tolist() for name, rows in parts.items()}
        for name in figures:
            base = base_metric(name)
            if not why_undefined(name, parts[base]):
                figures[name] = corpus_score(name, totals[base])
        tokenised = self.metrics["tokenised_bleu"]._compute_score_from_stats(
            [*map(int, totals["tokenised_bleu"])]
        )
        lengths = tokenised.sys_len, tokenised.ref_len
        detail = TokenisedDetail(list(tokenised.precisions), tokenised.bp, *lengths)
        return Subset(count, figures, detail)

    def without(self, texts: TestSet, token: Optional[str]) -> Optional[WithoutToken]:
        """Return the figures of the whole test set without a token; None without one."""
        if not token:
            return None
        return WithoutToken(token, self.score(self.statistics(texts.without(token))))

    def plain_scores(self, hypotheses: List[str], references: List[str]) -> Dict[str, float]:
        """Return all metrics of plain text but tokenised BLEU."""
        names = [name for name in self.metrics if METRICS[name].has_plain_text]
        statistics = self.statistics(TestSet(hypotheses, references, [], []), names)
        return {name: corpus_score(name, rows.sum(axis=0)) for name, rows in statistics.items()}

    def chance(
        self, texts: TestSet, statistics: Statistics, round_trip: Optional[RoundTripScore]
    ) -> Tuple[Optional[float], Optional[bool]]:
        """Return sacreBLEU by chance, and whether the hypotheses are above it.

        By chance is with each reference given to another hypothesis, in a fixed order. They are
        above it where the difference is 1 or more, and the interval of its paired bootstrap leaves
        out 0; None where the references themselves would not be above it, as of a single sentence
        or very short ones.
        """
        count = len(texts)
        if count < 2:
            return None, None
        order = np.random.RandomState(1).permutation(count)
        sentence_of = dict(zip(order.tolist(), np.roll(order, 1).tolist()))
        name = "sacrebleu"
        references, *further = (
            [lines[sentence_of[i]] for i in range(count)]
            for lines in (texts.reference, *texts.more_references)
        )
        shuffled = TestSet(texts.hypothesis, references, [], [], more_references=further)
        pair = statistics[name], self.statistics(shuffled, [name])[name]
        own, by_chance = (corpus_score(name, rows.sum(axis=0)) for rows in pair)
        best = (
            round_trip.figures
            if round_trip
            else self.plain_scores(texts.reference, texts.reference)
        )[name]
        # whoever gets what the references get is not told that it has learned nothing
        if own >= best - _LEAST / 2 or best - by_chance < _LEAST:
            return by_chance, True if own - by_chance >= _LEAST else None
        drawn, drawn_by_chance = bootstrap([drawn_score(name, rows) for rows in pair], count)
        is_clear = bool(interval(drawn - drawn_by_chance)[0] > 0)
        return by_chance, own - by_chance >= _LEAST and is_clear

    def signatures(self) -> Dict[str, str]:
        """Return sacreBLEU's signature of each metric; only after :meth:`statistics`."""
        return {name: str(metric.get_signature()) for name, metric in self.metrics.items()}
