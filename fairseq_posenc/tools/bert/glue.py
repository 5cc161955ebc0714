"""From the official files of GLUE and XNLI to the folder of ``posenc_sentence_prediction``.

The files are the official downloads: tab-separated, UTF-8, no quoting (a quotation mark is a
character like any other), columns found by the names in the first line.
"""

import functools
import json
import os
import re
import shutil
from dataclasses import asdict
from typing import (
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset
from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.sentence_folder import DESCRIPTION, INPUTS, Description
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.bert.glue_tasks import GlueTask
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing, replacing_files

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")
_SHOWN = 5  # malformed lines in an error
_CHUNK = 500  # sentences that a process cuts at a time


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
    """A file of a split: whether its labels are read, and which of its rows, by their cells."""

    split: str
    path: str
    labelled: bool
    takes: Callable[[Dict[str, str]], bool] = lambda row: True

    @property
    def is_test(self) -> bool:
        """Whether a prediction is wanted for every row."""
        return not self.labelled or self.split.startswith("test")


class _MalformedLine(ValueError):
    """Something is wrong with one line."""


def prepare(
    task: GlueTask,
    source: str,
    subwords_folder: str,
    destination: str,
    workers: int = 1,
    skip_malformed: bool = False,
) -> Tuple[Dict[str, int], List[str]]:
    """Binarise the official files of a task.

    Args:
        task: one of :data:`fairseq_posenc.tools.bert.glue_tasks.TASKS`.
        source: folder with the files.
        subwords_folder: folder with a subword model and its ``dict.txt``.
        destination: folder to write. What an earlier run has written there is replaced when all
            is done; without ``task.json`` it is incomplete.
        workers: processes.
        skip_malformed: leave malformed lines of training and development sets out.

    Returns:
        Examples per split, and descriptions of the lines left out.

    Raises:
        UsageError: malformed lines, and whatever is wrong with the files.
    """
    model = subwords.load(subwords_folder)
    problems: List[str] = []
    splits = read(task, source, problems)
    if problems and not skip_malformed:
        raise UsageError(
            f"{_summary(problems)}; mend the file, or leave such lines out with --skip-malformed"
        )
    description = Description(
        name=task.name,
        kind="classification" if task.labels else "regression",
        labels=list(task.labels),
        metrics=list(task.metrics),
        best=task.best,
        splits={name: split.file for name, split in splits.items()},
        skipped={name: split.skipped for name, split in splits.items() if split.skipped},
    )
    with replacing_files(destination, DESCRIPTION, lambda: _clear(destination)) as partial:
        copy_subwords(model, partial)
        _write_inputs(task, splits, partial, workers)
        _write_targets(task, splits, os.path.join(partial, "label"))
        with replacing(os.path.join(partial, DESCRIPTION)) as stream:
            stream.write(json.dumps(asdict(description), indent=2) + "\n")
    return {name: len(split.sentences) for name, split in splits.items()}, problems


def read(task: GlueTask, folder: str, problems: List[str]) -> Dict[str, GlueSplit]:
    """Read all files of a task.

    Args:
        task: one of :data:`fairseq_posenc.tools.bert.glue_tasks.TASKS`.
        folder: with the official files.
        problems: gets a description of every malformed line, which is left out: another number
            of columns than the first line has, an unknown label, a score that is not a number or
            is out of range, an empty sentence.

    Returns:
        Splits by name, ``train``, ``valid``, ``valid1``, ``test``, …, and ``valid-de`` and so on if
        the task has languages. Only rows whose language can be read count for ``skipped`` there.

    Raises:
        UsageError: a file is missing, unreadable, empty, lacks a column, or has no good line; a
            line of a test set is malformed.
    """
    splits: Dict[str, GlueSplit] = {}
    for source in _sources(task, folder):
        splits.update(_read_file(task, source, problems))
    return splits


def _sources(task: GlueTask, folder: str) -> Iterator[_Source]:
    """Yield the files to read, GLUE's own, or what they are made from."""
    first = os.path.join(folder, task.labelled.get("train", ""))
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


def _original(train: str, test: str, ids: str) -> Iterator[_Source]:
    """Yield GLUE's parts of MRPC as Microsoft published it: ``ids`` names the development pairs."""
    wanted = {tuple(line.split("\t")) for line in read_lines(ids)}

    def in_dev(row: Dict[str, str]) -> bool:
        return (row.get("#1 ID"), row.get("#2 ID")) in wanted

    yield _Source("train", train, True, lambda row: not in_dev(row))
    yield _Source("valid", train, True, in_dev)
    if os.path.exists(test):
        yield _Source("test", test, False)


def _read_file(task: GlueTask, source: _Source, problems: List[str]) -> Dict[str, GlueSplit]:
    split, path, labelled, takes = source
    lines = read_lines(path)
    lines[0] = lines[0].lstrip("\ufeff")
    columns: Sequence[str] = task.columns if labelled else ()
    first_line = 1
    if not columns:
        columns, first_line = lines.pop(0).split("\t"), 2
    needed = [*task.sentences, *[task.label] * labelled, *[task.language] * bool(task.language)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UsageError(
            f"{path}, line 1: {task.name} needs a column {missing[0]!r}; there are "
            f"{', '.join(map(repr, columns))}"
        )
    found: Dict[str, GlueSplit] = {}
    rows: Dict[str, int] = {}
    wrong: List[str] = []
    for number, line in enumerate(lines, first_line):
        cells = line.split("\t")
        # cells by name, of equal names the first; none where their number is wrong
        row = dict(zip(columns[::-1], cells[::-1])) if len(cells) == len(columns) else {}
        if not takes(row):
            continue
        language = row.get(task.language, "")
        name = split
        if task.language:
            name = f"{split}-{language if _LANGUAGE.match(language) else ''}"
        rows[name] = rows.get(name, -1) + 1
        part = found.setdefault(
            name, GlueSplit(os.path.basename(path), [], [] if labelled else None, [])
        )
        try:
            if not row:
                raise _MalformedLine(f"{len(cells)} columns instead of {len(columns)}")
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
            f"{_summary(wrong)}; mend the file: a test set is predicted as a whole, and its lines "
            "are never left out"
        )
    found = {name: part for name, part in found.items() if part.sentences}
    if not found:
        why = "".join(f": {problem}, and so on" for problem in wrong[:1])
        raise UsageError(f"{path} holds no examples{f' of {split}' * bool(task.original)}{why}")
    problems += wrong
    return found


def _summary(problems: List[str]) -> str:
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


def _clear(folder: str) -> None:
    """Remove what an earlier run has written."""
    for name in (*INPUTS, "label"):
        part = os.path.join(folder, name)
        for file in os.listdir(part) if os.path.isdir(part) else ():
            if file.endswith((".bin", ".idx", ".label", subwords.DICTIONARY)):
                os.remove(os.path.join(part, file))


def _write_inputs(
    task: GlueTask, splits: Dict[str, GlueSplit], destination: str, workers: int
) -> None:
    types = len(subwords.load_dictionary(destination))
    encode = functools.partial(_encode, folder=destination)
    total = sum(len(split.sentences) for split in splits.values()) * len(task.sentences)
    with tqdm(total=total, desc=task.name, unit=" sentences", leave=False) as progress:

        def items(sentences: List[str]) -> Iterator[np.ndarray]:
            for some in in_order(encode, chunked(sentences, _CHUNK), workers):
                yield from some
                progress.update(len(some))

        for number, name in enumerate(INPUTS[: len(task.sentences)]):
            folder, file = os.path.join(destination, name), subwords.DICTIONARY
            os.makedirs(folder, exist_ok=True)
            shutil.copyfile(os.path.join(destination, file), os.path.join(folder, file))
            for split, examples in splits.items():
                sentences = [example[number] for example in examples.sentences]
                _write_indexed(os.path.join(folder, split), items(sentences), types)


@functools.lru_cache(maxsize=1)
def _model_and_dictionary(folder: str) -> Tuple[subwords.Subwords, Dictionary]:
    return subwords.load(folder), subwords.load_dictionary(folder)


def _encode(sentences: List[str], folder: str) -> List[np.ndarray]:
    model, dictionary = _model_and_dictionary(folder)
    return [
        np.array([*map(dictionary.index, model.pieces(line)), dictionary.eos()], dtype=np.int32)
        for line in sentences
    ]


def _write_indexed(path: str, items: Iterable[np.ndarray], types: int) -> None:
    builder = indexed_dataset.make_builder(f"{path}.bin", impl="mmap", vocab_size=types)
    for item in items:
        builder.add_item(torch.from_numpy(item))
    builder.finalize(f"{path}.idx")


def _write_targets(task: GlueTask, splits: Dict[str, GlueSplit], folder: str) -> None:
    labelled = {name: s.targets for name, s in splits.items() if s.targets is not None}
    os.makedirs(folder, exist_ok=True)
    if not task.labels:
        for name, scores in labelled.items():
            with replacing(os.path.join(folder, f"{name}.label")) as stream:
                stream.writelines(f"{score!r}\n" for score in scores)
        return
    dictionary = Dictionary()
    indices = [dictionary.add_symbol(label) for label in task.labels]
    dictionary.save(os.path.join(folder, subwords.DICTIONARY))
    for name, labels in labelled.items():
        items = (np.array([indices[int(label)], dictionary.eos()]) for label in labels)
        _write_indexed(os.path.join(folder, name), items, len(dictionary))
