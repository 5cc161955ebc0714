"""Attention that keeps one tensor of weights, on CPU tensors: values, gradients, what is kept."""

import pytest
import torch

from fairseq_posenc.attention import fused, half_precision, plain

KINDS = "none relative relative_values shared distances bias+segments relative+distances".split()


def lean_attend(*arguments):
    inputs = plain.Inputs(*arguments[:-1])
    assert half_precision.supports(inputs)
    return half_precision.attend(inputs), None


def torchs_attend(*arguments):
    return fused.attend(plain.Inputs(*arguments[:-1])), None


BACKENDS = [(lean_attend, kind) for kind in KINDS]
BACKENDS += [(torchs_attend, kind) for kind in ("distances", "distances+bias+segments")]


@pytest.mark.parametrize(("attend", "kind"), BACKENDS)
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("side", [None, "left"])
def test_it_is_as_near_to_float64_as_the_plain_way(
    attend, kind, causal, side, make_case, plain_attend
):
    case = make_case(kind, length=33, side=side, causal=causal)
    expected, slopes = case.outputs_and_gradients(plain_attend, torch.float64)
    ways = [case.outputs_and_gradients(way, torch.bfloat16) for way in (attend, plain_attend)]

    def error(found, wanted):
        return float((found - wanted).norm() / wanted.norm())

    (found, gradients), (other, others) = ways
    assert found.dtype == torch.bfloat16
    assert error(found, expected) <= 1.5 * error(other, expected) + 1e-3
    assert gradients.keys() == slopes.keys()
    for name, slope in slopes.items():
        assert error(gradients[name], slope) <= 1.5 * error(others[name], slope) + 4e-3, name


@pytest.mark.parametrize("kind", ["none", "relative_keys", "distances"])
def test_what_is_dropped_has_no_gradient_and_the_rest_is_scaled_up(kind, make_case):
    """The unit matrix as values shows the weights that are left."""
    p, case = 0.3, make_case(kind, length=32, width=32)
    case.tensors["values"] = torch.eye(32).expand(2, 2, 32, 32)
    tensors = case.leaves(torch.bfloat16)
    torch.manual_seed(1)
    left = case.run(lean_attend, tensors, dropout_p=p)[0]
    weights = case.run(lean_attend, tensors)[0]
    keep = left != 0
    assert abs(float(keep.float().mean()) - (1 - p)) < 0.05
    torch.testing.assert_close(left, weights * keep / (1 - p), rtol=0.02, atol=1e-4)
    outer = torch.randn(left.shape, generator=torch.Generator().manual_seed(2))
    found = torch.autograd.grad((left * outer).sum(), tensors["queries"])[0]
    wide = case.leaves(torch.float64)
    heads, terms = case.heads_and_terms(wide)
    inputs = plain.Inputs(*heads, terms)
    formula = (plain.attention_weights(inputs) * keep / (1 - p) * outer).sum()
    expected = torch.autograd.grad(formula, wide["queries"])[0]
    assert float((found - expected).norm() / expected.norm()) < 0.02


@pytest.mark.parametrize("kind", ["relative", "distances"])
@pytest.mark.parametrize("p, before", [(0.1, 4 + 1 + 2), (0.0, 4 + 2)])
def test_of_the_weights_two_bytes_per_score_are_kept(kind, p, before, make_case, plain_attend):
    """The plain way keeps the softmax in float32, what is left in bfloat16, and what is dropped."""
    case, counts = make_case(kind, batch=2, heads=2, length=256), []
    for attend in (plain_attend, lean_attend):
        storages = {}

        def count(tensor, storages=storages):
            if tensor.untyped_storage().nbytes() >= 2 * 2 * 256 * 256:
                storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            output = case.run(attend, case.leaves(torch.bfloat16), dropout_p=p)[0]
        counts.append(sum(storages.values()) / (2 * 2 * 256 * 256))
        del output
    kept_before, kept = counts
    assert kept_before - kept >= before - 2
