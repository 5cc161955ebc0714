"""The attention module with every encoding against the loops over its formula."""

import copy

import pytest
import torch

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings import Positions, options

CASES = [
    ("shaw", {"max_distance": 2}),
    ("transformer_xl", {}),
    ("t5", {"num_buckets": 4, "max_distance": 4, "sharing": "none"}),
    ("tupe", {"num_buckets": 8, "max_distance": 5}),
    ("abs_scalar", {}),
    ("rel_scalar", {}),
    ("rotary", {}),
    ("alibi", {}),
]
TOKENS = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 1, 1, 1]])


@pytest.fixture
def module():
    torch.manual_seed(5)
    attention = SelfAttention(8, 2).eval()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return attention


def gradients(output, real, hidden, attention):
    outer = torch.randn(output.shape, generator=torch.Generator().manual_seed(6))
    leaves = {"hidden": hidden, **dict(attention.named_parameters())}
    return dict(zip(leaves, torch.autograd.grad((output * outer * real).sum(), leaves.values())))


@pytest.mark.parametrize("name, chosen", CASES, ids=[name for name, _ in CASES])
@pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("dtype, limit", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_the_module_computes_the_formula(
    name, chosen, decoder, layer, dtype, limit, module, random_encoding, reference, encoded, inputs
):
    encoding = random_encoding(name, chosen, decoder=decoder)
    padding = TOKENS.eq(1)
    real = ~padding.t().unsqueeze(-1)
    hidden = torch.randn(6, 2, 8, generator=torch.Generator().manual_seed(7))

    exact, x = copy.deepcopy(module).double(), inputs(TOKENS, decoder).to(torch.float64)
    source = hidden.double().requires_grad_()
    projections = (exact.q_proj, exact.k_proj, exact.v_proj)
    x.queries, x.keys, x.values = (exact.split(project(source)) for project in projections)
    x.key_weight = exact.k_proj.weight
    shown = encoded(encoding, {**options(name), **chosen})
    shown.layer = layer
    expected = exact.join(reference(name, shown, x))
    slopes = gradients(expected, real, source, exact)

    ours, hidden = module.to(dtype), hidden.to(dtype).requires_grad_()
    terms = copy.deepcopy(encoding).to(dtype)(Positions.of_tokens(TOKENS, 1)).attention[layer]
    found, _ = ours(hidden, terms, padding, causal=decoder)
    torch.testing.assert_close((found * real).double(), expected * real, rtol=0, atol=limit)
    for what, slope in gradients(found, real, hidden, ours).items():
        size = max(1, float(slopes[what].abs().max()))
        torch.testing.assert_close(slope.double(), slopes[what], rtol=0, atol=limit * size)
