"""Learned absolute positions: one trained vector per position, and checks of such tables."""

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import Encoding, ExportedPositions, Positions, StackConfig, Terms
from fairseq_posenc.errors import UsageError


class Learned(Encoding):
    """A table of vectors, one per position, added to the embeddings (Gehring et al. 2017).

    Term: ``input[b, i] = weight[first_index + min(i, max_length - 1)]``; "abspos" in CAPE, section
    5.3. The table ``embed_positions.weight`` is ``(first_index + max_length, channels)``, as that
    of fairseq's own learned positions, and drawn from N(0, ``stack.table_std``²). Rows below
    ``first_index`` are unused.

    Beyond the table there is an error in training. In evaluation every further token gets the last
    row.
    """

    def __init__(self, stack: StackConfig):
        super().__init__(stack)
        check_table_length(stack)
        self.weight = nn.Parameter(
            torch.empty(stack.first_index + stack.max_length, stack.channels)
        )
        nn.init.normal_(self.weight, std=stack.table_std or stack.channels**-0.5)
        nn.init.zeros_(self.weight[stack.first_index - 1].detach())

    def forward(self, positions: Positions) -> Terms:
        """Return the rows of the table."""
        numbers, padding_row = positions.numbers, self.stack.first_index - 1
        if self.training:
            check_fits_table(numbers.size(1), numbers, self.stack)
        # rows of the table, one per token: (batch, length)
        rows = numbers.clamp(max=self.stack.max_length - 1).long() + self.stack.first_index
        if positions.padding_mask is not None:
            rows = rows.masked_fill(positions.padding_mask, padding_row)
        # input: (batch, length, channels)
        return Terms(input=nn.functional.embedding(rows, self.weight, padding_row))

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the rows of the table, the last one for all positions beyond it."""
        return ExportedPositions(input=self(Positions.of_length(length)).input[0])


def check_table_length(stack: StackConfig) -> None:
    """Raise ``ValueError`` if the stack's ``max_length`` leaves a table without rows."""
    if stack.max_length < 1:
        raise ValueError(f"a table of learned positions cannot have {stack.max_length} rows")


def check_fits_table(length: int, numbers: Tensor, stack: StackConfig) -> None:
    """Refuse positions that a table does not have; called in training only.

    Args:
        length: of the longest sequence, padding included.
        numbers: of the positions, from 0.
        stack: its ``max_length`` is the number of rows.

    Raises:
        UsageError: a position is beyond the table.
    """
    # Only padding can make a batch longer than its longest sequence, so most are not looked at.
    if length > stack.max_length and numbers.max() >= stack.max_length:
        option = "--max-target-positions" if stack.decoder else "--max-source-positions"
        raise UsageError(
            f"a sequence of {length} tokens is longer than the table of {stack.max_length} learned "
            f"positions; raise {'--max-positions' if stack.has_cls else option} (max_length= of a "
            "StackConfig)"
        )


def rows_of_keys(positions: Positions, stack: StackConfig, training: bool) -> Tensor:
    """Return the table's row of each key, ``(K,)`` int64, for an encoding that is ``by_index``.

    Those of the queries are the last ones. Positions beyond the table have its last row.

    Raises:
        UsageError: in training, for a sequence longer than the table.
    """
    row = positions.position_row  # of the queries: (Q,)
    if row.size(0) < positions.num_keys:
        # step by step: the keys before the newest token count back from it; row: (K,)
        row = row[-1:] + torch.arange(1 - positions.num_keys, 1, device=row.device)
    if training:
        check_fits_table(positions.num_keys, row, stack)
    return row.clamp(0, stack.max_length - 1).long()
