"""Rows of tables that have one per position, and what happens beyond their end."""

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import Positions, Stack


def check_length(stack: Stack) -> None:
    """Refuse a table without rows.

    Raises:
        ValueError: the stack's ``max_length`` is below 1.
    """
    if stack.max_length < 1:
        raise ValueError(f"a table of learned positions cannot have {stack.max_length} rows")


def check_fits(length: int, numbers: Tensor, stack: Stack, training: bool) -> None:
    """Refuse to train on positions that a table does not have.

    Args:
        length: of the longest sequence, padding included.
        numbers: of the positions, from 0.
        stack: its ``max_length`` is the number of rows.
        training: whether the model is being trained; otherwise all is accepted.

    Raises:
        ValueError: in training, for a sequence longer than the table.
    """
    # Only padding can make a batch longer than its longest sequence, so most are not looked at.
    if training and length > stack.max_length and numbers.max() >= stack.max_length:
        raise ValueError(
            f"a sequence of {length} tokens is longer than the table of {stack.max_length} learned "
            "positions; raise --max-source-positions and --max-target-positions"
        )


def rows_of_keys(positions: Positions, stack: Stack, training: bool) -> Tensor:
    """Return the row of each key, ``(K,)`` int64, for an encoding that is ``by_index``.

    Those of the queries are the last ones. Positions beyond the table have its last row.

    Raises:
        ValueError: in training, for a sequence longer than the table.
    """
    line = positions.line
    if line.size(0) < positions.keys:
        line = line[-1:] + torch.arange(1 - positions.keys, 1, device=line.device)
    check_fits(positions.keys, line, stack, training)
    return line.clamp(0, stack.max_length - 1).long()
