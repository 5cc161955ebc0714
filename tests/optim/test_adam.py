"""torch's fused Adam on a CPU beside fairseq's own, which the same option would take."""

import copy

import pytest
import torch
from fairseq.optim.adam import Adam, FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf

import fairseq_posenc.models  # noqa: F401 (it patches fairseq's)
from fairseq_posenc.optim.adam import FusedAdam

SHAPES = [(3, 5), (7,), (2, 2, 2), (), (40, 33)]


def weights_of(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    start = [torch.randn(shape, generator=generator) for shape in SHAPES]
    return [torch.nn.Parameter(weight.to(dtype)) for weight in start]


def train(optimizer, updates, first=0, scale=0.1):
    """Take steps with drawn gradients; every third weight has none in every second update."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for update in range(first, first + updates):
        generator = torch.Generator().manual_seed(update)
        for number, weight in enumerate(weights):
            grad = scale * torch.randn(weight.shape, generator=generator)
            has_grad = number % 3 or update % 2
            weight.grad = grad.to(weight.dtype) if has_grad else None
        optimizer.step()
    return weights


def assert_equal(weights, expected, rtol=2e-5):
    for weight, reference in zip(weights, expected):
        torch.testing.assert_close(weight, reference, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 1e-7])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"betas": (0.9, 0.98), "eps": 1e-6},
        {"weight_decay": 0.1, "lr": 0.03},
        {"betas": (0.5, 0.6), "eps": 0.1},
    ],
    ids=str,
)
def test_steps_are_those_of_fairseqs_own(options, scale):
    expected = train(Adam(weights_of(), **options), 30, scale=scale)
    fused = FusedAdam(weights_of(), **options)
    assert_equal(train(fused, 30, scale=scale), expected)
    counts = [fused.state[weight]["step"] for weight in expected if weight in fused.state]
    assert all(type(count) is int for count in counts)


@pytest.mark.parametrize(("before", "after"), [(Adam, FusedAdam), (FusedAdam, Adam)])
def test_a_training_goes_on_with_the_state_of_the_other(before, after):
    expected = train(Adam(weights_of()), 20)
    first = before(weights_of())
    weights = train(first, 10)
    second = after([torch.nn.Parameter(weight.detach().clone()) for weight in weights])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert_equal(train(second, 10, first=10), expected)


def test_half_precision_gets_fairseqs_own_step():
    expected = train(Adam(weights_of(torch.bfloat16)), 5)
    weights = train(FusedAdam(weights_of(torch.bfloat16)), 5)
    assert all(map(torch.equal, weights, expected))


def test_weights_that_lie_otherwise_in_memory_get_fairseqs_own_step():
    def transposed():
        return [torch.nn.Parameter(torch.arange(12.0).view(3, 4).t())]

    expected = train(Adam(transposed()), 4)
    assert all(map(torch.equal, train(FusedAdam(transposed()), 4), expected))


@pytest.mark.parametrize("uses_old", [False, True])
def test_the_option_of_fairseqs_own_is_followed(uses_old):
    cfg = OmegaConf.structured(FairseqAdamConfig)
    cfg.merge_with({"lr": [0.1], "use_old_adam": uses_old, "tpu": False})
    optimizer = FairseqAdam(cfg, weights_of())
    assert type(optimizer.optimizer) is (Adam if uses_old else FusedAdam)
    assert optimizer.get_lr() == 0.1
