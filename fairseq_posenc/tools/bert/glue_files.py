"""Reading the official files of GLUE and XNLI, and those that XTREME's download makes of them.

The official files are tab-separated, UTF-8, without quoting (a quotation mark is a character like
any other); columns are found by the names in the first line. XTREME's have no such line, and are
quoted as Python's ``csv`` writes them.
"""

import csv
import os
import re
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.bert.glue_tasks import GlueTask

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")
_SHOWN = 5  # malformed lines in an error


class GlueSplit(NamedTuple):
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


class _Source(NamedTuple):
    """A file of a split: whether its labels are read, and which of its rows, by their cells.

    One of XTREME's download has a language, that of its name.
    """

    split: str
    path: str
    labelled: bool
    takes: Callable[[Dict[str, str]], bool] = lambda row: True
    language: str = ""

    @property
    def is_test(self) -> bool:
        """Whether a prediction is wanted for every row."""
        return not self.labelled or self.split.startswith("test")


class _MalformedLine(ValueError):
    """Something is wrong with one line."""


def read(task: GlueTask, folder: str, problems: List[str]) -> Dict[str, GlueSplit]:
    """Read all files of a task.

    Args:
        problems: gets a description of every malformed line, which is left out: another number
            of columns than the first line has, an unknown label, a score that is not a number or
            is out of range, an empty sentence.

    Returns:
        Splits by name, ``train``, ``valid``, ``valid1``, ``test``, …, and ``valid-de`` and so on if
        the task has languages. Only rows whose language can be read count for ``skipped`` there.
    """
    splits: Dict[str, GlueSplit] = {}
    for source in _sources(task, folder):
        splits.update(_read_file(task, source, problems))
    return splits


def _sources(task: GlueTask, folder: str) -> Iterator[_Source]:
    """Yield the files to read: GLUE's own, XTREME's, or what GLUE's are made from."""
    first = os.path.join(folder, next(iter(task.labelled.values())))
    if not os.path.exists(first):
        sources = list(_xtreme(task, folder))
        if sources:
            yield from sources
            return
    if task.original and not os.path.exists(first):
        train, test, *ids = (os.path.join(folder, name) for name in task.original)
        if os.path.exists(train):
            yield from _original(train, test, next(filter(os.path.exists, ids), ids[0]))
            return
    for split, file in task.labelled.items():
        yield _Source(split, os.path.join(folder, file), True)
    for split, files in task.unlabelled.items():
        paths = (os.path.join(folder, file) for file in files)
        path = next(filter(os.path.exists, paths), None)
        if path:
            yield _Source(split, path, False)


def _xtreme(task: GlueTask, folder: str) -> Iterator[_Source]:
    """Yield the files of XTREME's download, a file for each language."""
    names = sorted(os.listdir(folder)) if task.xtreme and os.path.isdir(folder) else []
    for split, pattern in task.xtreme.items():
        for name in names:
            match = re.fullmatch(pattern, name)
            if match:
                path = os.path.join(folder, name)
                labelled = len(_csv_cells(read_lines(path)[0])) > len(task.sentences)
                yield _Source(split, path, labelled, language=match[1])


def _csv_cells(line: str) -> List[str]:
    try:
        return next(csv.reader([line], delimiter="\t"), [])
    except csv.Error:  # longer than any sentence
        return [line]


def _original(train: str, test: str, ids: str) -> Iterator[_Source]:
    """Yield GLUE's parts of MRPC as Microsoft published it: ``ids`` names the development pairs."""
    id_pairs = {tuple(line.split("\t")) for line in read_lines(ids)}

    def in_dev(row: Dict[str, str]) -> bool:
        return (row.get("#1 ID"), row.get("#2 ID")) in id_pairs

    yield _Source("train", train, True, lambda row: not in_dev(row))
    yield _Source("valid", train, True, in_dev)
    if os.path.exists(test):
        yield _Source("test", test, False)


def _rows(task: GlueTask, source: _Source) -> Iterator[Tuple[int, Dict[str, str], str]]:
    """Yield the number of each line, its cells by column, and why there are none."""
    lines = read_lines(source.path)
    lines[0] = lines[0].lstrip("\ufeff")
    columns: Sequence[str] = task.columns if source.labelled else ()
    first_line = 1
    if source.language:
        columns = (*task.sentences, *[task.label] * source.labelled)
    elif not columns:
        columns, first_line = lines.pop(0).split("\t"), 2
        required = [*task.sentences, *[task.label] * source.labelled, task.language]
        missing = [name for name in required if name and name not in columns]
        if missing:
            raise UsageError(
                f"{source.path}, line 1: {task.name} needs a column {missing[0]!r}; there are "
                f"{', '.join(map(repr, columns))}"
            )
    for number, line in enumerate(lines, first_line):
        cells = _csv_cells(line) if source.language else line.split("\t")
        if len(cells) == len(columns):
            # of equal names the first
            row = dict(zip(columns[::-1], cells[::-1]))
            if source.language and task.language:
                row[task.language] = source.language
            yield number, row, ""
        else:
            yield number, {}, f"{len(cells)} columns instead of {len(columns)}"


def _read_file(task: GlueTask, source: _Source, problems: List[str]) -> Dict[str, GlueSplit]:
    split, path, labelled = source[:3]
    parts: Dict[str, GlueSplit] = {}
    rows: Dict[str, int] = {}
    wrong: List[str] = []
    for number, row, fault in _rows(task, source):
        if not source.takes(row):
            continue
        language = row.get(task.language, source.language)
        name = split
        if task.language:
            name = f"{split}-{language if _LANGUAGE.match(language) else ''}"
        rows[name] = rows.get(name, -1) + 1
        part = parts.setdefault(
            name, GlueSplit(os.path.basename(path), [], [] if labelled else None, [])
        )
        try:
            if fault:
                raise _MalformedLine(fault)
            sentences, target = _example(task, row, labelled)
        except _MalformedLine as error:
            wrong.append(f"{path}, line {number}: {error}")
            part.skipped.append(rows[name])
            continue
        part.sentences.append(sentences)
        if part.targets is not None and target is not None:
            part.targets.append(target)
    if wrong and source.is_test:
        raise UsageError(
            f"{summary(wrong)}; mend the file: a test set is predicted as a whole, and its lines "
            "are never left out"
        )
    parts = {name: part for name, part in parts.items() if part.sentences}
    if not parts:
        why = "".join(f": {problem}, and so on" for problem in wrong[:1])
        raise UsageError(f"{path} holds no examples{f' of {split}' if task.original else ''}{why}")
    problems += wrong
    return parts


def summary(problems: List[str]) -> str:
    """Return a line with the first few of the malformed lines, and how many there are."""
    more = f"; … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    lines = "lines" if len(problems) > 1 else "line"
    return f"{len(problems)} malformed {lines}: {'; '.join(problems[:_SHOWN])}{more}"


def _example(
    task: GlueTask, row: Dict[str, str], labelled: bool
) -> Tuple[Tuple[str, ...], Union[int, float, None]]:
    """Return sentences and target of a row, given as cells by the names of columns."""
    if task.language and not _LANGUAGE.match(row[task.language]):
        raise _MalformedLine(f"{row[task.language]!r} is not a language")
    sentences = tuple(row[column] for column in task.sentences)
    if labelled and not (task.may_be_empty or all(map(str.strip, sentences))):
        raise _MalformedLine("an empty sentence")
    if not labelled:
        return sentences, None
    target = row[task.label]
    if task.labels:
        if target not in task.labels:
            raise _MalformedLine(f"label {target!r} is not one of {', '.join(task.labels)}")
        return sentences, task.labels.index(target)
    lowest, highest = task.scores
    try:
        score = parse_number(target.strip())
    except ValueError:
        raise _MalformedLine(f"score {target!r} is not a number") from None
    if not lowest <= score <= highest:
        raise _MalformedLine(f"score {target} is not in {lowest:g}…{highest:g}")
    return sentences, score
