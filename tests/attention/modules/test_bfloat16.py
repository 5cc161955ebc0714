"""Linear layers whose products are in bfloat16."""

import copy

import pytest
import torch
from torch import nn

from fairseq_posenc.attention import bfloat16


@pytest.mark.parametrize("shape", [(1,), (63, 1), (64, 1), (5, 13)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_gradients_are_those_of_float32_but_for_the_rounding(shape, bias):
    torch.manual_seed(1)
    layer = nn.Linear(24, 40, bias=bias)
    narrow = copy.deepcopy(layer)
    bfloat16.use_bfloat16_products(narrow)
    x, outer = torch.randn(*shape, 24), torch.randn(*shape, 40)
    outcomes = []
    for module in (layer, narrow):
        inputs = x.clone().requires_grad_()
        output = module(inputs)
        (output * outer).sum().backward()
        outcomes.append([output, inputs.grad, *(p.grad for p in module.parameters())])
    for expected, found in zip(*outcomes):
        assert found.dtype == torch.float32 and found.shape == expected.shape
        # bfloat16 has 8 bits
        assert float((found - expected).detach().norm() / expected.detach().norm()) < 2**-7
    assert not torch.equal(outcomes[0][0], outcomes[1][0])
    assert torch.equal(layer.eval()(x), narrow.eval()(x))


@pytest.mark.parametrize("bias", [True, False])
def test_outputs_can_be_scaled_in_place(bias):
    """fairseq's attention does so with its queries."""
    layer = nn.Linear(4, 4, bias=bias)
    bfloat16.use_bfloat16_products(layer)
    output = layer(torch.randn(3, 2, 4))
    output *= 0.5
    output.sum().backward()
    assert layer.weight.grad is not None


def test_products_have_few_shapes(monkeypatch):
    """oneDNN builds a kernel for each."""
    layer, rows = nn.Linear(8, 8), set()
    bfloat16.use_bfloat16_products(layer)
    rounded = bfloat16._rounded
    monkeypatch.setattr(bfloat16, "_rounded", lambda x: [rows.add(len(rounded(x))), rounded(x)][1])
    for tokens in range(1, 300):
        layer(torch.randn(tokens, 8, requires_grad=True)).sum().backward()
    assert rows == {64, 128, 192, 256, 320}


def test_parameters_and_layers_of_other_classes_stay_as_they_are():
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(4, 4), Own(4, 4), nn.LayerNorm(4))
    before = copy.deepcopy(model.state_dict())
    bfloat16.use_bfloat16_products(model)
    assert [type(layer) for layer in model] == [bfloat16.Bfloat16Linear, Own, nn.LayerNorm]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
