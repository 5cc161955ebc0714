"""Texts for trained BERT models: in tokens, in examples of a task, and filled in."""

from typing import Any, List, Sequence, Tuple

import torch
from fairseq.data import Dictionary, ListDataset
from torch import Tensor

from fairseq_posenc.data import subwords
from fairseq_posenc.data.pairs import PairDataset
from fairseq_posenc.errors import UsageError

MASK = "<mask>"
# one text, or the two of a pair
Example = Tuple[str, ...]


class HubTexts:
    """From texts to tokens, with the subwords of a folder, and back.

    Args:
        folder: with the subword model.
        dictionary: of the task, with ``<mask>``.
        finer: cut as for question answering, where answers may begin inside of pieces.
    """

    def __init__(self, folder: str, dictionary: Dictionary, finer: bool = False):
        self.dictionary = dictionary
        self.subwords = subwords.load(folder)
        self._cutter: Any = (
            subwords.AnswerAlignedSubwords(self.subwords) if finer else self.subwords
        )

    def cut(self, text: str) -> Tuple[Tensor, List[Tuple[int, int]]]:
        """Return the tokens ``(length,)`` of a text and the characters that each stands for."""
        pieces, offsets = self._cutter.pieces_with_offsets(text)
        return torch.tensor([self.dictionary.index(p) for p in pieces], dtype=torch.long), offsets

    def sentence(self, text: str) -> Tensor:
        """Return the tokens ``(length,)`` of a text, where ``<mask>`` is one, and ``</s>``."""
        mask, parts = torch.tensor([self.dictionary.index(MASK)]), []
        for number, part in enumerate(text.split(MASK)):
            parts += [mask, self.cut(part)[0]] if number else [self.cut(part)[0]]
        return torch.cat([*parts, torch.tensor([self.dictionary.eos()])])

    def sequence(self, example: Example) -> Tensor:
        """Return the tokens ``(length,)`` of a whole input, ``<s>`` first."""
        begin = torch.tensor([self.dictionary.bos()])
        return torch.cat([begin, *map(self.sentence, example)])

    def examples(self, examples: Sequence[Example], limit: int, cut: bool) -> PairDataset:
        """Return examples as the tasks have them.

        Args:
            examples: all with one text, or all with two.
            limit: the most tokens of an input.
            cut: cut longer ones, as in training.

        Raises:
            UsageError: one is longer, and shall not be cut.
        """
        columns = [[self.sentence(text) for text in column] for column in zip(*examples)]
        for number, tokens in enumerate(zip(*columns)):
            length = 1 + sum(map(len, tokens))
            if length > limit and not cut:
                raise UsageError(
                    f"input {number + 1} of {len(examples)} has {length} tokens, more than the "
                    f"{limit} that the model was trained for: {' '.join(examples[number])[:40]!r}…"
                )
        inputs = [ListDataset(column, [len(tokens) for tokens in column]) for column in columns]
        return PairDataset(inputs, None, self.dictionary, limit)

    def filled(
        self, text: str, chances: Sequence[float], indices: Sequence[int]
    ) -> List[Tuple[str, float, str]]:
        """Return a text with each of some tokens for ``<mask>``, its probability and the token.

        A token that continues a word is joined to what stands before.
        """
        before, after = text.split(MASK)
        found = []
        for chance, index in zip(chances, indices):
            token = self.dictionary[index]
            # behind something, a piece shows what it is: a new word, or the rest of one
            shown = self.subwords.text(["a", token])[1:].strip()
            left = before if self.subwords.begins_word(token) else before.rstrip()
            found.append((left + shown + after, chance, token))
        return found


def check_examples(examples: Sequence[Example], texts: int) -> None:
    """Check that every example has as many texts as the task.

    Raises:
        UsageError: one has not.
    """
    for example in examples:
        if len(example) != texts:
            words = {1: "one text", 2: "a pair of texts"}
            raise UsageError(f"the model takes {words[texts]} at a time, not {len(example)}")
