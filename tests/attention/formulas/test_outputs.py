"""The attention module with every encoding against the loops over its formula."""

import copy

import pytest
import torch

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings import Positions, options
from fairseq_posenc.encodings.segments import SegmentScalars

FEW = {"num_buckets": 8, "max_distance": 5}
CASES = [
    ("shaw", {"max_distance": 2}),
    ("shaw", {"max_distance": 16}),
    ("shaw", {"max_distance": 2, "shared_tables": True}),
    ("transformer_xl", {}),
    ("t5", FEW),
    ("t5", {"num_buckets": 4, "max_distance": 4, "sharing": "none"}),
    ("t5", {"num_buckets": 4, "max_distance": 4, "sharing": "heads"}),
    ("tupe", FEW),
    ("abs_scalar", {}),
    ("abs_scalar", {"rank": 3, "sharing": "layers"}),
    ("abs_scalar", {"rank": 1, "sharing": "heads"}),
    ("rel_scalar", {}),
    ("rel_scalar", {"sharing": "layers"}),
    ("rel_scalar", {"max_distance": 2}),
    ("rel_scalar", {"sharing": "heads"}),
    ("rotary", {}),
    ("rotary", {"base": 50.0, "scale": 3.0}),
    ("rotary", {"scale": 8.0, "scale_method": "ntk"}),
    ("rotary", {"scale": 4.0, "scale_method": "yarn", "original_length": 5}),
    ("rotary", {"base": 3.0, "scale": 4.0, "scale_method": "yarn", "original_length": 90}),
    ("rotary", {"scale": 2.0, "scale_method": "dynamic", "original_length": 3}),
    ("alibi", {}),
    ("kerple", {}),
    ("kerple", {"sharing": "layers"}),
    ("kerple", {"sharing": "heads"}),
]
every_case = pytest.mark.parametrize(
    "name, chosen", CASES, ids=["-".join(map(str, (n, *c.values()))) for n, c in CASES]
)
both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])

# With tables for 4 positions, 6 tokens go beyond them; padded in one row, then in all rows.
WHOLE = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]])
RIGHT = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 1, 1, 1]])
ALL_RIGHT = torch.tensor([[5, 6, 7, 8, 1, 1], [11, 12, 13, 14, 15, 1]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 2, 2, 1, 0, 0]])


def gradients(outputs, real, wanted):
    """Gradients of a random sum of the outputs at real queries; of what is not used, zeros."""
    generator, loss = torch.Generator().manual_seed(4), 0
    for output in outputs:
        loss = loss + (output * torch.randn(output.shape, generator=generator) * real).sum()
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    pairs = zip(wanted.items(), found)
    return {name: torch.zeros_like(x) if slope is None else slope for (name, x), slope in pairs}


@pytest.fixture
def check(reference, encoded):
    """Function that compares both layers, in float64 up to 1e-10 and in float32 up to 1e-5."""

    def check(encoding, name, chosen, tokens, segments=None):
        torch.manual_seed(5)
        module = SelfAttention(8, 2).eval()
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        real = tokens.ne(1).t().unsqueeze(-1)
        states = torch.randn(*tokens.t().shape, 8)
        parts = [encoding] if segments is None else [encoding, segments]

        exact, hidden = copy.deepcopy(module).double(), states.double().requires_grad_()
        shown = encoded(encoding, {**options(name), **chosen})
        if segments is not None:
            shown.segments = SEGMENTS
            shown.p["segment scalars"] = segments.scalars.detach().double().requires_grad_()
        expected = []
        for shown.layer in range(2):
            expected.append(reference(name, shown, exact, hidden, tokens))
        leaves = {"hidden": hidden, **dict(exact.named_parameters(prefix="module"))}
        slopes = list(gradients(expected, real, {**leaves, **shown.p}).values())

        for dtype, limit in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
            ours, hidden = copy.deepcopy(module).to(dtype), states.to(dtype).requires_grad_()
            cast = [copy.deepcopy(part).to(dtype) for part in parts]
            positions = Positions.of_tokens(tokens, 1)
            terms = cast[0](positions)
            if segments is not None:
                terms = cast[1](terms, SEGMENTS)
            mask, causal = positions.padding_mask, encoding.stack.decoder
            found = [ours(hidden, terms.attention[n], mask, causal)[0] for n in range(2)]
            for one, other in zip(found, expected):
                assert one.dtype == dtype
                difference = (one * real).double() - other * real
                assert float(difference.detach().abs().max()) <= limit
            leaves = {"hidden": hidden, **dict(ours.named_parameters(prefix="module"))}
            for part in cast:
                leaves.update(part.named_parameters(prefix=type(part).__name__))
            steepness = gradients(found, real, leaves)
            assert len(steepness) == len(slopes)
            for (what, one), other in zip(steepness.items(), slopes):
                size = max(1, float(other.abs().max()))
                assert float((one.double() - other).abs().max()) <= limit * size, what

    return check


@every_case
@both_sides
@pytest.mark.parametrize("padding", ["none", "right", "left", "all left"])
def test_outputs_and_gradients_are_those_of_the_formula(
    name, chosen, decoder, padding, random_encoding, check
):
    encoding = random_encoding(name, chosen, decoder=decoder)
    assert encoding.by_index == (name in ("abs_scalar", "tupe"))
    tokens = {"none": WHOLE, "all left": ALL_RIGHT}.get(padding, RIGHT)
    if "left" in padding and not encoding.by_index:
        tokens = tokens.flip(1)
    check(encoding, name, chosen, tokens)


@pytest.mark.parametrize("max_length", [4, 20])
def test_scores_that_involve_cls_are_reset(max_length, random_encoding, check):
    encoding = random_encoding("tupe", FEW, has_cls=True, max_length=max_length)
    check(encoding, "tupe", FEW, RIGHT)


@pytest.mark.parametrize("sharing", ["none", "layers", "heads"])
def test_segments_add_their_scalars(sharing, random_encoding, check):
    """Chen et al. 2021, eq. (9) to (11)."""
    encoding = random_encoding("rel_scalar", {"sharing": sharing})
    segments = SegmentScalars(encoding.stack, 3, sharing=sharing)
    segments.scalars.data.normal_(generator=torch.Generator().manual_seed(6))
    check(encoding, "rel_scalar", {"sharing": sharing}, RIGHT, segments)


@both_sides
@pytest.mark.parametrize("name", [name for name, chosen in CASES if not chosen])
def test_a_single_token_attends_to_itself(name, decoder, random_encoding, check):
    encoding = random_encoding(name, decoder=decoder)
    check(encoding, name, {}, torch.tensor([[5], [6]]))
