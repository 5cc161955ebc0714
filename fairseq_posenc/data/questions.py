"""A split of a question folder: written by ``posenc prepare squad``, read by the task.

A folder holds ``dict.txt``, the subword model, and of each split

- ``<split>.question``, ``<split>.context`` (``.bin`` and ``.idx``, fairseq's mmap format): the
  tokens of every question and of every context, without special tokens
- ``<split>.offsets`` (likewise): of every context, start and end of each of its tokens in turn, in
  characters of its text
- ``<split>.json``, written last: language, metric, texts, ids and gold answers
"""

import json
import os
import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import indexed_dataset

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import check_indexed
from fairseq_posenc.data.squad import Answer, Question, Questions
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing, replacing_files
from fairseq_posenc.json_files import find_misfit, read_shaped
from fairseq_posenc.metrics.answers import check_metric

PARTS = ("question", "context", "offsets")
_FORMAT = 1
_SHAPE = {"format": int, "language": str, "metric": str, "contexts": [str], "questions": [list]}


class Split:
    """A split, read from a folder; its numbers stay on disk until they are asked for.

    Attributes:
        language: of the answers.
        metric: ``squad`` or ``mlqa``.
        contexts: the texts.
        questions: see :class:`fairseq_posenc.data.squad.Question`.

    Args:
        folder: of the prepared data.
        name: of the split.

    Raises:
        UsageError: there is no such split, or it is damaged.
    """

    def __init__(self, folder: str, name: str):
        values = _load(folder, name)
        self.language, self.metric = values["language"], values["metric"]
        self.contexts: List[str] = values["contexts"]
        try:
            check_metric(self.metric, self.language)
            self.questions = [self._question(*fields) for fields in values["questions"]]
            types = len(subwords.load_dictionary(folder))
            self._parts = {part: _mapped(folder, name, part, types) for part in PARTS}
            self._check()
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"split '{name}' in {folder} is damaged ({error}); run posenc prepare squad again"
            ) from None

    def __len__(self) -> int:
        return len(self.questions)

    def sizes(self, part: str) -> np.ndarray:
        """Return the number of tokens of every question, or of every context."""
        return np.asarray(self._parts[part].sizes)

    def question_tokens(self, number: int) -> torch.Tensor:
        """Return the indices of a question's tokens: ``(tokens,)``."""
        return self._parts["question"][number]

    def context_tokens(self, number: int) -> torch.Tensor:
        """Return the indices of the tokens of a question's context: ``(tokens,)``."""
        return self._parts["context"][self.questions[number].context]

    def offsets(self, number: int) -> np.ndarray:
        """Return where the tokens of a question's context are in its text.

        Returns:
            ``(tokens, 2)``: the first character of each, and the one after its last.
        """
        return self._parts["offsets"][self.questions[number].context].numpy().reshape(-1, 2)

    def span_text(self, number: int, first: int, last: int) -> str:
        """Return the text from one token of a question's context to another, as it stands there."""
        offsets = self.offsets(number)
        return self.contexts[self.questions[number].context][offsets[first, 0] : offsets[last, 1]]

    def _question(self, key: Any, text: Any, context: Any, answers: Any) -> Question:
        found = tuple(Answer(*answer) for answer in answers)
        misfit = find_misfit([key, text, *(answer.text for answer in found)], [str])
        misfit = misfit or find_misfit([context, *(answer.start for answer in found)], [int])
        if misfit or not found or not 0 <= context < len(self.contexts):
            raise ValueError(f"question {key!r} has no context or answers")
        for answer in found:
            if not self.contexts[context].startswith(answer.text, max(answer.start, 0)):
                raise ValueError(f"an answer to {key!r} is not in its context")
        return Question(key, text, context, found)

    def _check(self) -> None:
        sizes = {part: self.sizes(part) for part in PARTS}
        if len(sizes["question"]) != len(self) or len(sizes["context"]) != len(self.contexts):
            raise ValueError("files of different length")
        if not np.array_equal(sizes["offsets"], 2 * sizes["context"]):
            raise ValueError("tokens without offsets")
        for number, context in enumerate(self.contexts):
            starts, ends = self._parts["offsets"][number].numpy().reshape(-1, 2).T
            inside = not len(starts) or (starts[0] >= 0 and ends.max() <= len(context))
            if not inside or (np.diff(starts) < 0).any() or (starts >= ends).any():
                raise ValueError(f"tokens of context {number} that are not in its text")


def splits(folder: str) -> List[str]:
    """Return the names of the splits that a folder holds."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = (name[: -len(".json")] for name in names if name.endswith(".json"))
    return sorted(name for name in found if os.path.exists(_path(folder, name, "context.idx")))


def check_name(split: str) -> None:
    """Refuse names of splits that would make no file, or that fairseq's options cannot hold.

    Raises:
        UsageError: it is such a name.
    """
    if not re.fullmatch(r"\w[\w-]*", split):
        raise UsageError(f"--split {split}: a name has letters, digits, - and _ only")


def write(
    folder: str,
    split: str,
    questions: Questions,
    encoded: Iterator[Tuple[Sequence[int], Sequence[Tuple[int, int]]]],
    vocabulary: int,
    **about: Any,
) -> Dict[str, int]:
    """Write a split, such that half a split is never taken for a whole one.

    Args:
        folder: of the prepared data.
        split: its name.
        questions: what a file holds.
        encoded: indices of tokens and their offsets, of every question and then of every context.
        vocabulary: number of entries of the dictionary.
        **about: ``language`` and ``metric``.

    Returns:
        Number of tokens of questions and contexts.

    Raises:
        UsageError: the folder cannot be written.
    """
    with replacing_files(folder, last=f"{split}.json") as partial:
        tokens = _write_parts(partial, split, encoded, len(questions.questions), vocabulary)
        with replacing(_path(partial, split, "json")) as stream:
            texts = {"contexts": questions.contexts, "questions": questions.questions}
            json.dump({"format": _FORMAT, **about, **texts}, stream)
    return tokens


def _write_parts(
    folder: str, split: str, encoded: Iterator, questions: int, vocabulary: int
) -> Dict[str, int]:
    small = vocabulary < np.iinfo(np.uint16).max
    kinds = {part: np.uint16 if small else np.int32 for part in PARTS}
    kinds["offsets"] = np.int32
    builders = {
        part: indexed_dataset.MMapIndexedDatasetBuilder(
            _path(folder, split, f"{part}.bin"), dtype=kinds[part]
        )
        for part in PARTS
    }
    counts = {"question": 0, "context": 0}
    for number, (tokens, offsets) in enumerate(encoded):
        part = "question" if number < questions else "context"
        builders[part].add_item(torch.tensor(tokens, dtype=torch.long))
        counts[part] += len(tokens)
        if part == "context":
            builders["offsets"].add_item(torch.tensor(offsets, dtype=torch.long).flatten())
    for part, builder in builders.items():
        builder.finalize(_path(folder, split, f"{part}.idx"))
    return counts


def _path(folder: str, split: str, ending: str) -> str:
    return os.path.join(folder, f"{split}.{ending}")


def _load(folder: str, name: str) -> Dict[str, Any]:
    path = _path(folder, name, "json")
    if not os.path.exists(path):
        there = ", ".join(splits(folder)) or "none"
        raise UsageError(
            f"there is no split '{name}' in {folder} (there: {there}); make it with "
            "posenc prepare squad"
        )
    values = read_shaped(path, _SHAPE, "posenc prepare squad")
    if values["format"] != _FORMAT:
        raise UsageError(f"{path} is not from this version of posenc prepare squad")
    return values


def _mapped(folder: str, name: str, part: str, types: int) -> Any:
    path = _path(folder, name, part)
    if not indexed_dataset.MMapIndexedDataset.exists(path):
        raise ValueError(f"{os.path.basename(path)} is missing")
    check_indexed(path, types=None if part == "offsets" else types)
    return indexed_dataset.MMapIndexedDataset(path)
