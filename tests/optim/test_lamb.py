"""LAMB against Algorithm 2 of You et al. 2020, number by number."""

import math

import pytest
import torch

from fairseq_posenc.optim.lamb import Lamb
from tests.optim.conftest import optimizer_of


def norm(numbers):
    return math.sqrt(sum(x * x for x in numbers))


def naive(start, gradients, lr, beta1, beta2, eps, decay, is_matrix):
    """One tensor as a list of numbers; yields it after each step."""
    x, m, v = list(start), [0.0] * len(start), [0.0] * len(start)
    for t, g in enumerate(gradients, 1):
        u = []
        for i in range(len(x)):
            m[i] = beta1 * m[i] + (1 - beta1) * g[i]
            v[i] = beta2 * v[i] + (1 - beta2) * g[i] ** 2
            r = (m[i] / (1 - beta1**t)) / (math.sqrt(v[i] / (1 - beta2**t)) + eps)
            u.append(r + decay * x[i] if is_matrix else r)
        trust = norm(x) / norm(u) if is_matrix and norm(x) > 0 and norm(u) > 0 else 1.0
        x = [x[i] - lr * trust * u[i] for i in range(len(x))]
        yield list(x)


@pytest.mark.parametrize("shape", [(2, 3), (6,)])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_steps_are_those_of_the_algorithm(shape, zero, decay):
    generator = torch.Generator().manual_seed(1)
    start = torch.zeros(shape) if zero else torch.randn(shape, generator=generator)
    gradients = torch.randn(20, *shape, generator=generator)
    parameter = torch.nn.Parameter(start.clone())
    optimizer = optimizer_of("lamb", [parameter], lamb_betas="(0.9, 0.98)", weight_decay=decay)
    rows = [g.flatten().tolist() for g in gradients]
    expected = naive(start.flatten().tolist(), rows, 0.1, 0.9, 0.98, 1e-6, decay, len(shape) > 1)
    for gradient, step in zip(gradients, expected):
        parameter.grad = gradient.clone()
        optimizer.step()
        assert parameter.detach().flatten().tolist() == pytest.approx(step, abs=1e-6)


def test_each_tensor_has_its_own_ratio():
    small, large = (torch.nn.Parameter(torch.full((2, 2), size)) for size in (0.1, 10.0))
    for parameter in (small, large):
        parameter.grad = torch.ones(2, 2)
    optimizer_of("lamb", [small, large], lr=0.01).step()
    assert 1 - small[0, 0].item() / 0.1 == pytest.approx(0.01, rel=1e-3)
    assert 1 - large[0, 0].item() / 10 == pytest.approx(0.01, rel=1e-3)


def test_a_parameter_of_half_precision_takes_steps():
    parameter = torch.nn.Parameter(torch.ones(4, 4, dtype=torch.bfloat16))
    parameter.grad = torch.ones(4, 4, dtype=torch.bfloat16)
    Lamb([parameter], lr=0.1).step()
    assert parameter.dtype == torch.bfloat16
    assert parameter.float().mean().item() == pytest.approx(0.9, abs=0.01)
