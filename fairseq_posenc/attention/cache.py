"""Caches of attention while decoding step by step: keys and values of prefix and source."""

from dataclasses import dataclass, field
from typing import Optional

import torch
from torch import Tensor

FIRST_CAPACITY = 32


class TokenBuffer:
    """One vector per token and hypothesis, ``(length, batch, channels)``; grows by a token a step.

    The memory doubles when it is full, so that a step writes the newest vectors only. Hypotheses
    are reordered into a second memory of the same size, and the two change places. Where gradients
    are needed, no memory is written to twice.
    """

    def __init__(self) -> None:
        self.all: Optional[Tensor] = None  # the vectors so far
        self._memory: Optional[Tensor] = None
        self._spare: Optional[Tensor] = None

    def append(self, newest: Tensor) -> Tensor:
        """Add ``(1, batch, channels)`` and return all."""
        length = 0 if self.all is None else self.all.size(0)
        if newest.requires_grad:
            self.all = torch.cat([self.all, newest]) if length else newest
            return self.all
        if self._memory is None or self._memory.size(0) == length:
            self._memory = newest.new_empty(max(2 * length, FIRST_CAPACITY), *newest.shape[1:])
            if length:
                self._memory[:length] = self.all
        self._memory[length] = newest[0]
        self.all = self._memory[: length + 1]
        return self.all

    def reorder(self, order: Tensor) -> None:
        """Put hypothesis ``order[b]`` in row ``b``; there may be fewer now."""
        if self._memory is None or self.all.requires_grad:
            self.all, self._memory = self.all.index_select(1, order), None
            return
        capacity, _, channels = self._memory.shape
        shape, length = (capacity, order.numel(), channels), self.all.size(0)
        if self._spare is None or self._spare.shape != shape:
            self._spare = self._memory.new_empty(shape)
        self._memory, self._spare = self._spare, self._memory
        self.all = torch.index_select(self.all, 1, order, out=self._memory[:length])


@dataclass
class Prefix:
    """The tokens so far, projected, as the self-attention of one layer needs them."""

    keys: TokenBuffer = field(default_factory=TokenBuffer)  # rotated if the encoding rotates
    values: TokenBuffer = field(default_factory=TokenBuffer)
    distances: Optional[Tensor] = None  # (length, channels), from the largest down to 0

    def reordered(self, order: Tensor, rows: Tensor) -> "Prefix":
        """Put hypothesis ``order[b]`` in row ``b``; ``rows`` is the order on the host."""
        if not _is_identity(rows, self.keys.all.size(1)):
            self.keys.reorder(order)
            self.values.reorder(order)
        return self


class Source:
    """The encoder's output, as the attention of one decoder layer needs it.

    Hypotheses of a sentence share it, as long as they stand together and are as many for each.

    Args:
        keys, values: ``(sentences, heads, source length, head channels)``.
        padding_mask: ``(sentences, source length)`` bool, true at padding, or ``None``.
        beam: how many hypotheses each sentence has.
    """

    def __init__(
        self, keys: Tensor, values: Tensor, padding_mask: Optional[Tensor] = None, beam: int = 1
    ):
        self.keys, self.values, self.padding_mask, self.beam = keys, values, padding_mask, beam
        every = torch.arange(keys.size(0))
        self._sentences = every.repeat_interleave(beam) if beam > 1 else every

    def reordered(self, order: Tensor, rows: Tensor) -> "Source":
        """Return the source of the hypotheses ``order``; ``rows`` is the same on the host."""
        sentences = self._sentences.index_select(0, rows)
        # hypotheses have changed places within their sentences, or not at all
        if torch.equal(sentences, self._sentences):
            return self
        beam = beam_size(sentences)
        parts = [self.keys, self.values, self.padding_mask]
        if not _is_identity(sentences[::beam], self.keys.size(0)):
            # from the first hypothesis of each sentence to that sentence's row of keys
            order = order[::beam].div(self.beam, rounding_mode="floor")
            parts = [x if x is None else x.index_select(0, order) for x in parts]
        keys, values, padding_mask = parts
        return Source(keys, values, padding_mask, beam)


def beam_size(sentences: Tensor) -> int:
    """Return how many hypotheses each sentence has if they stand together and are as many; or 1.

    Args:
        sentences: ``(batch,)``, for each hypothesis the number of its sentence, on the host.
    """
    sizes = sentences.unique_consecutive(return_counts=True)[1]
    return int(sizes[0]) if bool(sizes.eq(sizes[0]).all()) else 1


def _is_identity(rows: Tensor, batch: int) -> bool:
    return rows.numel() == batch and torch.equal(rows, torch.arange(batch))
