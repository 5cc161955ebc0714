"""F1 and exact match of answers to questions, as the official scripts define them.

``squad``: the script of SQuAD 1.1 (Rajpurkar et al. 2016), which XTREME (Hu et al. 2020) uses for
SQuAD, XQuAD and TyDiQA-GoldP in every language: lower case, without ASCII punctuation, without the
English articles, words divided by white space.

``mlqa``: the script of MLQA (Lewis et al. 2020): lower case, without punctuation of any script,
without the articles of the language; in Chinese every character counts as a word.
"""

import re
import string
import unicodedata
from collections import Counter
from statistics import mean
from typing import Dict, List, Mapping, Optional, Sequence

from fairseq_posenc.errors import UsageError

METRICS = ("squad", "mlqa")
# As in MLQA's script. Hindi and Chinese have none there, and Arabic's is cut wherever the two
# letters stand, also inside a word: the anchor in the script's pattern for it never matches.
_ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "ar": "ال",
    "hi": None,
    "zh": None,
}
_CHINESE_WORD = re.compile("[\u4e00-\u9fa5]|[^\\s\u4e00-\u9fa5]+")


def check_metric(metric: str, language: str) -> None:
    """Raise a UsageError for an unknown metric, or one that has no rules for the language."""
    if metric not in METRICS:
        raise UsageError(f"--metric {metric}: known are {', '.join(METRICS)}")
    if metric == "mlqa" and language not in _ARTICLES:
        raise UsageError(
            f"--metric mlqa has no rules for --language {language}, only for the codes "
            f"{', '.join(sorted(_ARTICLES))}; give the code where it is one of these languages, "
            "otherwise --metric squad, as XTREME does beyond MLQA"
        )


def normalise(text: str, metric: str = "squad", language: str = "en") -> str:
    """Return the words of an answer that are compared, divided by single spaces.

    ``squad`` treats every language as English. For errors see :func:`check_metric`.
    """
    check_metric(metric, language)
    if metric == "squad":
        language = "en"

    def is_punctuation(character: str) -> bool:
        other_scripts = metric == "mlqa" and unicodedata.category(character).startswith("P")
        return character in string.punctuation or other_scripts

    text = "".join(c for c in text.lower() if not is_punctuation(c))
    articles = _ARTICLES[language]
    text = re.sub(articles, " ", text) if articles else text
    return " ".join(_CHINESE_WORD.findall(text) if language == "zh" else text.split())


def f1(prediction: str, gold: str) -> float:
    """Return F1 of the words of two normalised answers, 0 to 1.

    It is 0 if no word is common, also when both are empty, as in the official scripts.
    """
    predicted, expected = prediction.split(), gold.split()
    common = sum((Counter(predicted) & Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


class AnswerScorer:
    """Scores answers to the questions of one file.

    ``golds`` are the gold answers of each question, at least one. For errors see
    :func:`check_metric`.
    """

    def __init__(self, golds: Mapping[str, Sequence[str]], metric: str, language: str):
        check_metric(metric, language)
        self.metric, self.language = metric, language
        self.golds = golds
        self._normalised: Dict[str, Sequence[str]] = {}

    def score(self, predictions: Mapping[str, str]) -> Dict[str, float]:
        """Return ``f1`` and ``exact_match`` in percent, the means over all questions.

        Of several gold answers the best counts, for each figure by itself. A question without a
        prediction counts as 0; a prediction without a question is ignored.
        """
        scores = self.per_question(predictions)
        return {name: 100 * sum(values) / max(len(values), 1) for name, values in scores.items()}

    def per_question(self, predictions: Mapping[str, str]) -> Dict[str, List[float]]:
        """Return ``f1`` and ``exact_match`` of each question, 0 to 1, in the order of the file."""
        scores: Dict[str, List[float]] = {"f1": [], "exact_match": []}
        for question in self.golds:
            golds = self._normalised_golds(question)
            is_answered = question in predictions and bool(golds)
            text = self._normalise(predictions.get(question, ""))
            scores["f1"].append(max(f1(text, gold) for gold in golds) if is_answered else 0.0)
            scores["exact_match"].append(float(is_answered and text in golds))
        return scores

    def chance(
        self, predictions: Mapping[str, str], contexts: Mapping[str, int]
    ) -> Optional[float]:
        """Return F1 in percent of answers that are taken for those to other questions of a context.

        A model that heeds the context alone has about as much. It is None where most questions are
        the only ones about their contexts.

        Args:
            predictions: answers by question.
            contexts: by question the number of its context.
        """
        groups: Dict[int, List[str]] = {}
        for question in self.golds:
            groups.setdefault(contexts[question], []).append(question)
        means = []
        for group in (group for group in groups.values() if len(group) > 1):
            for question in group:
                text = self._normalise(predictions.get(question, ""))
                others = (self._normalised_golds(other) for other in group if other != question)
                means.append(mean(max(f1(text, gold) for gold in golds) for golds in others))
        return 100 * mean(means) if 2 * len(means) > len(self.golds) else None

    def _normalise(self, text: str) -> str:
        return normalise(text, self.metric, self.language)

    def _normalised_golds(self, question: str) -> Sequence[str]:
        if question not in self._normalised:
            self._normalised[question] = [*map(self._normalise, self.golds[question])]
        return self._normalised[question]
