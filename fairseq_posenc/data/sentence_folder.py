"""Folders of binarised sentences or pairs with labels, as ``posenc prepare glue`` writes them.

``input0/``, ``input1/`` (pairs only) and ``label/`` are what fairseq's own task
``sentence_prediction`` reads; ``task.json``, written last, says what the folder is about.
"""

import os
from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Sequence

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import check_indexed
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.json_files import from_json, read_json
from fairseq_posenc.metrics.glue import METRICS

DESCRIPTION = "task.json"
INPUTS = ("input0", "input1")


@dataclass
class Description:
    """The content of ``task.json``."""

    name: str  # of the task, as GLUE writes it
    kind: str  # classification or regression
    labels: Sequence[str]  # in the order of their numbers; none for a regression
    metrics: Sequence[str]  # of fairseq_posenc.metrics.glue.METRICS
    best: str  # the metric that chooses checkpoints
    splits: Mapping[str, str]  # split -> file it was read from
    # split -> rows left out as malformed, counted from 0; splits without are missing
    skipped: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def regression(self) -> bool:
        """Whether targets are scores."""
        return self.kind == "regression"

    @classmethod
    def read(cls, folder: str) -> "Description":
        """Read it from a folder.

        Raises:
            UsageError: it is missing or damaged.
        """
        path = os.path.join(folder, DESCRIPTION)
        if not os.path.isfile(path):
            raise UsageError(f"there is no {path}; prepare the folder with posenc prepare glue")
        description = from_json(cls, read_json(path), path, "posenc prepare glue")
        unknown = sorted({*description.metrics, description.best} - set(METRICS))
        if unknown:
            raise UsageError(
                f"{path}: no metric is called {unknown[0]!r}; prepare the folder again"
            )
        is_task = description.kind in ("classification", "regression")
        if not is_task or bool(description.labels) == description.regression:
            raise UsageError(
                f"{path}: kind {description.kind!r} with {len(description.labels)} labels is "
                "neither a classification nor a regression; prepare the folder again"
            )
        return description


def input_folders(folder: str) -> List[str]:
    """Return the one or two folders of sentences, each with its own copy of ``dict.txt``."""
    folders = (os.path.join(folder, name) for name in INPUTS)
    return [part for part in folders if os.path.exists(os.path.join(part, subwords.DICTIONARY))]


def inputs(folder: str, split: str) -> List[Any]:
    """Return the one or two data sets of sentences of a split; none if one of them is missing.

    Raises:
        UsageError: one is damaged, or was made with another dictionary.
    """
    paths = [os.path.join(part, split) for part in input_folders(folder)]
    for path in paths:
        check_indexed(path, entries=len(subwords.load_dictionary(os.path.dirname(path))))
    datasets = [indexed_dataset.make_dataset(path, "mmap") for path in paths if _exists(path)]
    return datasets if len(datasets) == len(paths) else []


def targets(folder: str, split: str, labels: int) -> Optional[torch.Tensor]:
    """Return labels (int64) or scores (float64) of a split, (examples,); None if it has none.

    ``labels`` is how many there are, 0 for a regression.

    Raises:
        UsageError: the files are damaged.
    """
    path = os.path.join(folder, "label", split)
    if not labels:
        return _scores(f"{path}.label") if os.path.exists(f"{path}.label") else None
    if not _exists(path):
        return None
    check_indexed(path)
    # all at once, each label's index and </s>: item by item takes seconds for the 400,000 of MNLI
    items = np.fromfile(f"{path}.bin", dtype=indexed_dataset.best_fitting_int_dtype(0))
    indices = items[::2].astype(np.int64) - Dictionary().nspecial
    if len(items) % 2 or (len(indices) and not 0 <= indices.min() <= indices.max() < labels):
        raise UsageError(f"{path}.bin is damaged; prepare the folder again")
    return torch.from_numpy(indices)


def _scores(path: str) -> torch.Tensor:
    lines = read_lines(path)
    try:
        scores = [parse_number(line) for line in lines]
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({error}); prepare the folder again") from None
    if not np.isfinite(scores).all():
        raise UsageError(f"{path} is damaged (no finite score); prepare the folder again")
    return torch.tensor(scores, dtype=torch.float64)


def _exists(path: str) -> bool:
    return indexed_dataset.dataset_exists(path, impl="mmap")
