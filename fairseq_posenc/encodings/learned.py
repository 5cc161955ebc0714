"""Learned absolute positions: one trained vector per position."""

import torch
from torch import nn

from fairseq_posenc.encodings.base import Encoding, Positions, Stack, Terms
from fairseq_posenc.encodings.portable import Portable
from fairseq_posenc.encodings.rows import check_fits, check_length


class Learned(Encoding):
    """A table of vectors, one per position, added to the embeddings (Gehring et al. 2017).

    Term: ``input[b, i] = weight[first_index + min(i, max_length - 1)]``; "abspos" in CAPE, section
    5.3. The table is ``(first_index + max_length, channels)`` with the rows below ``first_index``
    unused, the shape and the name (``embed_positions.weight``) of fairseq's own learned
    positions, drawn from N(0, ``stack.table_std``²) as theirs are.

    Beyond the table: in training an error, before the table is read; in evaluation every further
    token gets the last row, so that long inputs are translated, if not well.
    """

    def __init__(self, stack: Stack):
        super().__init__(stack)
        check_length(stack)
        self.weight = nn.Parameter(
            torch.empty(stack.first_index + stack.max_length, stack.channels)
        )
        nn.init.normal_(self.weight, std=stack.table_std or stack.channels**-0.5)
        nn.init.zeros_(self.weight[stack.first_index - 1].detach())

    def forward(self, positions: Positions) -> Terms:
        """Return the rows of the table.

        Raises:
            ValueError: in training, for a sequence longer than the table.
        """
        numbers = positions.numbers
        check_fits(numbers.size(1), numbers, self.stack, self.training)
        last = self.stack.max_length - 1
        rows = numbers.clamp(max=last).long() + self.stack.first_index
        if positions.padding_mask is not None:
            rows = rows.masked_fill(positions.padding_mask, self.stack.first_index - 1)
        padding_row = self.stack.first_index - 1
        return Terms(input=nn.functional.embedding(rows, self.weight, padding_row))

    def portable(self, length: int) -> Portable:
        """Return the rows of the table, the last one for all positions beyond it."""
        return Portable(input=self(Positions.of_length(length)).input[0])
