"""``Score``: what ``posenc score`` found of a training, read from its ``score.json``."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.json_files import Each, Maybe, OrNull, read_json, schema_error
from fairseq_posenc.tools.scores.lengths import Bin, length_label
from fairseq_posenc.tools.scores.metrics import METRICS, SACREBLEU_METRICS, base_metric, metric_of

# a metric may be missing, as from older results
FIGURES = dict.fromkeys(METRICS, Maybe(float))
_PART = {"sentences": int, "within": Maybe(int), **FIGURES}
_BIN = {"name": str, "longer_than": float, "up_to": OrNull(float), **_PART}
_MORE = "more_references"
_TEXTS = dict.fromkeys(("source", "reference", "hypothesis"), Maybe([str]))
_SCHEMA = {
    "all": {**_PART, "chance": Maybe(float), "above_chance": Maybe(bool)},
    "by_length": OrNull({"of": str, "unit": str, "bins": [_BIN]}),
    "signatures": Each(str),
    "sentences": Maybe(
        {"length": [int], "statistics": Each([[float]]), **_TEXTS, _MORE: Maybe([[str]])}
    ),
    "ceiling": Maybe({"figures": Each(float), "with_unknown": Maybe(float)}),
    "longest_trained": Maybe({"source": int, "reference": int}),
    "language": Maybe(str),
    "precision": Maybe(Each(OrNull(str))),
    "test_set": Maybe({"source": Maybe(str), "reference": str}),
    "notes": Maybe(Each(str)),
    "command": Maybe([str]),
    "versions": Maybe(Each(str)),
}
_AGAIN = "score it again"


@dataclass(frozen=True)
class Subset:
    """A set of sentences, and what a training got on it.

    Attributes:
        name: ``all``, or that of a range of lengths.
        edges: the range; None for all sentences.
        sentences: how many there are.
        within: how many of them are no longer than the longest trained on; None: not known.
        figures: by metric; None where it is not defined.
    """

    name: str
    edges: Optional[Bin]
    sentences: int
    within: Optional[int]
    figures: Mapping[str, Optional[float]]


@dataclass(frozen=True)
class Score:
    """A result of ``posenc score``.

    Attributes:
        whole: the test set as a whole.
        bins: its ranges of length; empty if it was not split.
        lengths_of, unit: what the ranges count, see :attr:`label`.
        signatures: sacreBLEU's, by metric.
        lengths: of every sentence the length or number by which it was put into a range.
        statistics: by metric, a row of numbers per sentence, from which samples are drawn.
        source, reference, hypothesis: plain text by sentence; None where it was not kept.
        more_references: the others where sentences have several, by sentence in each list.
        ceiling: by metric, what the references themselves get.
        without_unknown: sacreBLEU's ceiling if characters that the dictionary lacks are left out.
        chance: sacreBLEU with the references of other sentences.
        above_chance: whether the training is above it; None: the test set cannot tell.
        longest_trained: subwords of ``source`` and ``reference`` of the training set.
        language: the target's, or an empty text.
        source_digest, reference_digest: of both sides of the test set.
        precision: of ``generation``, and of ``training`` with its hardware, where known.
        notes, command, versions: by what the result was made.
    """

    whole: Subset
    bins: Sequence[Subset] = ()
    lengths_of: str = ""
    unit: str = ""
    signatures: Mapping[str, str] = field(default_factory=dict)
    lengths: Sequence[int] = ()
    statistics: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    source: Optional[Sequence[str]] = None
    reference: Optional[Sequence[str]] = None
    hypothesis: Optional[Sequence[str]] = None
    more_references: Sequence[Sequence[str]] = ()
    ceiling: Mapping[str, float] = field(default_factory=dict)
    without_unknown: Optional[float] = None
    chance: Optional[float] = None
    above_chance: Optional[bool] = None
    longest_trained: Optional[Mapping[str, int]] = None
    language: str = ""
    source_digest: Optional[str] = None
    reference_digest: Optional[str] = None
    precision: Mapping[str, Optional[str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Any, path: str = "it", origin: str = "posenc score --output") -> "Score":
        """Return the result that a ``score.json`` holds; older ones lack some members.

        Raises:
            UsageError: ``content``, of ``path``, is not what ``origin`` writes.
        """
        misfit = schema_error(content, _SCHEMA)
        if misfit:
            raise UsageError(f"{path} is not from {origin}, or damaged: {misfit}")
        members: Dict[str, Any] = {name: content.get(name) or {} for name in _SCHEMA}
        split, sentences, ceiling = members["by_length"], members["sentences"], members["ceiling"]
        return cls(
            whole=_part("all", None, content["all"]),
            bins=[
                _part(part["name"], Bin(part["name"], part["longer_than"], part["up_to"]), part)
                for part in split.get("bins", [])
            ],
            lengths_of=split.get("of", ""),
            unit=split.get("unit", ""),
            signatures=members["signatures"],
            lengths=sentences.get("length", []),
            statistics=sentences.get("statistics", {}),
            **{side: sentences.get(side) for side in _TEXTS},
            more_references=sentences.get(_MORE) or (),
            ceiling=ceiling.get("figures", {}),
            without_unknown=ceiling.get("with_unknown"),
            chance=content["all"].get("chance"),
            above_chance=content["all"].get("above_chance"),
            longest_trained=content.get("longest_trained"),
            language=content.get("language") or "",
            source_digest=members["test_set"].get("source"),
            reference_digest=members["test_set"].get("reference"),
            precision=members["precision"],
            notes=members["notes"],
            command=content.get("command") or [],
            versions=members["versions"],
        )

    @property
    def parts(self) -> List[Subset]:
        """The whole test set, and the ranges."""
        return [self.whole, *self.bins]

    @property
    def label(self) -> str:
        """What the ranges count, in words: "source length (words)"."""
        return length_label(self.lengths_of, self.unit)

    @property
    def is_one_model(self) -> bool:
        """Whether it notes that the seeds of its name are one model, whose outputs are the same."""
        return self.notes.get("one-model") == "yes"

    @property
    def seed(self) -> str:
        """The seed that the result notes, or an empty text."""
        return self.notes.get("seed", "")

    def members(self) -> List[List[int]]:
        """Return the sentences of each of :attr:`parts`."""
        return [
            part.edges.members(self.lengths) if part.edges else list(range(len(self.lengths)))
            for part in self.parts
        ]

    def without_trained_lengths(self) -> "Score":
        """Return the result as if it were not known how long the sentences of training were."""
        unknown = [replace(part, within=None) for part in self.parts]
        return replace(self, whole=unknown[0], bins=unknown[1:], longest_trained=None)

    def check_sentences(self, name: str, metric: str) -> None:
        """Raise :class:`UsageError` unless statistics of the sentences are there, and whole."""
        if base_metric(metric) not in self.statistics:
            raise UsageError(
                f"{name} has no statistics of its sentences, from which intervals are drawn: an "
                f"older version scored it; {_AGAIN} (in a recipe: delete score.json, and start it "
                "again)"
            )
        texts = [
            lines
            for lines in (self.source, self.reference, self.hypothesis, *self.more_references)
            if lines is not None
        ]
        counts = {len(lines) for lines in (*self.statistics.values(), *texts)}
        are_valid = all(_are_valid(metric, rows) for metric, rows in self.statistics.items())
        by_part = [*map(len, self.members())] == [part.sentences for part in self.parts]
        if not are_valid or counts != {self.whole.sentences} or not by_part:
            raise UsageError(
                f"{name} has statistics that are damaged, or of other sentences than its figures; "
                f"{_AGAIN}"
            )


def read_score(path: str, test: Optional[str] = None) -> Score:
    """Read a result of ``posenc score``, or one test set of a ``score.json`` of ``score_cell``.

    Raises:
        UsageError: it is missing, or not such a file; the message names the member that is wrong.
    """
    content, origin = read_json(path), "score_cell" if test else "posenc score --output"
    if not test:
        return Score.of(content, path, origin)
    misfit = schema_error(content, {"tests": {test: _SCHEMA}, "notes": _SCHEMA["notes"]})
    if misfit:
        raise UsageError(f"{path} is not from {origin}, or damaged: {misfit}")
    return Score.of({**content["tests"][test], "notes": content.get("notes")})


def named_path(argument: str, task: str = "") -> Tuple[str, str]:
    """Return name and path of ``NAME=path``, or of a path, whose folder gives the name.

    A folder ``seed<n>`` leaves it to the one above; so do ``lr<rate>`` and the name of the
    ``task``, if there is one.
    """
    name, sign, path = argument.partition("=")
    if sign and "/" not in name:
        return printable(name), path
    folder = Path(argument).resolve().parent
    for pattern in (r"seed\d+", *[r"lr[\d.]+(e-?\d+)?", re.escape(task)] * bool(task)):
        folder = folder.parent if re.fullmatch(pattern, folder.name) else folder
    return printable(folder.name), argument


def nothing_learned(sacrebleu: float, chance: float) -> str:
    """Return what a note says of a model whose BLEU on the whole test set is not above chance."""
    return (
        f"has hardly learned anything: its sacreBLEU is {sacrebleu:.2f}, and {chance:.2f} with "
        "the references of other sentences"
    )


def _part(name: str, edges: Optional[Bin], content: Mapping[str, Any]) -> Subset:
    figures = {metric: content[metric] for metric in METRICS if metric in content}
    return Subset(name, edges, content["sentences"], content.get("within"), figures)


def _are_valid(metric: str, rows: Sequence[Sequence[float]]) -> bool:
    """Return whether all statistics of a metric are numbers that it can have."""
    width = metric_of(metric).width
    # scores of sentences from a file may be negative
    lowest = 0 if metric in SACREBLEU_METRICS else -1e9
    return all(len(row) == width and lowest <= min(row) <= max(row) < 1e9 for row in rows)
