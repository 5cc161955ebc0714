"""From the official files of GLUE and XNLI to the folder of ``posenc_sentence_prediction``."""

import functools
import json
import os
import shutil
from dataclasses import asdict
from typing import Dict, Iterable, Iterator, List, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset
from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.sentence_folder import DESCRIPTION, INPUTS, Description
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.glue_files import GlueSplit, read, summary
from fairseq_posenc.tools.bert.glue_tasks import GlueTask
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.unknown_tokens import unknown_lines
from fairseq_posenc.tools.workers import map_lists
from fairseq_posenc.tools.writing import replacing, replacing_files

_CHUNK = 500  # sentences that a process cuts at a time


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
        destination: folder to write. What an earlier run has written there is replaced when all
            is done; without ``task.json`` it is incomplete.
        skip_malformed: leave malformed lines of training and development sets out.

    Returns:
        Examples per split, and descriptions of the lines left out.
    """
    model = subwords.load(subwords_folder)
    if _earlier(destination) and not os.path.isdir(os.path.join(destination, INPUTS[0])):
        raise UsageError(f"{destination} has data that are not of this command; name another")
    problems: List[str] = []
    splits = read(task, source, problems)
    if problems and not skip_malformed:
        raise UsageError(
            f"{summary(problems)}; mend the file, or leave such lines out with --skip-malformed"
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


def unknown_summary(task: GlueTask, folder: str, splits: Iterable[str]) -> Iterator[str]:
    """Yield what :func:`unknown_lines` says of the splits of a folder, by column of sentences."""
    for split in splits:
        paths = {name: f"{folder}/{part}/{split}" for name, part in zip(task.sentences, INPUTS)}
        yield from unknown_lines(split, paths, "cannot tell them apart")


def _earlier(folder: str) -> List[str]:
    """Return what an earlier run has written, whose subwords may be of another kind."""
    models = [model.name for model in subwords.SUBWORD_MODELS.values()]
    names = (*INPUTS, "label", *models, subwords.VERSION, subwords.DICTIONARY)
    return [path for name in names if os.path.exists(path := os.path.join(folder, name))]


def _clear(folder: str) -> None:
    """Remove it; what else is in its folders stays."""
    for path in _earlier(folder):
        if not os.path.isdir(path):
            os.remove(path)
            continue
        for file in os.listdir(path):
            if file.endswith((".bin", ".idx", ".label", subwords.DICTIONARY)):
                os.remove(os.path.join(path, file))


def _write_inputs(
    task: GlueTask, splits: Dict[str, GlueSplit], destination: str, workers: int
) -> None:
    entries, file = len(subwords.load_dictionary(destination)), subwords.DICTIONARY
    encode = functools.partial(_encode, folder=destination)
    for number, name in enumerate(INPUTS[: len(task.sentences)]):
        folder = os.path.join(destination, name)
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(os.path.join(destination, file), os.path.join(folder, file))
        for split, examples in splits.items():
            sentences = [example[number] for example in examples.sentences]
            progress = tqdm(sentences, desc=f"{task.name} {split}", unit=" sentences", leave=False)
            items = map_lists(encode, progress, workers, _CHUNK)
            _write_indexed(os.path.join(folder, split), items, entries)


@functools.lru_cache(maxsize=1)
def _model_and_dictionary(folder: str) -> Tuple[subwords.Subwords, Dictionary]:
    return subwords.load(folder), subwords.load_dictionary(folder)


def _encode(sentences: List[str], folder: str) -> List[np.ndarray]:
    model, dictionary = _model_and_dictionary(folder)
    return [
        np.array([*map(dictionary.index, model.encode(line)), dictionary.eos()], dtype=np.int32)
        for line in sentences
    ]


def _write_indexed(path: str, items: Iterable[np.ndarray], entries: int) -> None:
    builder = indexed_dataset.make_builder(f"{path}.bin", impl="mmap", vocab_size=entries)
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
