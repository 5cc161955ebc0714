"""What attention remembers when decoding step by step: the tokens so far, and the source."""

from dataclasses import dataclass, field
from typing import Optional

import torch
from torch import Tensor

FIRST_CAPACITY = 32


class Rows:
    """One vector per token and hypothesis, ``(length, batch, channels)``; grows by a token a step.

    The vectors lie in one piece of memory that doubles when it is full, so that a step writes the
    newest ones alone. Hypotheses are reordered into a second piece of the same size. Where
    gradients are asked for, memory is not reused and all is done the plain way.
    """

    def __init__(self):
        self.all: Optional[Tensor] = None
        self._memory: Optional[Tensor] = None
        self._spare: Optional[Tensor] = None

    def append(self, newest: Tensor) -> Tensor:
        """Add ``(1, batch, channels)`` and return all."""
        length = 0 if self.all is None else self.all.size(0)
        if newest.requires_grad:
            self.all = torch.cat([self.all, newest]) if length else newest
            return self.all
        used, size = length * newest.numel(), newest.numel()
        if self._memory is None or self._memory.numel() < used + size:
            self._memory = newest.new_empty(max(2 * used, FIRST_CAPACITY * size))
            self._spare = None
            if length:
                self._memory[:used] = self.all.flatten()
        self._memory[used : used + size].view_as(newest).copy_(newest)
        self.all = self._memory[: used + size].view(length + 1, *newest.shape[1:])
        return self.all

    def reorder(self, order: Tensor) -> None:
        """Let hypothesis ``b`` be what hypothesis ``order[b]`` was; there may be fewer now."""
        if self._memory is None or self.all.requires_grad:
            self.all = self.all.index_select(1, order)
            self._memory = None
            return
        length, _, channels = self.all.shape
        size = length * order.numel() * channels
        if self._spare is None or self._spare.numel() < size:
            self._spare = self._memory.new_empty(max(size, self._memory.numel()))
        reordered = self._spare[:size].view(length, order.numel(), channels)
        torch.index_select(self.all, 1, order, out=reordered)
        self.all = reordered
        self._memory, self._spare = self._spare, self._memory


@dataclass
class Prefix:
    """The tokens so far, as the self-attention of one layer needs them.

    Attributes:
        keys: projected, rotated if the encoding rotates.
        values: projected.
        padding_mask: ``(batch, length)`` bool, true at padding; ``None`` as long as there was none.
        distances: projected ones ``(length, channels)``, falling to 0, the same for all.
    """

    keys: Rows = field(default_factory=Rows)
    values: Rows = field(default_factory=Rows)
    padding_mask: Optional[Tensor] = None
    distances: Optional[Tensor] = None

    def append_padding(self, newest: Optional[Tensor]) -> Optional[Tensor]:
        """Add the mask ``(batch, 1)`` of the newest keys, which are known by now."""
        length, batch, _ = self.keys.all.shape
        if newest is None and self.padding_mask is None:
            return None
        before, now = (
            self.keys.all.new_zeros(batch, width, dtype=torch.bool) if mask is None else mask
            for mask, width in ((self.padding_mask, length - 1), (newest, 1))
        )
        self.padding_mask = torch.cat([before, now], dim=1)
        return self.padding_mask

    def reorder(self, order: Tensor) -> None:
        """Let hypothesis ``b`` be what hypothesis ``order[b]`` was; there may be fewer now."""
        if _is_identity(order, self.keys.all.size(1)):
            return
        self.keys.reorder(order)
        self.values.reorder(order)
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask.index_select(0, order)


@dataclass
class Source:
    """The encoder's output, as the attention of one decoder layer needs it.

    Attributes:
        keys: ``(sentences, heads, source length, head channels)``.
        values: the same for the values.
        padding_mask: ``(sentences, source length)`` bool, true at padding, or ``None``.
        beam: how many hypotheses each sentence has, which follow one another.
    """

    keys: Tensor
    values: Tensor
    padding_mask: Optional[Tensor] = None
    beam: int = 1

    def reordered(self, order: Tensor) -> "Source":
        """Return the source of the hypotheses ``order``."""
        sentences = order.div(self.beam, rounding_mode="floor")
        if order.numel() % self.beam == 0:
            groups = sentences.view(-1, self.beam)
            if bool(groups.eq(groups[:, :1]).all()):
                return self._of(groups[:, 0].contiguous(), self.beam)
        return self._of(sentences, 1)

    def _of(self, sentences: Tensor, beam: int) -> "Source":
        if beam == self.beam and _is_identity(sentences, self.keys.size(0)):
            return self
        mask = self.padding_mask
        return Source(
            self.keys.index_select(0, sentences),
            self.values.index_select(0, sentences),
            mask if mask is None else mask.index_select(0, sentences),
            beam,
        )


def _is_identity(order: Tensor, batch: int) -> bool:
    return order.numel() == batch and torch.equal(order, torch.arange(batch, device=order.device))
