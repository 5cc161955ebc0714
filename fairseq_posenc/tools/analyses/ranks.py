"""Ranks of matrices of scores (Chen et al. 2021, Figure 2)."""

import torch
from torch import Tensor


def singular_values(matrices: Tensor) -> Tensor:
    """Return the singular values ``(…, n)`` of matrices ``(…, n, n)``, in float64, falling."""
    return torch.linalg.svdvals(matrices.double())


def ranks(matrices: Tensor, threshold: float) -> Tensor:
    """Return the numerical ranks ``(…)`` of matrices ``(…, n, n)``.

    Our reading, as the paper names no threshold: the number of singular values that are more than
    ``threshold`` times the largest. That of a zero matrix is 0.
    """
    values = singular_values(matrices)
    return (values > threshold * values[..., :1]).sum(dim=-1)
