"""Questions and contexts in memory, as if they had been read from a prepared folder."""

from typing import Callable, List, Sequence, Tuple

import torch
from fairseq.data import ListDataset

from fairseq_posenc.data.questions import PARTS, Split
from fairseq_posenc.data.squad import Answer, Question

Encoded = Tuple[torch.Tensor, List[Tuple[int, int]]]


class Asked(Split):
    """Questions whose answers are not known, each with a context of its own.

    Args:
        pairs: question and context, one or more.
        encode: from a text to the indices of its tokens ``(tokens,)`` and the characters that each
            stands for.
    """

    def __init__(self, pairs: Sequence[Tuple[str, str]], encode: Callable[[str], Encoded]):
        self.contexts = [context for _, context in pairs]
        self.questions = [
            Question(str(number), question, number, (Answer("", 0),))
            for number, (question, _) in enumerate(pairs)
        ]
        contexts = [encode(context) for context in self.contexts]
        spans = [torch.tensor(offsets, dtype=torch.long).flatten() for _, offsets in contexts]
        parts = ([encode(question)[0] for question, _ in pairs], [t for t, _ in contexts], spans)
        self._parts = {
            name: ListDataset(items, list(map(len, items))) for name, items in zip(PARTS, parts)
        }
