"""``TaskScore``: what ``posenc predict`` measured of a model, as its ``score.json`` holds it.

Of every labelled example it keeps what the metrics are computed from, so that the metrics of any
resampled test set can be:

- ``target`` and ``prediction``: numbers of labels, or scores (GLUE, XNLI);
- ``f1`` and ``exact_match``: of the answer to a question, 0 to 1 (SQuAD);
- ``bits`` and ``tokens``: of the masked tokens of a block (masked language models).
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.json_files import from_json, read_json

BITS = "bits_per_token"
TITLES = {
    "accuracy": "accuracy", "f1": "F1", "exact_match": "exact match", "matthews": "Matthews",
    "accuracy_and_f1": "mean of accuracy and F1", "pearson": "Pearson", "spearman": "Spearman",
    "pearson_and_spearman": "mean of Pearson and Spearman", BITS: "bits per hidden token",
}  # fmt: skip
# 1: higher is better, as of all others; -1: lower
DIRECTIONS = {BITS: -1}
_LEAST = 1.0  # in F1: a model whose answers are less above chance has learned nothing
Examples = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class TaskScore:
    """A result of ``posenc predict``.

    Attributes:
        scores: by subset the metrics, in percent but for bits, not rounded; empty without labels.
        examples: how many examples a subset has.
        task: ``MNLI``, …, ``SQuAD``, or ``masked_lm``.
        main_metrics: those that tables show.
        labels: names of the classes; empty for scores and questions.
        per_example: by subset what the metrics are computed from, see this module.
        gold: by subset a digest of what is right.
        chance: by subset the bits of a model that knows how frequent tokens are, and nothing else;
            or F1 of the answers, where other questions of the same texts had been asked.
        precision: of ``prediction``, and of ``training`` with its hardware, where known.
        notes, command, versions, hardware, seconds: by what the result was made.
        training_options: of the log beside the file, in which they are not.
    """

    scores: Mapping[str, Mapping[str, float]]
    examples: Mapping[str, int] = field(default_factory=dict)
    task: str = ""
    main_metrics: Sequence[str] = ()
    labels: Sequence[str] = ()
    per_example: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    gold: Mapping[str, str] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    precision: Mapping[str, Optional[str]] = field(default_factory=dict)
    hardware: str = ""
    seconds: float = 0.0
    training_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for subset, columns in self.per_example.items():
            sizes = {len(column) for column in columns.values()}
            if len(sizes) != 1 or not min(sizes) or subset not in self.scores:
                raise ValueError(f"the examples of {subset} are not whole")

    @property
    def seed(self) -> str:
        """The seed that the result notes, or an empty text."""
        return self.notes.get("seed", "")

    def to_dict(self) -> Dict[str, Any]:
        """Return what ``score.json`` holds."""
        members = asdict(self)
        del members["training_options"]
        return members

    def count(self, subset: str) -> int:
        """Return how many examples of a subset have results."""
        return len(next(iter(self.per_example[subset].values())))

    def columns(self, subset: str) -> Examples:
        """Return what is known by example of a subset, ``(examples,)`` each."""
        return {name: np.array(values) for name, values in self.per_example[subset].items()}

    def nothing_learned(self) -> List[str]:
        """Return how one sees that the model has learned nothing, once for subsets alike."""
        subsets: Dict[Tuple[str, str], List[str]] = {}
        for subset in self.per_example:
            reason = self._nothing_learned_of(subset)
            if reason:
                subsets.setdefault(reason, []).append(subset)
        return [
            f"{start} of {self.task} {', '.join(names)}{end}"
            for (start, end), names in subsets.items()
        ]

    def failures(self, name: str, seed: str) -> List[str]:
        """Return sentences saying that the model, so called, has learned nothing."""
        model = f"{name}, seed {seed}," if seed else name
        return [f"{model} {reason}: it has learned nothing." for reason in self.nothing_learned()]

    def _nothing_learned_of(self, subset: str) -> Optional[Tuple[str, str]]:
        """Return what stands before and behind the subset's name."""
        columns = self.per_example[subset]
        if "prediction" in columns:
            predicted = set(columns["prediction"])
            if len(predicted) > 1 or len(set(columns["target"])) == 1:
                return None
            value = predicted.pop()
            if value in range(len(self.labels)):
                return f"predicts one class, {self.labels[int(value)]!r}, for every example", ""
            return f"predicts one score, {value:.4g}, for every example", ""
        if BITS in self.scores[subset]:
            bits, chance = self.scores[subset][BITS], self.chance.get(subset, math.inf)
            if bits < chance:
                return None
            figures = f"({bits:.2f} bits, and {chance:.2f})"
            end = f" no better than their frequencies do {figures}"
            return "predicts the hidden tokens", end
        if not sum(columns.get("f1", [1])):
            return "gives no word of any answer", ""
        if "f1" in columns and subset in self.chance:
            reached, chance = self.scores[subset]["f1"], self.chance[subset]
            if reached >= chance + _LEAST:
                return None
            figures = f"({reached:.2f} F1, and {chance:.2f})"
            return "answers the questions", f" no better than others about the same texts {figures}"
        return None


def read_task_score(path: str) -> TaskScore:
    """Read a result of ``posenc predict``."""
    return from_json(TaskScore, read_json(path), path, "posenc predict")


def is_task_score(path: str) -> bool:
    """Return whether a file of JSON is a result of ``posenc predict``, and not ``posenc score``."""
    content = read_json(path)
    return isinstance(content, dict) and "scores" in content and "all" not in content


def measure(metric: str, columns: Examples, times: Optional[np.ndarray] = None) -> float:
    """Return a metric, in percent but for bits, of examples that are drawn so many times.

    Args:
        metric: of :data:`TITLES`.
        columns: of :meth:`TaskScore.columns`.
        times: how often each example is drawn, ``(examples,)``; once without.
    """
    if times is None:
        times = np.ones(len(next(iter(columns.values()))))
    if metric == BITS:
        return float(times @ columns["bits"] / max(times @ columns["tokens"], 1))
    if metric in columns:
        return float(100 * (times @ columns[metric]) / times.sum())
    parts = metric.split("_and_")
    if len(parts) > 1:
        return float(np.mean([measure(part, columns, times) for part in parts]))
    if metric in ("pearson", "spearman"):
        pairs = columns["target"], columns["prediction"]
        if metric == "spearman":
            pairs = tuple(_ranks(values, times) for values in pairs)  # type: ignore[assignment]
        return 100 * _correlation(*pairs, times)
    return 100 * _of_classes(metric, columns["target"], columns["prediction"], times)


def frequency_bits(tokens: Sequence[int], vocabulary: int) -> float:
    """Return bits per token of a model that knows how frequent tokens are, and nothing else.

    Each token is left out of the counts that predict it, and 1 is added to every count.

    Args:
        tokens: that are to be predicted.
        vocabulary: how many entries it has.
    """
    counts = Counter(tokens)
    # a token that is there n times is predicted with ((n - 1) + 1) / (N - 1 + V)
    total = math.log2(max(len(tokens) - 1 + vocabulary, 1))
    return total - sum(n * math.log2(n) for n in counts.values()) / max(len(tokens), 1)


def _of_classes(
    metric: str, targets: np.ndarray, predictions: np.ndarray, times: np.ndarray
) -> float:
    """Return a metric of classes, 0 where it is not defined, as scikit-learn does."""
    if metric == "accuracy":
        return float(times @ (targets == predictions) / times.sum())
    true_positives, true, predicted = (
        times @ values
        for values in ((targets == 1) & (predictions == 1), targets == 1, predictions == 1)
    )
    if metric == "f1":
        return float(2 * true_positives / (true + predicted)) if true + predicted else 0.0
    # Matthews: (TP·TN - FP·FN) / √(…), written in TP, positives and predicted positives
    count = times.sum()
    spread = true * (count - true) * predicted * (count - predicted)
    return (
        float((true_positives * count - true * predicted) / math.sqrt(spread))
        if spread > 0
        else 0.0
    )


def _ranks(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the mean ranks of values that are there so many times, up to a constant."""
    from scipy.stats import rankdata

    # a value that is there n times has the mean of n ranks: those before it, and half of its own
    order = rankdata(values, method="dense") - 1
    drawn = np.bincount(order, weights=times)
    return (np.cumsum(drawn) - drawn / 2)[order]


def _correlation(targets: np.ndarray, predictions: np.ndarray, times: np.ndarray) -> float:
    """Return Pearson's correlation, 0 where it is not defined."""
    targets, predictions = (
        values - times @ values / times.sum() for values in (targets, predictions)
    )
    spread = (times @ targets**2) * (times @ predictions**2)
    value = times @ (targets * predictions) / math.sqrt(spread) if spread > 0 else 0.0
    return float(value) if math.isfinite(value) else 0.0
