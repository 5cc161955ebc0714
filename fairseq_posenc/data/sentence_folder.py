"""Folders of binarised sentences or sentence pairs with labels, in the layout of fairseq.

``input0/``, ``input1/`` (pairs only) and ``label/`` are what fairseq's own task
``sentence_prediction`` reads; ``task.json``, written last, says what the folder is about.
"""

import functools
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset
from tqdm import tqdm

from fairseq_posenc.data import glue, subwords
from fairseq_posenc.data.indexed import check_indexed
from fairseq_posenc.data.workers import chunked, in_order
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines, replacing, replacing_files
from fairseq_posenc.json_files import Each, Maybe, read_shaped
from fairseq_posenc.metrics.glue import METRICS

_FILE = "task.json"
_INPUTS = ("input0", "input1")
_KINDS = ("classification", "regression")
_DESCRIPTION = {
    **dict.fromkeys(("name", "kind", "best"), str),
    **dict.fromkeys(("labels", "metrics"), [str]),
    "splits": Each(str),
    "skipped": Maybe(Each([int])),
}
_CHUNK = 500
# a label's index and </s>
_LABEL_TYPE = indexed_dataset.best_fitting_int_dtype(0)


@dataclass
class Description:
    """What ``task.json`` holds.

    Args:
        name: of the task, as GLUE writes it.
        kind: ``classification`` or ``regression``.
        labels: in the order of their numbers; none for a regression.
        metrics: see :data:`fairseq_posenc.metrics.glue.METRICS`.
        best: the one that chooses checkpoints.
        splits: split -> file it was read from.
        skipped: split -> rows left out as malformed, counted from 0; splits without are missing.
    """

    name: str
    kind: str
    labels: List[str]
    metrics: List[str]
    best: str
    splits: Dict[str, str]
    skipped: Dict[str, List[int]] = field(default_factory=dict)

    @property
    def regression(self) -> bool:
        """Whether targets are scores."""
        return self.kind == "regression"

    @classmethod
    def read(cls, folder: str) -> "Description":
        """Read it from a folder.

        Raises:
            UsageError: there is none, or it is damaged.
        """
        path = os.path.join(folder, _FILE)
        if not os.path.isfile(path):
            raise UsageError(f"there is no {path}; prepare the folder with posenc prepare glue")
        content = read_shaped(path, _DESCRIPTION, "posenc prepare glue")
        found = cls(**{name: content[name] for name in _DESCRIPTION if name in content})
        unknown = sorted({*found.metrics, found.best} - set(METRICS))
        if unknown:
            raise UsageError(
                f"{path}: no metric is called {unknown[0]!r}; prepare the folder again"
            )
        if found.kind not in _KINDS or bool(found.labels) == found.regression:
            raise UsageError(
                f"{path}: kind {found.kind!r} with {len(found.labels)} labels is neither a "
                "classification nor a regression; prepare the folder again"
            )
        return found


def prepare(
    task: glue.GlueTask,
    source: str,
    subwords_folder: str,
    destination: str,
    workers: int = 1,
    skip_malformed: bool = False,
) -> Tuple[Dict[str, int], List[str]]:
    """Binarise the official files of a task.

    Args:
        task: one of :data:`fairseq_posenc.data.glue.TASKS`.
        source: folder with the files.
        subwords_folder: folder with a subword model and its ``dict.txt``.
        destination: folder to write. What an earlier run has written there is replaced when all
            is done; without ``task.json`` it is incomplete.
        workers: processes.
        skip_malformed: leave malformed lines out.

    Returns:
        Examples per split, and descriptions of the lines left out.

    Raises:
        UsageError: malformed lines, and whatever is wrong with the files.
    """
    subwords.load(subwords_folder)
    problems: List[str] = []
    splits = glue.read(task, source, problems)
    if not skip_malformed:
        glue.refuse(problems)
    description = Description(
        name=task.name,
        kind="classification" if task.labels else "regression",
        labels=list(task.labels),
        metrics=list(task.metrics),
        best=task.best,
        splits={name: split.file for name, split in splits.items()},
        skipped={name: split.skipped for name, split in splits.items() if split.skipped},
    )
    with replacing_files(destination, _FILE, lambda: _clear(destination)) as partial:
        subwords.load(subwords_folder).copy_to(partial)
        _write_inputs(task, splits, partial, workers)
        _write_targets(task, splits, os.path.join(partial, "label"))
        with replacing(os.path.join(partial, _FILE)) as stream:
            stream.write(json.dumps(asdict(description), indent=2) + "\n")
    return {name: len(split.sentences) for name, split in splits.items()}, problems


def input_folders(folder: str) -> List[str]:
    """Return the one or two folders of sentences, each with its own copy of ``dict.txt``."""
    found = (os.path.join(folder, name) for name in _INPUTS)
    return [part for part in found if os.path.exists(os.path.join(part, subwords.DICTIONARY))]


def inputs(folder: str, split: str) -> List[Any]:
    """Return the one or two data sets of sentences of a split; none if one of them is missing.

    Raises:
        UsageError: one is damaged, or was made with another dictionary.
    """
    paths = [os.path.join(part, split) for part in input_folders(folder)]
    for path in paths:
        check_indexed(path, types=len(subwords.load_dictionary(os.path.dirname(path))))
    found = [indexed_dataset.make_dataset(path, "mmap") for path in paths if _exists(path)]
    return found if len(found) == len(paths) else []


def targets(folder: str, split: str, labels: int) -> Optional[torch.Tensor]:
    """Return labels (int64) or scores (float64) of a split, (examples,); None if it has none.

    Args:
        folder: of the task.
        split: its name.
        labels: how many there are; 0 for a regression.

    Raises:
        UsageError: the files are damaged.
    """
    path = os.path.join(folder, "label", split)
    if not labels:
        return _scores(f"{path}.label") if os.path.exists(f"{path}.label") else None
    if not _exists(path):
        return None
    check_indexed(path)
    # all at once: item by item takes seconds for the 400,000 labels of MNLI
    items, specials = np.fromfile(f"{path}.bin", dtype=_LABEL_TYPE), Dictionary().nspecial
    found = items[::2].astype(np.int64) - specials
    if len(items) % 2 or (len(found) and not 0 <= found.min() <= found.max() < labels):
        raise UsageError(f"{path}.bin is damaged; prepare the folder again")
    return torch.from_numpy(found)


def _scores(path: str) -> torch.Tensor:
    try:
        scores = [float(line) for line in read_lines(path)]
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({error}); prepare the folder again") from None
    if not np.isfinite(scores).all():
        raise UsageError(f"{path} is damaged (no finite score); prepare the folder again")
    return torch.tensor(scores, dtype=torch.float64)


def _exists(path: str) -> bool:
    return indexed_dataset.dataset_exists(path, impl="mmap")


def _clear(folder: str) -> None:
    """Remove what an earlier run has written."""
    for name in (*_INPUTS, "label"):
        part = os.path.join(folder, name)
        for file in os.listdir(part) if os.path.isdir(part) else ():
            if file.endswith((".bin", ".idx", ".label", subwords.DICTIONARY)):
                os.remove(os.path.join(part, file))


def _write_inputs(
    task: glue.GlueTask, splits: Dict[str, glue.Split], destination: str, workers: int
) -> None:
    types = len(subwords.load_dictionary(destination))
    total = sum(len(split.sentences) for split in splits.values()) * len(task.sentences)
    with tqdm(total=total, desc=task.name, unit=" sentences", leave=False) as progress:
        for number, name in enumerate(_INPUTS[: len(task.sentences)]):
            folder, file = os.path.join(destination, name), subwords.DICTIONARY
            os.makedirs(folder, exist_ok=True)
            shutil.copyfile(os.path.join(destination, file), os.path.join(folder, file))
            for split, examples in splits.items():
                sentences = [example[number] for example in examples.sentences]
                encode = functools.partial(_encode, folder=destination)
                encoded = in_order(encode, chunked(sentences, _CHUNK), workers)
                _write(os.path.join(folder, split), _counted(encoded, progress), types)


def _counted(chunks: Iterator[List[np.ndarray]], progress: tqdm) -> Iterator[List[np.ndarray]]:
    for items in chunks:
        progress.update(len(items))
        yield items


@functools.lru_cache(maxsize=1)
def _tools(folder: str) -> Tuple[subwords.Subwords, Dictionary]:
    return subwords.load(folder), subwords.load_dictionary(folder)


def _encode(sentences: List[str], folder: str) -> List[np.ndarray]:
    model, dictionary = _tools(folder)
    return [
        np.array([*map(dictionary.index, model.pieces(line)), dictionary.eos()], dtype=np.int32)
        for line in sentences
    ]


def _write(path: str, chunks: Iterable[List[np.ndarray]], types: int) -> None:
    builder = indexed_dataset.make_builder(f"{path}.bin", impl="mmap", vocab_size=types)
    for items in chunks:
        for item in items:
            builder.add_item(torch.from_numpy(item))
    builder.finalize(f"{path}.idx")


def _write_targets(task: glue.GlueTask, splits: Dict[str, glue.Split], folder: str) -> None:
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
        items = [np.array([indices[int(label)], dictionary.eos()]) for label in labels]
        _write(os.path.join(folder, name), [items], len(dictionary))
