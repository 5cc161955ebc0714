"""The metrics of translations: one table, and what a metric's statistics of sentences give.

A metric that is added to ``METRICS`` with an object of sacreBLEU is computed by it, which signs it,
and is read, compared and drawn. One with a ``base`` also needs its formula in :func:`corpus_score`.
"""

import math
from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional, Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from fairseq_posenc.data.languages import HAN, has_spaces, script_of
from fairseq_posenc.tools.scores.tokenizers import sacrebleu_tokenizer

_ORDER = 4  # of BLEU's n-grams
_EMPTY = "all references are empty"
_SHORT = f"no reference has {_ORDER} tokens"
# whose characters TER takes for words
_BY_CHARACTER = HAN | {"Jpan", "Hira", "Kana", "Hrkt"}
_NO_SPACES = "{} counts words between spaces, which {} does not have"


def _has_tokens(rows: np.ndarray) -> np.ndarray:
    return rows[:, 1] > 0


def _has_ngrams(rows: np.ndarray) -> np.ndarray:
    return rows[:, 1] >= _ORDER


class Metric(NamedTuple):
    """What a metric is called, and how it is computed and compared.

    Attributes:
        title: its name in tables.
        build: makes sacreBLEU's object for a target language; None where it has a ``base``, or the
            scores of sentences come from a file.
        base: the metric from whose statistics it is computed; None: its own.
        width: how many numbers the statistics of a sentence are. BLEU: lengths, matches and
            n-grams by order; chrF: n-grams of the hypothesis, the reference and both by order; TER:
            edits and the reference's length; from a file: the score, and 1 or the number of tokens.
        direction: 1: higher is better; -1: lower; 0: neither, best is near 1.
        decimals: with which sentences that compare rows print differences.
        counts: of statistics ``(sentences, width)``, which sentences have something in their
            references that it counts; of no such sentence it is not defined.
        undefined: where it is not, for messages.
        has_plain_text: whether it is of plain text; tokens are not kept in a result.
        remark: what the user should know of it in a target language; empty: nothing.
    """

    title: str
    build: Optional[Callable[[str], Any]] = None
    base: Optional[str] = None
    width: int = 2
    direction: int = 1
    decimals: int = 1
    counts: Callable[[np.ndarray], np.ndarray] = lambda rows: np.ones(len(rows), bool)
    undefined: str = _EMPTY
    has_plain_text: bool = True
    remark: Callable[[str], str] = lambda language: ""


def _bleu(title: str, build: Callable[[str], BLEU], **fields: Any) -> Metric:
    width = 2 + 2 * _ORDER
    return Metric(title, build, width=width, counts=_has_ngrams, undefined=_SHORT, **fields)


def _chrf(title: str, word_order: int) -> Metric:
    # three numbers for each order of characters, of 6, and of words
    return Metric(
        title,
        lambda language: CHRF(word_order=word_order),
        width=3 * (6 + word_order),
        counts=lambda rows: np.asarray(rows[:, 1::3].any(axis=1)),
        remark=_remark_on_chrf if word_order else lambda language: "",
    )


def _remark_on_chrf(language: str) -> str:
    return "" if has_spaces(language) else _NO_SPACES.format("chrF++", language) + ": compare chrF"


def _ter(language: str) -> TER:
    asian = not has_spaces(language)  # of Chinese and Japanese, characters are words
    return TER(normalized=asian, asian_support=asian)


def _remark_on_ter(language: str) -> str:
    if has_spaces(language) or script_of(language) in _BY_CHARACTER:
        return ""
    return _NO_SPACES.format("TER", language) + ", so whole lines"


METRICS: Dict[str, Metric] = {
    "sacrebleu": _bleu("sacreBLEU", lambda language: BLEU(tokenize=sacrebleu_tokenizer(language))),
    "sacrebleu_lowercase": _bleu(
        "sacreBLEU lower-cased",
        lambda language: BLEU(lowercase=True, tokenize=sacrebleu_tokenizer(language)),
    ),
    # what Tensor2Tensor calls BLEU_uncased
    "sacrebleu_lowercase_intl": _bleu(
        "sacreBLEU lower-cased, international tokenisation",
        lambda language: BLEU(lowercase=True, tokenize="intl"),
    ),
    # what Moses' multi-bleu.perl gives for the tokens: cased, no smoothing, 0 as soon as an order
    # of n-grams has no match; for comparison with papers, as it depends on the tokenisation
    "tokenised_bleu": _bleu(
        "tokenised BLEU",
        lambda language: BLEU(tokenize="none", smooth_method="none", force=True),
        has_plain_text=False,
    ),
    "chrf": _chrf("chrF", word_order=0),
    "chrf++": _chrf("chrF++", word_order=2),
    "ter": Metric("TER", _ter, direction=-1, counts=_has_tokens, remark=_remark_on_ter),
    # as if no output were too short
    "bleu_without_penalty": Metric(
        "sacreBLEU without brevity penalty",
        base="sacrebleu",
        counts=_has_ngrams,
        undefined=_SHORT,
    ),
    "length_ratio": Metric(
        "tokens of the outputs / of the references",
        base="tokenised_bleu",
        direction=0,
        counts=_has_tokens,
    ),
    "bits": Metric("bits per token of the references", direction=-1, decimals=2),
}
# by metric, what makes sacreBLEU's object for a target language, which chooses the tokeniser
SACREBLEU_METRICS = {name: metric.build for name, metric in METRICS.items() if metric.build}
DERIVED = {name: metric.base for name, metric in METRICS.items() if metric.base}


def metric_of(name: str) -> Metric:
    """Return a metric; one whose scores of sentences come from a file is called by its name."""
    return METRICS.get(name) or Metric(name)


def base_metric(name: str) -> str:
    """Return the metric from whose statistics a metric is computed."""
    return metric_of(name).base or name


def digits_of(name: str, figures: Iterable[Optional[float]]) -> int:
    """Return with how many decimals tables show figures of a metric.

    Scores from a file may be from 0 to 1, as COMET's, where systems differ by hundredths.
    """
    if name == "length_ratio":
        return 3
    is_small = all(abs(figure) < 2 for figure in figures if figure is not None)
    return 4 if name not in METRICS and is_small else 2


def corpus_score(name: str, total: Sequence[float]) -> float:
    """Return a metric from the sum of the statistics of its base over sentences.

    sacreBLEU's are in percent. ``length_ratio`` is not a number where references are empty. Any
    other metric was read from a file, and is the sum of its scores by that of its counts: bits per
    token, or the mean over sentences.
    """
    if name == "length_ratio" or base_metric(name) not in SACREBLEU_METRICS:
        return float(total[0] / total[1]) if total[1] else math.nan
    # an average of the references' lengths, in TER
    numbers = [float(value) if name == "ter" else int(value) for value in total]
    if name == "bleu_without_penalty":
        # the references' length; outputs that are longer have no penalty
        numbers[1] = 0
    return _BY_SUMS[base_metric(name)]._compute_score_from_stats(numbers).score


def why_undefined(name: str, rows: np.ndarray) -> Optional[str]:
    """Return why a metric is not defined on sentences with these statistics; None where it is."""
    metric = metric_of(name)
    if not len(rows) or metric.counts(np.asarray(rows)).any():
        return None
    return f"{metric.title} is not defined (-) where {metric.undefined}"


# sums need no tokeniser, and so no language
_BY_SUMS = {name: build("") for name, build in SACREBLEU_METRICS.items()}
