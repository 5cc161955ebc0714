"""Dropout of attention weights, seen through values that show the weights themselves."""

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.attention import core, plain

KINDS = "none bias one_bias bias+segments relative shared distances".split()
kinds = pytest.mark.parametrize("kind", KINDS)


def showing_weights(case):
    """The same case with the unit matrix as values, so that the output is the weights."""
    tensors = {n: t for n, t in case.tensors.items() if n != "relative_values"}
    length = tensors["keys"].shape[2]
    tensors["values"] = torch.eye(length).expand(*tensors["keys"].shape[:2], length, length)
    if case.shared:
        tensors["relative_values"] = torch.zeros_like(tensors["relative_keys"])
    return tensors


def kept(case, seed, p, attend=core.attend):
    """Which weights a seed leaves, ``(B, H, T, T)``; those of the future count as dropped."""
    torch.manual_seed(seed)
    shared, case.shared = case.shared, False
    tensors = showing_weights(case)
    tensors["queries"] = tensors["queries"].detach().requires_grad_()
    output = case.run(attend, tensors, dropout_p=p)[0]
    case.shared = shared
    return output.detach() != 0


def square(make_case, kind, length, **others):
    """A case whose heads are as wide as the sequence is long, for :func:`showing_weights`."""
    return make_case(kind, length=length, width=length, **others)


@kinds
@pytest.mark.parametrize("p", [0.1, 0.3])
def test_a_fraction_p_is_dropped_and_the_rest_is_scaled_up(kind, p, make_case):
    case = square(make_case, kind, 64, batch=2, heads=4)
    weights = case.run(core.attend, need_weights=True)[1]
    keep = kept(case, 1, p)
    deviation = (p * (1 - p) / keep.numel()) ** 0.5
    assert abs(1 - float(keep.float().mean()) - p) < 5 * deviation
    torch.manual_seed(1)
    unshared = replace(case, shared=False)
    output = unshared.run(core.attend, showing_weights(unshared), dropout_p=p)[0]
    torch.testing.assert_close(output, weights * keep / (1 - p), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "bias", "relative"])
def test_weights_are_dropped_independently(kind, make_case):
    """No batch element, head, row or column repeats another, nor does the next draw."""
    case, p = square(make_case, kind, 64, batch=4, heads=8), 0.5
    one, other = (kept(case, seed, p).float() - 0.5 for seed in (1, 2))
    bound = 5 * 0.25 / one.numel() ** 0.5
    assert abs(float((one * other).mean())) < bound
    for dimension in range(4):
        for step in (1, 2, 3):
            shifted = one.roll(step, dimension)
            wrapped = 2 if dimension == 0 and step == 2 else 1
            assert abs(float((one * shifted).mean())) < wrapped**0.5 * bound
    for dimensions in ((0, 1, 2), (0, 1, 3), (2, 3)):
        mean = one.mean(dimensions)
        assert float(mean.abs().max()) < 5 * 0.5 / (one.numel() / mean.numel()) ** 0.5


def with_weights_left(factors):
    """Attention whose weights are multiplied by ``factors``, from the formula."""

    def attend(queries, keys, values, terms, padding, causal, dropout_p, need_weights):
        weights = plain.attend(plain.Inputs(queries, keys, values, terms, padding, causal))[1]
        weights = weights * factors
        output = weights @ values
        if terms.relative_values is not None:
            k = len(terms.relative_values) // 2
            index = torch.arange(factors.size(-1))
            rows = (index[:, None] - index).clamp(-k, k) + k
            output = output + torch.einsum("bhij,ijd->bhid", weights, terms.relative_values[rows])
        return output, None

    return attend


@kinds
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("length", [8, 40])
def test_outputs_and_gradients_are_those_of_the_weights_that_are_left(
    kind, causal, length, make_case
):
    """With one seed the same weights are dropped, whatever the values; the formula does the rest.

    Both the mask and the softmax are given, so float64 serves as the reference.
    """
    p = 0.3
    case = square(make_case, kind, length, side="right", causal=causal)
    formula = with_weights_left(kept(case, 3, p).double() / (1 - p))
    expected, slopes = case.outputs_and_gradients(formula, torch.float64)
    torch.manual_seed(3)
    found, gradients = case.outputs_and_gradients(core.attend, torch.float32, dropout_p=p)
    assert float((found - expected).abs().max()) <= 2e-5
    for name, slope in slopes.items():
        error = float((gradients[name] - slope).abs().max())
        assert error <= 1e-4 * float(slope.abs().max()) + 1e-6, name


@kinds
@pytest.mark.parametrize("length", [5, 300])
def test_no_dropout_draws_nothing(kind, length, make_case):
    case = make_case(kind, heads=1, length=length, causal=True)
    before = torch.get_rng_state()
    case.outputs_and_gradients(core.attend, torch.float32)
    assert torch.equal(before, torch.get_rng_state())


@kinds
@pytest.mark.parametrize("length", [8, 300])
def test_one_seed_means_one_outcome(kind, length, make_case):
    case = make_case(kind, heads=1, length=length, causal=True)
    outcomes = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outcomes.append(case.outputs_and_gradients(core.attend, torch.float32, dropout_p=0.2))
    (one, slopes), (again, repeated), (other, _) = outcomes
    assert torch.equal(one, again)
    assert all(torch.equal(slopes[name], repeated[name]) for name in slopes)
    assert not torch.equal(one, other)


@kinds
@pytest.mark.parametrize("length", [5, 20, 300])
def test_a_seed_drops_the_same_with_and_without_gradients(kind, length, make_case):
    """Activation checkpointing runs forward without gradients, then again with them."""
    case, outcomes = make_case(kind, heads=1, length=length, causal=True), []
    for learns in (False, True):
        torch.manual_seed(1)
        with torch.set_grad_enabled(learns):
            outcomes.append(case.run(core.attend, case.leaves(torch.float32), dropout_p=0.3)[0])
    torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)


def test_the_plain_core_drops_as_well(make_case, plain_attend):
    case = square(make_case, "bias", 64, batch=4, heads=8)
    keep = kept(case, 1, 0.1, plain_attend)
    assert abs(float(keep.float().mean()) - 0.9) < 0.005
