"""Long contexts in windows: ``<s> question </s> part of the context </s>``.

The windows of a question begin every ``stride`` tokens of its context, as in BERT (Devlin et al.
2019) and XTREME (Hu et al. 2020). Everything up to the first ``</s>`` is segment 0, the rest 1.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch

from fairseq_posenc.data.padded import pad_column
from fairseq_posenc.data.pairs import PairDataset, join
from fairseq_posenc.data.questions import Questions
from fairseq_posenc.errors import UsageError

# <s>, </s> and </s>
_SPECIAL = 3


class WindowLayout(NamedTuple):
    """Sizes of windows; all numbers count tokens, and the defaults are those of XTREME."""

    max_positions: int = 384
    stride: int = 128
    max_query_length: int = 64

    def check(self) -> None:
        """Raise a UsageError for values with which nothing could be cut."""
        if min(self) < 1:
            raise UsageError(
                "--max-positions, --stride and --max-query-length must be 1 or more, not "
                f"{self.max_positions}, {self.stride} and {self.max_query_length}"
            )
        if self.max_positions <= self.max_query_length + _SPECIAL:
            raise UsageError(
                f"--max-positions {self.max_positions} leaves no room for the context after a "
                f"question of --max-query-length {self.max_query_length} and {_SPECIAL} special "
                "tokens"
            )

    def windows(self, question: int, context: int) -> List[Tuple[int, int]]:
        """Return the windows of a context, each as its first token and its length.

        Every token is in at least one: windows move by less than the stride if they are shorter
        than that. Arguments are the numbers of tokens of the question and of the context.
        """
        room = self.max_positions - _SPECIAL - min(question, self.max_query_length)
        step = min(self.stride, room)
        # steps that the last window needs to reach the end, rounded up
        count = 1 + max(0, -(-(context - room) // step))
        return [(i * step, min(room, context - i * step)) for i in range(count)]


def widest_context(windows: Sequence[Tuple[int, int]], number: int) -> np.ndarray:
    """Return for which tokens of a window it is the one of all windows that shows most around them.

    As in BERT, a token belongs to the window with the highest smaller number of tokens to its left
    and right, plus a hundredth of the window's length, and to the earlier one when equal: each
    token to exactly one window.

    Args:
        windows: all windows of one question, as :meth:`WindowLayout.windows` returns them.
        number: of the window that is asked for; the result is ``(its length,)``.
    """
    first, length = windows[number]
    tokens = np.arange(first, first + length)
    # each (windows, 1), beside tokens (length,): left, right and score are (windows, length)
    starts, lengths = np.array(windows, dtype=np.int64).T[:, :, None]
    left, right = tokens - starts, starts + lengths - 1 - tokens
    # hundredths, so that nothing is rounded
    score = 100 * np.minimum(left, right) + lengths
    score = np.where((left >= 0) & (right >= 0), score, -1)
    return score.argmax(0) == number


def covering_tokens(offsets: np.ndarray, start: int, end: int) -> Optional[Tuple[int, int]]:
    """Return the first and the last of the tokens that share a character with a span, if any do.

    ``offsets`` ``(tokens, 2)`` are, as start and end, first characters and the ones after the last.
    """
    shared = np.minimum(offsets[:, 1], end) > np.maximum(offsets[:, 0], start)
    tokens = np.flatnonzero(shared)
    return (int(tokens[0]), int(tokens[-1])) if len(tokens) else None


class Window(NamedTuple):
    """A window of a question."""

    question: int
    number: int  # among the windows of the question
    first: int  # token of the context
    length: int  # tokens of the context
    before: int  # tokens in front of these: <s>, the question and </s>


class WindowDataset(PairDataset):
    """All windows of a split.

    Items hold ``id`` (number of the window), ``tokens``, ``segments``, ``answerable`` (True at the
    context's tokens) and ``beginnings`` (of these, those which :func:`widest_context` gives to this
    window), all ``(length,)``, and ``answer`` ``(2,)``, where answers are known: the positions of
    the first token and the last of the first gold answer whose place is known, both 0, that is at
    ``<s>``, in windows that do not hold all of it, as in XTREME. Training leaves out questions
    whose answers are known, but not their places.

    Args:
        split: questions and contexts.
        name: of the split, which batches carry along.
        dictionary, seed: see :class:`PairDataset`.
        layout: how windows are cut.
    """

    def __init__(
        self,
        split: Questions,
        name: str,
        dictionary: Any,
        layout: WindowLayout,
        seed: Optional[int] = None,
    ):
        self.split, self.name, self.layout = split, name, layout
        self._question_sizes = split.sizes("question")
        self._context_sizes = split.sizes("context")
        # question, number of the window; the rest is cheap to find again
        self._numbers = [
            (question, number)
            for question, asked in enumerate(split.questions)
            if seed is None or not split.answered or asked.trained
            for number in range(len(self._windows(question)))
        ]
        super().__init__([], None, dictionary, layout.max_positions, seed)
        windows = map(self.window, range(len(self._numbers)))
        self.sizes = np.array([w.before + w.length + 1 for w in windows], dtype=np.int64)

    def _windows(self, question: int) -> List[Tuple[int, int]]:
        context = self.split.questions[question].context
        return self.layout.windows(self._question_sizes[question], self._context_sizes[context])

    def window(self, index: int) -> Window:
        """Return where a window lies."""
        question, number = self._numbers[index]
        question_size = min(self._question_sizes[question], self.layout.max_query_length)
        start = question_size + _SPECIAL - 1
        return Window(question, number, *self._windows(question)[number], start)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        window = self.window(index)
        query = self.split.question_tokens(window.question)[: self.layout.max_query_length]
        context = self.split.context_tokens(window.question)[window.first :][: window.length]
        tokens, segments = join([query, context], self.bos, self.eos, self.limit)
        answerable = torch.zeros(len(tokens), dtype=torch.bool)
        answerable[window.before : -1] = True
        beginnings = answerable.clone()
        widest = widest_context(self._windows(window.question), window.number)
        beginnings[window.before : -1] = torch.from_numpy(widest)
        item = {
            "id": int(index),
            "tokens": tokens,
            "segments": segments,
            "answerable": answerable,
            "beginnings": beginnings,
        }
        if self.split.answered:
            item["answer"] = torch.tensor(self._answer(window))
        return item

    def _answer(self, window: Window) -> Tuple[int, int]:
        answer, span = self.split.questions[window.question].trained, None
        if answer:
            offsets = self.split.offsets(window.question)
            span = covering_tokens(offsets, answer.start, answer.start + len(answer.text))
        # both at <s>: this window does not hold the whole answer
        if span is None or span[0] < window.first or span[1] >= window.first + window.length:
            return 0, 0
        shift = window.before - window.first
        return span[0] + shift, span[1] + shift

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch, with ``split``, the split's name, and the other entries of its items.

        ``answerable`` and ``beginnings`` are (batch, length), ``answer`` (batch, 2) if known.
        """
        batch = super().collater(samples)
        if batch:
            for name in ("answerable", "beginnings"):
                batch[name] = pad_column(samples, name, False)
            if self.split.answered:
                batch["answer"] = torch.stack([sample["answer"] for sample in samples])
            batch["split"] = self.name
        return batch
