"""The sentence classification tasks of GLUE and XTREME: one table, and a reader of their files.

The files are the official downloads: tab-separated, UTF-8, no quoting (a quotation mark is a
character like any other), columns found by the names in the first line.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")
_SHOWN = 5


@dataclass(frozen=True)
class GlueTask:
    """What tells one task from another.

    Args:
        name: as GLUE writes it, and its folder in the official download.
        sentences: names of the columns that hold the sentence or the two sentences.
        label: name of the column that holds the label or the score.
        labels: in the order of their numbers; none for a regression.
        metrics: see :data:`fairseq_posenc.metrics.glue.METRICS`.
        best: the one that chooses checkpoints.
        labelled: split -> file.
        unlabelled: split -> file, read when it is there.
        columns: names of the columns of labelled files that begin without a line of names.
        scores: lowest and highest score of a regression.
        language: name of the column of languages, each of which becomes a split of its own.
        may_be_empty: whether the official files hold empty sentences.
    """

    name: str
    sentences: Tuple[str, ...]
    label: str
    labels: Tuple[str, ...]
    metrics: Tuple[str, ...] = ("accuracy",)
    best: str = "accuracy"
    labelled: Dict[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "valid": "dev.tsv"}
    )
    unlabelled: Dict[str, str] = field(default_factory=lambda: {"test": "test.tsv"})
    columns: Tuple[str, ...] = ()
    scores: Tuple[float, float] = (0.0, 5.0)
    language: str = ""
    may_be_empty: bool = False


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")
_ACCURACY_AND_F1 = ("accuracy", "f1", "accuracy_and_f1")

TASKS: Dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask(
            "CoLA", ("sentence",), "label", ("0", "1"),
            metrics=("matthews", "accuracy"), best="matthews",
            columns=("source", "label", "mark", "sentence"),
        ),
        GlueTask("SST-2", ("sentence",), "label", ("0", "1")),
        GlueTask(
            "MRPC", ("#1 String", "#2 String"), "Quality", ("0", "1"),
            metrics=_ACCURACY_AND_F1, best="f1",
        ),
        GlueTask(
            "QQP", ("question1", "question2"), "is_duplicate", ("0", "1"),
            metrics=_ACCURACY_AND_F1, may_be_empty=True,
        ),
        GlueTask(
            "STS-B", _PAIR, "score", (),
            metrics=("pearson", "spearman", "pearson_and_spearman"), best="spearman",
        ),
        GlueTask(
            "MNLI", _PAIR, "gold_label", _INFERENCE,
            labelled={
                "train": "train.tsv", "valid": "dev_matched.tsv", "valid1": "dev_mismatched.tsv",
            },
            unlabelled={"test": "test_matched.tsv", "test1": "test_mismatched.tsv"},
        ),
        GlueTask("QNLI", ("question", "sentence"), "label", _ENTAILMENT),
        GlueTask("RTE", _PAIR, "label", _ENTAILMENT),
        GlueTask("WNLI", _PAIR, "label", ("0", "1")),
        GlueTask(
            "XNLI", _PAIR, "gold_label", _INFERENCE,
            labelled={"valid": "xnli.dev.tsv", "test": "xnli.test.tsv"}, unlabelled={},
            language="language",
        ),
    )
}  # fmt: skip


class Split(NamedTuple):
    """Examples of one split.

    Args:
        file: name of the file they come from.
        sentences: per example, the one or two sentences.
        targets: per example, the number of its label or its score; None without labels.
        skipped: rows left out, counted from 0 among all of the split.
    """

    file: str
    sentences: List[Tuple[str, ...]]
    targets: Optional[List[Union[int, float]]]
    skipped: List[int]


class _Malformed(ValueError):
    """Something is wrong with one line."""


def read(task: GlueTask, folder: str, problems: List[str]) -> Dict[str, Split]:
    """Read all files of a task.

    Args:
        task: one of :data:`TASKS`.
        folder: with the official files.
        problems: gets a description of every malformed line, which is left out: another number
            of columns than the first line has, an unknown label, a score that is no number or out
            of range, an empty sentence.

    Returns:
        Splits by name, ``train``, ``valid``, ``valid1``, ``test``, …, and ``valid-de`` and so on if
        the task has languages. Only rows whose language can be read count for ``skipped`` there.

    Raises:
        UsageError: a file is missing, unreadable, empty, lacks a column, or has no good line.
    """
    splits: Dict[str, Split] = {}
    for name, file in task.labelled.items():
        splits.update(_read_file(task, folder, file, name, True, problems))
    for name, file in task.unlabelled.items():
        if os.path.exists(os.path.join(folder, file)):
            splits.update(_read_file(task, folder, file, name, False, problems))
    return splits


def refuse(problems: Sequence[str]) -> None:
    """Raise an error that names the first malformed lines and their number, if there are any.

    Raises:
        UsageError: there are.
    """
    if problems:
        more = f"; … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise UsageError(
            f"{len(problems)} malformed {'lines' if len(problems) > 1 else 'line'}: "
            f"{'; '.join(problems[:_SHOWN])}{more}; mend the file, or leave such lines out with "
            "--skip-malformed"
        )


def _read_file(
    task: GlueTask, folder: str, file: str, split: str, labelled: bool, problems: List[str]
) -> Dict[str, Split]:
    path = os.path.join(folder, file)
    found: Dict[str, Split] = {}
    rows: Dict[str, int] = {}
    reader, before = _Reader(task, labelled), len(problems)
    for number, cells in reader.rows(path):
        name = f"{split}-{reader.language(cells)}" if task.language else split
        row = rows[name] = rows.get(name, -1) + 1
        part = found.setdefault(name, Split(file, [], [] if labelled else None, []))
        try:
            sentences, target = reader.example(cells)
        except _Malformed as error:
            problems.append(f"{path}, line {number}: {error}")
            part.skipped.append(row)
            continue
        part.sentences.append(sentences)
        if part.targets is not None and target is not None:
            part.targets.append(target)
    found = {name: part for name, part in found.items() if part.sentences}
    if not found:
        why = f": {problems[before]}, and so on" if len(problems) > before else ""
        raise UsageError(f"{path} holds no examples{why}")
    return found


class _Reader:
    """Finds sentences and labels in the rows of one file."""

    def __init__(self, task: GlueTask, labelled: bool):
        self.task = task
        self.labelled = labelled
        self.columns: Sequence[str] = ()

    def rows(self, path: str) -> Iterator[Tuple[int, List[str]]]:
        """Yield number, from 1, and cells of each line below the names of the columns."""
        lines = read_lines(path)
        lines[0] = lines[0].lstrip("\ufeff")
        first = 1
        self.columns = self.task.columns if self.labelled else ()
        if not self.columns:
            self.columns = lines.pop(0).split("\t")
            first = 2
        task = self.task
        needed = [*task.sentences, *([task.label] if self.labelled else [])]
        needed += [task.language] if task.language else []
        missing = [name for name in needed if name not in self.columns]
        if missing:
            raise UsageError(
                f"{path}, line 1: {task.name} needs a column {missing[0]!r}; there are "
                f"{', '.join(map(repr, self.columns))}"
            )
        for number, line in enumerate(lines, first):
            yield number, line.split("\t")

    def _cell(self, cells: List[str], column: str) -> str:
        return cells[self.columns.index(column)]

    def language(self, cells: List[str]) -> str:
        """Return the language of a row, "" if there is none that could name a split."""
        found = cells[self.columns.index(self.task.language)] if self._is_whole(cells) else ""
        return found if _LANGUAGE.match(found) else ""

    def _is_whole(self, cells: List[str]) -> bool:
        return len(cells) == len(self.columns)

    def example(self, cells: List[str]) -> Tuple[Tuple[str, ...], Union[int, float, None]]:
        """Return sentences and target of a row."""
        task = self.task
        if not self._is_whole(cells):
            raise _Malformed(f"{len(cells)} columns instead of {len(self.columns)}")
        if task.language and not self.language(cells):
            raise _Malformed(f"{self._cell(cells, task.language)!r} is no language")
        sentences = tuple(self._cell(cells, column) for column in task.sentences)
        if not (task.may_be_empty or all(map(str.strip, sentences))):
            raise _Malformed("an empty sentence")
        return sentences, self._target(self._cell(cells, task.label)) if self.labelled else None

    def _target(self, text: str) -> Union[int, float]:
        task = self.task
        if task.labels:
            if text not in task.labels:
                raise _Malformed(f"label {text!r} is none of {', '.join(task.labels)}")
            return task.labels.index(text)
        try:
            score = float(text)
        except ValueError:
            raise _Malformed(f"score {text!r} is no number") from None
        if not task.scores[0] <= score <= task.scores[1]:
            raise _Malformed(f"score {text} is not in {task.scores[0]:g}…{task.scores[1]:g}")
        return score
