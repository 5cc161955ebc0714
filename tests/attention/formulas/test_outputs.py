"""Attention with every encoding against the loops over its formula: outputs and gradients."""

import copy

import pytest
import torch

from fairseq_posenc.encodings import Positions, options

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
    ("rel_scalar", {"sharing": "heads"}),
    ("rotary", {}),
    ("alibi", {}),
]
every_case = pytest.mark.parametrize(
    "name, chosen", CASES, ids=["-".join(map(str, (n, *c.values()))) for n, c in CASES]
)
both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])

# With tables for 4 positions, 6 tokens go beyond them; padded in one row, then in all rows.
WHOLE = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]])
RIGHT = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 1, 1, 1]])
LEFT = RIGHT.flip(1)
ALL_RIGHT = torch.tensor([[5, 6, 7, 8, 1, 1], [11, 12, 13, 14, 15, 1]])
ALL_LEFT = ALL_RIGHT.flip(1)
BY_INDEX = ("abs_scalar", "tupe")


def gradients(outputs, x, parameters):
    """Gradients of a random sum of the outputs at real queries, layer by layer."""
    generator, loss = torch.Generator().manual_seed(4), 0
    real = ~x.padding[:, None, :, None]
    for output in outputs:
        outer = torch.randn(output.shape, generator=generator)
        loss = loss + (output * outer * real).sum()
    wanted = {**dict(zip(("q", "k", "v", "key weight"), x.leaves())), **parameters}
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    return dict(zip(wanted, found)), real


def difference(one, other):
    """Largest difference; no gradient is the same as none at all."""
    if one is None or other is None:
        return max(float(g.abs().max()) for g in (one, other, torch.zeros(1)) if g is not None)
    return float((one - other).detach().abs().max())


def check(encoding, name, chosen, tokens, decoder, tools):
    """Compare two layers, in float64 up to 1e-10 and in float32 up to 1e-5."""
    reference, encoded, inputs, plain_layer = tools
    single = inputs(tokens, decoder)
    x, known = single.to(torch.float64), {**options(name), **chosen}
    shown = encoded(encoding, known)
    expected = []
    for shown.layer in range(2):
        expected.append(reference(name, shown, x))
    slopes, real = gradients(expected, x, shown.p)
    for dtype, limit in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        x, cast = single.to(dtype), copy.deepcopy(encoding).to(dtype)
        terms = cast(Positions.of_tokens(tokens, 1)).attention
        found = [plain_layer(terms[layer], x) for layer in range(2)]
        for one, other in zip(found, expected):
            assert one.dtype == dtype
            assert difference(one * real, other * real) <= limit
        steepness, _ = gradients(found, x, dict(cast.named_parameters()))
        assert steepness.keys() == slopes.keys()
        for what, slope in slopes.items():
            size = 1 if slope is None else max(1, float(slope.abs().max()))
            assert difference(steepness[what], slope) <= limit * size, what


@pytest.fixture(scope="session")
def tools(reference, encoded, inputs, plain_layer):
    return reference, encoded, inputs, plain_layer


@every_case
@both_sides
@pytest.mark.parametrize("padding", ["none", "right", "left"])
def test_outputs_and_gradients_are_those_of_the_formula(
    name, chosen, decoder, padding, random_encoding, tools
):
    encoding = random_encoding(name, chosen, decoder=decoder)
    assert encoding.by_index == (name in BY_INDEX)
    if padding == "left" and encoding.by_index:
        padding = "all right"
    tokens = {"none": WHOLE, "right": RIGHT, "left": LEFT, "all right": ALL_RIGHT}[padding]
    check(encoding, name, chosen, tokens, decoder, tools)


@both_sides
@pytest.mark.parametrize("name", ["shaw", "transformer_xl", "t5", "rel_scalar", "rotary", "alibi"])
def test_padding_in_every_row_changes_nothing(name, decoder, random_encoding, tools):
    encoding = random_encoding(name, decoder=decoder)
    for tokens in (ALL_LEFT, ALL_RIGHT):
        check(encoding, name, {}, tokens, decoder, tools)


@pytest.mark.parametrize("max_length", [4, 20])
def test_scores_that_involve_cls_are_reset(max_length, random_encoding, tools):
    encoding = random_encoding("tupe", FEW, has_cls=True, max_length=max_length)
    check(encoding, "tupe", FEW, RIGHT, False, tools)


@both_sides
@pytest.mark.parametrize("name", [name for name, chosen in CASES if not chosen])
def test_a_single_token_attends_to_itself(name, decoder, random_encoding, tools):
    encoding = random_encoding(name, decoder=decoder)
    check(encoding, name, {}, torch.tensor([[5], [6]]), decoder, tools)


@both_sides
@pytest.mark.parametrize("name, chosen", CASES)
def test_terms_do_not_depend_on_the_batch(name, chosen, decoder, random_encoding):
    """Shapes of the contract; none is as large as length x length x width."""
    encoding, length = random_encoding(name, chosen, decoder=decoder, max_length=50), 41
    terms = encoding(Positions.of_tokens(torch.full((3, length), 7), 1))
    assert terms.input is None
    assert sorted(terms.attention) == [0, 1]
    for layer in terms.attention.values():
        shapes = {name: t.shape for name, t in vars(layer).items() if torch.is_tensor(t)}
        bias = shapes.pop("bias", (2, length, length))
        assert bias in ((1, length, length), (2, length, length))
        k = chosen.get("max_distance", 16)
        allowed = {
            "relative_keys": (2 * k + 1, 4),
            "relative_values": (2 * k + 1, 4),
            "distances": (2 * length - 1, 8),
            "content_query": (2, 4),
            "position_query": (2, 4),
            "rotation": (2, length, 2),
        }
        for what, shape in shapes.items():
            assert shape == allowed[what], what
