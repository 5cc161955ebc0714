"""``Score``: what ``posenc score`` writes into ``score.json``, and tables read from it."""

import os
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.json_files import NAMES, from_json, read_json
from fairseq_posenc.tools.scores.lengths import Bin
from fairseq_posenc.tools.scores.metrics import METRICS, SACREBLEU_METRICS, base_metric, metric_of

_AGAIN = "score it again"


@dataclass(frozen=True)
class TokenisedDetail:
    """Of tokenised BLEU: n-gram precisions in percent, brevity penalty, numbers of tokens."""

    precisions: Sequence[float]
    brevity_penalty: float
    hypothesis_tokens: int
    reference_tokens: int


@dataclass(frozen=True)
class Subset:
    """A set of sentences, and what a training got on it.

    Attributes:
        sentences: how many there are.
        metrics: a member for each; None where it is not defined.
        tokenised_detail: of ``tokenised_bleu``; None without sentences.
        interval: by metric, 95 % of bootstrap samples of the sentences.
        undefined: why metrics are not defined.
        within: how many of them are no longer, on both sides, than the longest trained on; None:
            not known.
    """

    sentences: int
    metrics: Mapping[str, Optional[float]] = field(default_factory=dict, metadata={NAMES: METRICS})
    tokenised_detail: Optional[TokenisedDetail] = None
    interval: Mapping[str, Optional[Sequence[float]]] = field(default_factory=dict)
    undefined: Sequence[str] = ()
    within: Optional[int] = None


@dataclass(frozen=True)
class CorpusScore(Subset):
    """The figures of all sentences.

    Attributes:
        chance: sacreBLEU with each reference given to another hypothesis.
        above_chance: whether the training is above it; None: the test set cannot tell.
        empty_hypotheses, empty_references: numbers of lines, from 1.
    """

    chance: Optional[float] = None
    above_chance: Optional[bool] = None
    empty_hypotheses: Sequence[int] = ()
    empty_references: Sequence[int] = ()


@dataclass(frozen=True)
class LengthRange(Subset, Bin):
    """The figures of a range of lengths."""


@dataclass(frozen=True)
class ByLength:
    """The ranges, and ``of`` what they count the ``unit``.

    Of a file of numbers that is ``sentence``, and the file's ending.
    """

    of: str
    unit: str
    bins: Sequence[LengthRange]


@dataclass(frozen=True)
class Sentences:
    """Every sentence.

    Attributes:
        length: or the number by which it was put into a range.
        statistics: by metric, a row of numbers per sentence, from which samples are drawn.
        source, reference, hypothesis: plain text; None where it was not kept.
        more_references: the others where sentences have several, by sentence in each list.
    """

    length: Sequence[int] = ()
    statistics: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    source: Optional[Sequence[str]] = None
    reference: Optional[Sequence[str]] = None
    hypothesis: Optional[Sequence[str]] = None
    more_references: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class RoundTripScore:
    """Figures of references that went the way of the training text.

    Attributes:
        figures: value by metric.
        exact, references: how many of how many references came back as they were.
        lost: how often characters of the references did not come back.
        unknown: how often characters were lost since the dictionary lacks their subwords.
        with_unknown: sacreBLEU with ``<unk>`` for these subwords; the same where none is unknown.
    """

    figures: Mapping[str, float]
    exact: Optional[int] = None
    references: Optional[int] = None
    lost: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    with_unknown: Optional[float] = None


@dataclass(frozen=True)
class TrainedLengths:
    """Subwords of the longest ``source`` and ``reference`` of the training set."""

    source: int
    reference: int


@dataclass(frozen=True)
class WithoutToken:
    """The figures without a token in both texts, as ``<sep>`` between joined sentences.

    Our reading of Kiyono et al. 2021, whose BLEU of ten sentences joined by ``<sep>`` is 8 points
    above that of the same sentences one by one: separators count in the figures of the whole.
    """

    token: str
    all: Subset


@dataclass(frozen=True)
class Digests:
    """Of both sides of the test set."""

    reference: str
    source: Optional[str] = None


@dataclass(frozen=True)
class Score:
    """A result of ``posenc score``: the fields are the members of ``score.json``.

    Attributes:
        all: the test set as a whole.
        signatures: by metric, of sacreBLEU, or what segment scores and bits are.
        by_length: None if the test set was not split.
        sentences: None without ranges of length.
        ceiling: what the references themselves get; None: not known.
        longest_trained: None: not known.
        without_token: None if there is no such token.
        language, source_language: None: not known.
        test_set: digests.
        precision: of ``generation``, and of ``training`` with its hardware, where known.
        remarks: what the user should know of the texts.
        versions, command, notes: by what the result was made.
        training_options: of the log beside the file, in which they are not.
    """

    all: CorpusScore
    signatures: Mapping[str, str]
    by_length: Optional[ByLength] = None
    sentences: Optional[Sentences] = None
    ceiling: Optional[RoundTripScore] = None
    longest_trained: Optional[TrainedLengths] = None
    without_token: Optional[WithoutToken] = None
    language: Optional[str] = None
    source_language: Optional[str] = None
    test_set: Optional[Digests] = None
    precision: Mapping[str, Optional[str]] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    training_options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Dict[str, Any]:
        """Return what ``score.json`` holds."""
        return asdict(self, dict_factory=_members)

    @property
    def bins(self) -> Sequence[LengthRange]:
        """The ranges of length."""
        return self.by_length.bins if self.by_length else ()

    @property
    def texts(self) -> Sentences:
        """The sentences, none of a result without them."""
        return self.sentences or Sentences()

    @property
    def is_one_model(self) -> bool:
        """Whether it notes that the seeds of its name are one model, whose outputs are the same."""
        return self.notes.get("one-model") == "yes"

    @property
    def seed(self) -> str:
        """The seed that the result notes, or an empty text."""
        return self.notes.get("seed", "")

    def nothing_learned(self) -> List[str]:
        """Return what a note says of a model whose BLEU on the whole test set is not above chance.

        It is a list of one, and empty of any other model.
        """
        bleu, chance = self.all.metrics.get("sacrebleu"), self.all.chance
        if self.all.above_chance is not False or bleu is None or chance is None:
            return []
        return [
            f"has hardly learned anything: its sacreBLEU is {bleu:.2f}, and {chance:.2f} with the "
            "references of other sentences"
        ]

    def members(self) -> List[List[int]]:
        """Return the sentences of the whole test set, and those of each range."""
        lengths = self.texts.length
        return [[*range(len(lengths))], *(part.members(lengths) for part in self.bins)]

    def without_trained_lengths(self) -> "Score":
        """Return the result as if it were not known how long the sentences of training were."""
        bins = [replace(part, within=None) for part in self.bins]
        by_length = self.by_length and replace(self.by_length, bins=bins)
        corpus = replace(self.all, within=None)
        return replace(self, all=corpus, by_length=by_length, longest_trained=None)

    def check_sentences(self, name: str, metric: str) -> None:
        """Raise :class:`UsageError` unless statistics of the sentences are there, and whole."""
        texts = self.texts
        if base_metric(metric) not in texts.statistics:
            raise UsageError(
                f"{name} has no statistics of its sentences, from which intervals are drawn: an "
                f"older version scored it; {_AGAIN} (in a recipe: delete score.json, and start it "
                "again)"
            )
        sides = (texts.source, texts.reference, texts.hypothesis, *texts.more_references)
        columns = (*texts.statistics.values(), *(lines for lines in sides if lines is not None))
        are_valid = all(_are_valid(metric, rows) for metric, rows in texts.statistics.items())
        by_part = [*map(len, self.members())] == [p.sentences for p in (self.all, *self.bins)]
        if not are_valid or {*map(len, columns)} != {self.all.sentences} or not by_part:
            raise UsageError(
                f"{name} has statistics that are damaged, or of other sentences than its figures; "
                f"{_AGAIN}"
            )


@dataclass(frozen=True)
class TrainingFacts:
    """The facts of a training, of its log; see :func:`.training_log.read_log`."""

    updates: int
    seconds: Optional[float] = None
    tokens_per_second: Optional[float] = None
    parameters: Optional[int] = None
    gpus: Optional[int] = None
    hardware: Optional[str] = None
    precision: Optional[str] = None


@dataclass(frozen=True)
class CellScore:
    """A ``score.json`` of ``score_cell``: results by test set, and facts of the training."""

    tests: Mapping[str, Score]
    training: Optional[TrainingFacts] = None
    notes: Mapping[str, str] = field(default_factory=dict)


def read_score(path: str, test: Optional[str] = None) -> Score:
    """Read a result of ``posenc score``, or one test set of a ``score.json`` of ``score_cell``."""
    content = read_json(path)
    if not test:
        return from_json(Score, content, path, "posenc score --output")
    cell = from_json(CellScore, content, path, "score_cell")
    if test not in cell.tests:
        raise UsageError(f"{path} is not from score_cell, or damaged: tests.{test} is missing")
    return replace(cell.tests[test], notes=cell.notes)


def named_path(argument: str, task: str = "") -> Tuple[str, str]:
    """Return name and path of ``NAME=path``, or of a path, whose folder gives the name.

    A folder ``seed<n>`` leaves it to the one above; so do ``lr<rate>`` and the name of the
    ``task``, if there is one.
    """
    name, sign, path = argument.partition("=")
    if sign and "/" not in name:
        return printable(name), path
    # not that of what a link leads to
    folder = Path(os.path.abspath(argument)).parent
    for pattern in (r"seed\d+", *([r"lr[\d.]+(e-?\d+)?", re.escape(task)] if task else [])):
        folder = folder.parent if re.fullmatch(pattern, folder.name) else folder
    return printable(folder.name), argument


def _members(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """Return the members of JSON of a dataclass's fields: metrics stand beside the others."""
    members = dict(pairs)
    members.pop("training_options", None)
    return {**members.pop("metrics", {}), **members}


def _are_valid(metric: str, rows: Sequence[Sequence[float]]) -> bool:
    """Return whether all statistics of a metric are numbers that it can have."""
    width = metric_of(metric).width
    # scores of sentences from a file may be negative
    lowest = 0 if metric in SACREBLEU_METRICS else -1e9
    return all(len(row) == width and lowest <= min(row) <= max(row) < 1e9 for row in rows)
