"""The metrics of translations, all through sacreBLEU, which signs them."""

import math
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from fairseq_posenc.data.languages import HAN, has_spaces, language_code, script_of
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.texts import TestSet

METRICS = {
    "sacrebleu": "sacreBLEU",
    "sacrebleu_lowercase": "sacreBLEU lower-cased",
    "sacrebleu_lowercase_intl": "sacreBLEU lower-cased, international tokenisation",
    "tokenised_bleu": "tokenised BLEU",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
}
DEFAULT = ("sacrebleu", "sacrebleu_lowercase", "tokenised_bleu", "chrf")
# always computed: by the first a model is told from chance, by the second lengths are compared
_ALWAYS = ("sacrebleu", "tokenised_bleu")
# 1: higher is better, as of all others; -1: lower; 0: neither, best is near 1
DIRECTIONS = {"ter": -1, "bits": -1, "length_ratio": 0}
DECIMALS = {"bits": 2}  # of differences in words; 1 of all others
# computed from the statistics of another metric, so that older results have them too
DERIVED = {"bleu_without_penalty": "sacrebleu", "length_ratio": "tokenised_bleu"}
TITLES = {
    **METRICS,
    "bleu_without_penalty": "sacreBLEU without brevity penalty",
    "length_ratio": "tokens of the outputs / of the references",
    "bits": "bits per token of the references",
}
# how many numbers the statistics of a sentence are: lengths, matches and n-grams by order
WIDTHS = {
    "sacrebleu": 10, "sacrebleu_lowercase": 10, "sacrebleu_lowercase_intl": 10,
    "tokenised_bleu": 10,
    "chrf": 18, "chrf++": 24, "ter": 2,
}  # fmt: skip
SEGMENTS = 2  # of another metric, read from a file: its score, and 1 or tokens to count
_ORDER = 4  # of BLEU's n-grams
_CHUNK = 1000  # sentences whose n-grams are counted at once: sacreBLEU keeps those of all
_JAPANESE = frozenset(("Jpan", "Hira", "Kana", "Hrkt"))
_FLORES = "flores200"
_MECAB = {"ja": tokenizer_ja_mecab, "ko": tokenizer_ko_mecab}
Figures = Dict[str, Any]
# by metric, (sentences, numbers): sacreBLEU's sufficient statistics, which add up over sentences
Statistics = Dict[str, np.ndarray]


class Scorer:
    """Computes metrics for a test set or a part of it.

    - ``tokenised_bleu``: what Moses' multi-bleu.perl gives for the tokens: cased, no smoothing, 0
      as soon as an order of n-grams has no match. For comparison with papers that report it; it
      depends on the tokenisation.
    - ``sacrebleu_lowercase_intl``: what Tensor2Tensor calls ``BLEU_uncased``.
    - the others: sacreBLEU's defaults on the plain text, as its own command computes them.

    Args:
        metrics: of ``METRICS``; ``sacrebleu`` and ``tokenised_bleu`` are always among them.
        language: the target language, which chooses sacreBLEU's tokeniser, see :func:`tokeniser`.
    """

    def __init__(self, language: str, metrics: Sequence[str] = DEFAULT):
        unknown = [name for name in metrics if name not in METRICS]
        if unknown:
            raise UsageError(f"no metric is called {unknown[0]!r}; known: {', '.join(METRICS)}")
        self.metrics = {
            name: metric
            for name, metric in sacrebleus_metrics(language).items()
            if name in (*metrics, *_ALWAYS)
        }

    def statistics(self, texts: TestSet, metrics: Optional[Iterable[str]] = None) -> Statistics:
        """Return the sufficient statistics of metrics (all), a row per sentence."""
        statistics = {}
        for name in metrics or self.metrics:
            outputs, references = texts.hypothesis, [texts.reference, *texts.more_references]
            if name == "tokenised_bleu":
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

    def score(self, statistics: Statistics, members: Optional[Sequence[int]] = None) -> Figures:
        """Return the figures of the sentences ``members`` (all when None).

        sacreBLEU's metrics are in percent, others means over sentences; those of no sentences are
        None. ``bleu_without_penalty`` is sacreBLEU as if no output were too short. ``length_ratio``
        is tokens of the hypotheses by tokens of the references. ``tokenised_detail`` has n-gram
        precisions (in percent) and brevity penalty.
        """
        count = len(next(iter(statistics.values()))) if members is None else len(members)
        figures: Figures = {"sentences": count}
        if not count:
            return {**figures, **dict.fromkeys([*statistics, *DERIVED, "tokenised_detail"])}
        chosen = slice(None) if members is None else list(members)
        parts = {name: rows[chosen] for name, rows in statistics.items()}
        totals = {name: rows.sum(axis=0).tolist() for name, rows in parts.items()}
        for name in (*statistics, *DERIVED):
            value = corpus_score(name, totals[source_of(name)])
            is_defined = not (math.isnan(value) or why_undefined(name, parts[source_of(name)]))
            figures[name] = value if is_defined else None
        tokenised = self.metrics["tokenised_bleu"]._compute_score_from_stats(
            [*map(int, totals["tokenised_bleu"])]
        )
        figures["tokenised_detail"] = {
            "precisions": list(tokenised.precisions),
            "brevity_penalty": tokenised.bp,
            "hypothesis_tokens": tokenised.sys_len,
            "reference_tokens": tokenised.ref_len,
        }
        return figures

    def plain_scores(self, hypotheses: List[str], references: List[str]) -> Dict[str, float]:
        """Return all metrics of plain text but tokenised BLEU."""
        names = [name for name in self.metrics if name != "tokenised_bleu"]
        statistics = self.statistics(TestSet(hypotheses, references, [], []), names)
        return {name: corpus_score(name, rows.sum(axis=0)) for name, rows in statistics.items()}

    def signatures(self) -> Dict[str, str]:
        """Return sacreBLEU's signature of each metric; only after :meth:`statistics`."""
        return {name: str(metric.get_signature()) for name, metric in self.metrics.items()}


def corpus_score(name: str, total: Sequence[float]) -> float:
    """Return a metric from the sum of the statistics of its source over sentences.

    sacreBLEU's are in percent. ``length_ratio`` is not a number where references are empty. Any
    other metric is the mean of the scores of sentences that were read from a file.
    """
    if name == "length_ratio" or source_of(name) not in METRICS:
        return float(total[0] / total[1]) if total[1] else math.nan
    # an average of the references' lengths, in TER
    numbers = [float(value) if name == "ter" else int(value) for value in total]
    if name == "bleu_without_penalty":
        # the references' length; outputs that are longer have no penalty
        numbers[1] = 0
    return _BY_SUMS[source_of(name)]._compute_score_from_stats(numbers).score


def are_counted(name: str, rows: np.ndarray) -> np.ndarray:
    """Return which sentences have something in their references that a metric counts.

    Of no such sentences it is not defined: of BLEU, references of fewer tokens than four.

    Args:
        name: of the metric.
        rows: the statistics of its source, ``(sentences, numbers)``.
    """
    source = source_of(name)
    if source not in WIDTHS or name == "length_ratio":
        return np.ones(len(rows), bool)
    if source.startswith("chrf"):
        return np.asarray(rows[:, 1::3].any(axis=1))
    return rows[:, 1] >= (1 if source == "ter" else _ORDER)


def why_undefined(name: str, rows: np.ndarray) -> Optional[str]:
    """Return why a metric is not defined on sentences with these statistics; None where it is."""
    if not len(rows) or are_counted(name, np.asarray(rows)).any():
        return None
    if WIDTHS[source_of(name)] == WIDTHS["sacrebleu"]:
        return f"{title_of(name)} is not defined (-) where no reference has {_ORDER} tokens"
    return f"{title_of(name)} is not defined (-) where all references are empty"


def title_of(name: str) -> str:
    """Return how a metric is called in tables: one that is not of ``TITLES`` by its name."""
    return TITLES.get(name, name)


def source_of(name: str) -> str:
    """Return the metric from whose statistics a metric of ``TITLES`` is computed."""
    return DERIVED.get(name, name)


def tokeniser(language: str) -> str:
    """Return the tokeniser of sacreBLEU for a target language.

    sacreBLEU's own choice: ``zh`` for Chinese characters, ``ja-mecab``, ``ko-mecab``, and ``13a``,
    which parts words at spaces. Where there are none, or MeCab is not installed, it is the
    sentencepieces of FLORES-200 if their model has been downloaded, and else single characters.
    """
    code, script = language_code(language), script_of(language)
    if script in HAN:
        return "zh"
    wanted = _MECAB.get(code) if script != "Latn" else None
    if wanted and wanted.MeCab:
        return f"{code}-mecab"
    if not wanted and has_spaces(language):
        return "13a"
    return _FLORES if os.path.exists(_flores_model()) else "char"


def tokeniser_remarks(language: str) -> List[str]:
    """Return what the user should know of the tokeniser for a language; nothing of a usual one."""
    name, code = tokeniser(language), language_code(language)
    if name not in (_FLORES, "char"):
        return []
    unit = "single characters" if name == "char" else "the sentencepieces of FLORES-200"
    why = f"sacreBLEU has no tokeniser for {language}, which has no spaces between words"
    if code in _MECAB:
        why = f"MeCab is not installed: pip install 'sacrebleu[{code}]'"
    elif name == "char":
        why += f"; sacrebleu --tokenize {_FLORES} downloads one, which is taken once it is there"
    return [f"BLEU is of {unit} (tok:{name}): {why}"]


def word_remarks(language: str, metrics: Sequence[str]) -> List[str]:
    """Return what to know of metrics that count words where no spaces part them."""
    if has_spaces(language):
        return []
    remarks = []
    if "chrf++" in metrics:
        remarks.append(
            f"chrF++ counts words between spaces, which {language} does not have: compare chrF"
        )
    if "ter" in metrics and script_of(language) not in HAN | _JAPANESE:
        remarks.append(
            f"TER counts words between spaces, which {language} does not have, so whole lines"
        )
    return remarks


def _flores_model() -> str:
    return os.path.join(SACREBLEU_DIR, "models", os.path.basename(SPM_MODELS[_FLORES]["url"]))


def sacrebleus_metrics(language: str) -> Dict[str, Any]:
    """Return sacreBLEU's objects of ``METRICS``; the target language chooses the tokeniser."""
    name, asian = tokeniser(language), not has_spaces(language)
    return {
        "sacrebleu": BLEU(tokenize=name),
        "sacrebleu_lowercase": BLEU(lowercase=True, tokenize=name),
        "sacrebleu_lowercase_intl": BLEU(lowercase=True, tokenize="intl"),
        "tokenised_bleu": BLEU(tokenize="none", smooth_method="none", force=True),
        "chrf": CHRF(),
        "chrf++": CHRF(word_order=2),
        # of Chinese and Japanese, characters are words
        "ter": TER(normalized=asian, asian_support=asian),
    }


# sums need no tokeniser, and so no language
_BY_SUMS = sacrebleus_metrics("")
