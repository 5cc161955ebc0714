"""RAdam against the formulas of Liu et al. 2019, and its options."""

import math

import pytest
import torch

from tests.optim.conftest import optimizer_of


def naive(start, gradients, lr, beta1, beta2, eps, decay=0.0):
    """Algorithm 2, number by number; it rectifies from ρ > 5 on, as the authors' code does."""
    theta, m, v, path = start, 0.0, 0.0, []
    longest = 2 / (1 - beta2) - 1
    for t, gradient in enumerate(gradients, 1):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        m_hat = m / (1 - beta1**t)
        rho = longest - 2 * t * beta2**t / (1 - beta2**t)
        theta -= lr * decay * theta
        if rho > 5:
            r = math.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
            theta -= lr * r * m_hat * math.sqrt(1 - beta2**t) / (math.sqrt(v) + eps)
        else:
            theta -= lr * m_hat
        path.append(theta)
    return path


@pytest.mark.parametrize("betas", [(0.9, 0.98), (0.9, 0.999), (0.5, 0.6)])
@pytest.mark.parametrize("eps", [1e-8, 1e-2])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_steps_are_those_of_the_formula(betas, eps, decay):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(5, generator=generator, dtype=torch.float64)
    gradients = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    parameter = torch.nn.Parameter(start.clone())
    options = {"radam_betas": str(betas), "radam_eps": eps, "weight_decay": decay}
    optimizer = optimizer_of("radam", [parameter], **options)
    found = []
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        found.append(parameter.detach().clone())
    for column in range(5):
        expected = naive(
            start[column].item(), gradients[:, column].tolist(), 0.1, *betas, eps, decay
        )
        steps = [step[column].item() for step in found]
        assert steps == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_scale_divides_the_gradients_and_what_has_none_stays():
    first, second, still = (torch.nn.Parameter(torch.ones(3)) for _ in range(3))
    for parameter, scale in ((first, 1.0), (second, 8.0)):
        parameter.grad = torch.tensor([0.1, -0.2, 0.3]) * scale
        optimizer_of("radam", [parameter, still], weight_decay=0.1).step(scale=scale)
    assert torch.equal(first, second) and torch.equal(still, torch.ones(3))


def test_options_given_anew_take_the_place_of_those_kept():
    parameter = torch.nn.Parameter(torch.ones(3))
    old = optimizer_of("radam", [parameter], weight_decay=0.1)
    new = optimizer_of("radam", [parameter], 0.5, radam_betas="(0.8, 0.9)", weight_decay=0.2)
    new.load_state_dict(old.state_dict(), new.optimizer_config)
    group = new.param_groups[0]
    assert (group["lr"], group["betas"], group["eps"]) == (0.5, (0.8, 0.9), 1e-8)
    assert group["weight_decay"] == 0.2


def test_a_state_without_decay_as_earlier_versions_wrote_it_goes_on_with_that_of_the_option():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = optimizer_of("radam", [parameter], weight_decay=0.1)
    optimizer.load_state_dict(torch.optim.RAdam([parameter]).state_dict())
    group = optimizer.param_groups[0]
    assert (group["weight_decay"], group["decoupled_weight_decay"]) == (0.1, True)


def test_half_precision_is_as_fairseq_asks():
    """Flat parameters are fine, weights kept in 16 bits only are not."""
    optimizer = optimizer_of("radam", [torch.nn.Parameter(torch.ones(1))])
    assert optimizer.supports_flat_params and not optimizer.supports_memory_efficient_fp16
    assert not optimizer.supports_groups
    assert isinstance(optimizer.optimizer, torch.optim.RAdam)
