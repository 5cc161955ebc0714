"""Moving padding from the left of sequences to their right, and back."""

from typing import Optional, Tuple

import torch
from torch import Tensor


def find_padding(tokens: Tensor, padding_index: int) -> Tuple[bool, bool]:
    """Return whether there is any padding, and whether any on the left; waits for a GPU once.

    Args:
        tokens: ``(batch, length)``.
        padding_index: the token that pads.
    """
    padding = tokens.eq(padding_index)
    padded, left = torch.stack([padding.any(), padding[:, 0].any()]).tolist()
    return padded, left


def left_padding(tokens: Tensor, padding_index: int) -> Tensor:
    """Return how much padding ``(batch,)`` stands before the first real token."""
    return tokens.ne(padding_index).long().cumsum(dim=1).eq(0).sum(dim=1)


def roll_rows(x: Optional[Tensor], places: Tensor) -> Optional[Tensor]:
    """Roll row ``b`` by ``places[b]`` to the right, around the end.

    Args:
        x: ``(batch, length, …)``; ``None`` stays ``None``.
        places: ``(batch,)``, negative to move to the left.
    """
    if x is None:
        return None
    batch, length = x.shape[:2]
    # what comes to place i stood at i - places[b]
    origin = (torch.arange(length, device=x.device) - places.unsqueeze(1)) % length
    # as a row of (batch · length, …)
    origin = origin + length * torch.arange(batch, device=x.device).unsqueeze(1)
    return x.flatten(0, 1).index_select(0, origin.flatten()).view_as(x)


def without_eos(tokens: Tensor, eos: Optional[int], padding: int) -> Tensor:
    """Return ``(batch, length)`` tokens with padding for ``eos``, where it is not all there is.

    Without an ``eos`` to hide, the tokens themselves.
    """
    if eos is None:
        return tokens
    hidden = tokens.eq(eos)
    alone = (hidden | tokens.eq(padding)).all(dim=1, keepdim=True)
    return tokens.masked_fill(hidden & ~alone, padding)
