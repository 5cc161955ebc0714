"""Questions about contexts, as ``posenc prepare squad`` writes them, or in memory.

A folder holds ``dict.txt``, the subword model, and of each split

- ``<split>.question``, ``<split>.context`` (``.bin`` and ``.idx``, fairseq's mmap format): the
  tokens of every question and of every context, without special tokens
- ``<split>.offsets`` (likewise): of every context, start and end of each of its tokens in turn, in
  characters of its text
- ``<split>.json``, written last: language, metric, texts, ids and gold answers
"""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import ListDataset, indexed_dataset

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import check_indexed
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import load_json, schema_error
from fairseq_posenc.metrics.answers import check_metric

PARTS = ("question", "context", "offsets")
FORMAT = 2  # 1: unequal marks were not parted
_SCHEMA = {"format": int, "language": str, "metric": str, "contexts": [str], "questions": [list]}


NOWHERE = -1


class GoldAnswer(NamedTuple):
    """A gold answer: its text and where it begins in its context, in characters.

    One whose start is ``NOWHERE`` is compared with predictions, and not trained on.
    """

    text: str
    start: int


class Question(NamedTuple):
    """A question about a context, which is given by its number, and its gold answers, if known."""

    id: str
    text: str
    context: int
    answers: Tuple[GoldAnswer, ...]

    @property
    def trained(self) -> Optional[GoldAnswer]:
        """The answer that is trained on: the first whose place is known."""
        return next((answer for answer in self.answers if answer.start != NOWHERE), None)


class Questions:
    """Questions and their contexts, cut into tokens."""

    contexts: List[str]  # the texts
    questions: List[Question]  # the answers to all are known, or to none
    # data sets of question tokens, context tokens and offsets, by the names of PARTS
    _parts: Dict[str, Any]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def answered(self) -> bool:
        """Whether the answers are known."""
        return bool(self.questions and self.questions[0].answers)

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
        """Return the first character of each token of a context, and the one after: (tokens, 2)."""
        return self._parts["offsets"][self.questions[number].context].numpy().reshape(-1, 2)

    def span_text(self, number: int, first: int, last: int) -> str:
        """Return the text from one token of a question's context to another, as it stands there."""
        offsets = self.offsets(number)
        return self.contexts[self.questions[number].context][offsets[first, 0] : offsets[last, 1]]


class InMemoryQuestions(Questions):
    """Questions whose answers are not known, each with a context of its own.

    Args:
        pairs: question and context, one or more.
        encode: from a text to the indices of its tokens ``(tokens,)`` and the characters (start,
            end) that each stands for.
    """

    def __init__(
        self,
        pairs: Sequence[Tuple[str, ...]],
        encode: Callable[[str], Tuple[torch.Tensor, List[Tuple[int, int]]]],
    ):
        self.contexts = [context for _, context in pairs]
        self.questions = [
            Question(str(number), question, number, ())
            for number, (question, _) in enumerate(pairs)
        ]
        contexts = [encode(context) for context in self.contexts]
        spans = [torch.tensor(offsets, dtype=torch.long).flatten() for _, offsets in contexts]
        parts = ([encode(question)[0] for question, _ in pairs], [t for t, _ in contexts], spans)
        self._parts = {
            name: ListDataset(items, list(map(len, items))) for name, items in zip(PARTS, parts)
        }


class QuestionFolder(Questions):
    """A split of a folder; its numbers stay on disk until they are asked for.

    Raises:
        UsageError: there is no such split, or it is damaged.
    """

    def __init__(self, folder: str, split: str):
        path = os.path.join(folder, f"{split}.json")
        if not os.path.exists(path):
            files = os.listdir(folder) if os.path.isdir(folder) else []
            names = sorted(file[: -len(".json")] for file in files if file.endswith(".json"))
            splits = ", ".join(name for name in names if f"{name}.context.idx" in files)
            raise UsageError(
                f"there is no split '{split}' in {folder} (there: {splits or 'none'}); "
                "make it with posenc prepare squad"
            )
        values = load_json(path, _SCHEMA, "posenc prepare squad")
        if values["format"] != FORMAT:
            raise UsageError(f"{path} is not from this version of posenc prepare squad")
        self.language, self.metric = values["language"], values["metric"]
        self.contexts = values["contexts"]
        try:
            check_metric(self.metric, self.language)
            self.questions = [self._question(*fields) for fields in values["questions"]]
            if any(bool(question.answers) != self.answered for question in self.questions):
                raise ValueError("some questions have no answers")
            entries = len(subwords.load_dictionary(folder))
            self._parts = {}
            for part in PARTS:
                file = os.path.join(folder, f"{split}.{part}")
                if not indexed_dataset.MMapIndexedDataset.exists(file):
                    raise ValueError(f"{split}.{part} is missing")
                check_indexed(file, entries=None if part == "offsets" else entries)
                self._parts[part] = indexed_dataset.MMapIndexedDataset(file)
            self._check_parts()
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"split '{split}' in {folder} is damaged ({error}); run posenc prepare squad again"
            ) from None

    def _question(self, key: Any, text: Any, context: Any, answers: Any) -> Question:
        gold = tuple(GoldAnswer(*answer) for answer in answers)
        error = schema_error([key, text, *(answer.text for answer in gold)], [str])
        error = error or schema_error([context, *(answer.start for answer in gold)], [int])
        if error or not 0 <= context < len(self.contexts):
            raise ValueError(f"question {key!r} has no context")
        for answer in gold:
            placed = self.contexts[context].startswith(answer.text, max(answer.start, 0))
            if not (placed or answer.start == NOWHERE):
                raise ValueError(f"an answer to {key!r} is not in its context")
        return Question(key, text, context, gold)

    def _check_parts(self) -> None:
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
