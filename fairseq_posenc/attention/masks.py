"""Masks as numbers that are added to scores."""

import torch
from torch import Tensor


def padding_bias(padding_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask ``(B, K)``, true at padding, into what to add to scores: ``(B, 1, 1, K)``."""
    bias = torch.zeros(padding_mask.shape, dtype=dtype, device=padding_mask.device)
    return bias.masked_fill_(padding_mask, _low(dtype))[:, None, None]


def causal_bias(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return what to add to scores so that the future is not seen: ``(1, length, length)``."""
    return torch.full((1, length, length), _low(dtype), dtype=dtype, device=device).triu_(1)


def _low(dtype: torch.dtype) -> float:
    # It outweighs any score, and two of them are still finite: a query that may look at nothing
    # gets finite weights.
    return torch.finfo(dtype).min / 2
