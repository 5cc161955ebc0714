"""How many parameters every encoding has, and that all of them learn."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.segments import SegmentScalars

LAYERS, HEADS, WIDTH, LONGEST = 3, 4, 8, 10
CHANNELS = HEADS * WIDTH
MAPS = 2 * (CHANNELS * CHANNELS + CHANNELS)
TUPE = LONGEST * CHANNELS + 2 * CHANNELS + MAPS + HEADS * 32

both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])


def stack(decoder=False, **others):
    return Stack(CHANNELS, decoder, LONGEST, layers=LAYERS, heads=HEADS, **others)


def count(encoding):
    return sum(parameter.numel() for parameter in encoding.parameters())


@both_sides
@pytest.mark.parametrize(
    "name, chosen, expected",
    [
        ("shaw", {"max_distance": 3}, 2 * LAYERS * 7 * WIDTH),
        ("shaw", {}, 2 * LAYERS * 33 * WIDTH),
        ("shaw", {"max_distance": 3, "shared_tables": True}, LAYERS * 7 * WIDTH),
        ("transformer_xl", {}, 2 * LAYERS * HEADS * WIDTH),
        ("t5", {}, HEADS * 32),
        ("t5", {"num_buckets": 8, "sharing": "none"}, LAYERS * HEADS * 8),
        ("t5", {"num_buckets": 8, "sharing": "heads"}, LAYERS * 8),
        ("tupe", {}, TUPE),
        ("abs_scalar", {}, LAYERS * HEADS * LONGEST * WIDTH),
        ("abs_scalar", {"rank": 5}, LAYERS * HEADS * LONGEST * 5),
        ("abs_scalar", {"rank": 5, "sharing": "layers"}, HEADS * LONGEST * 5),
        ("abs_scalar", {"rank": 5, "sharing": "heads"}, LAYERS * LONGEST * 5),
        ("rotary", {}, 0),
        ("alibi", {}, 0),
    ],
)
def test_numbers_of_parameters(name, chosen, expected, decoder):
    assert count(build(name, stack(decoder), **chosen)) == expected


@pytest.mark.parametrize("decoder, scalars", [(False, 2 * LONGEST - 1), (True, LONGEST)])
@pytest.mark.parametrize(
    "sharing, copies", [("none", LAYERS * HEADS), ("layers", HEADS), ("heads", LAYERS)]
)
def test_numbers_of_relative_scalars(decoder, scalars, sharing, copies):
    assert count(build("rel_scalar", stack(decoder), sharing=sharing)) == copies * scalars


def test_cls_costs_tupe_two_scalars_per_head():
    assert count(build("tupe", stack(has_cls=True))) == TUPE + 2 * HEADS


@pytest.mark.parametrize("segments", [2, 5])
@pytest.mark.parametrize(
    "sharing, copies", [("none", LAYERS * HEADS), ("layers", HEADS), ("heads", LAYERS)]
)
def test_segments_cost_a_square_per_head_and_layer(segments, sharing, copies):
    assert count(SegmentScalars(stack(), segments, sharing=sharing)) == copies * segments**2


@both_sides
@pytest.mark.parametrize(
    "name, chosen",
    [
        ("shaw", {}),
        ("shaw", {"shared_tables": True}),
        ("transformer_xl", {}),
        ("t5", {}),
        ("t5", {"sharing": "none"}),
        ("tupe", {}),
        ("abs_scalar", {}),
        ("abs_scalar", {"sharing": "layers"}),
        ("rel_scalar", {}),
        ("rel_scalar", {"sharing": "heads"}),
    ],
)
def test_every_parameter_learns_as_it_is_drawn(name, chosen, decoder, inputs, plain_layer):
    """In one backward pass through all layers, every layer's part of every table."""
    torch.manual_seed(0)
    encoding = build(name, stack(decoder, has_cls=not decoder), **chosen).train()
    tokens = torch.arange(5, 5 + 2 * LONGEST).view(2, LONGEST)
    x = inputs(tokens, decoder, heads=HEADS, width=WIDTH)
    terms = encoding(Positions.of_tokens(tokens, 1)).attention
    assert sorted(terms) == list(range(LAYERS))
    sum(plain_layer(terms[layer], x).square().sum() for layer in terms).backward()
    for parameter_name, parameter in encoding.named_parameters():
        assert parameter.grad is not None, parameter_name
        if parameter_name == "key.bias" and decoder:
            continue  # adds the same to a whole row of TUPE's scores, which softmax ignores
        parts = parameter.grad if parameter.dim() > 2 else parameter.grad[None]
        assert all(bool(part.any()) for part in parts), parameter_name


@both_sides
@pytest.mark.parametrize("name", "shaw transformer_xl t5 tupe abs_scalar rel_scalar".split())
def test_a_single_token_leaves_no_parameter_without_a_gradient(name, decoder, inputs, plain_layer):
    """Data-parallel training stops where a parameter is not used; a zero is a gradient."""
    encoding = build(name, stack(decoder)).train()
    tokens = torch.tensor([[5]])
    x = inputs(tokens, decoder, heads=HEADS, width=WIDTH)
    terms = encoding(Positions.of_tokens(tokens, 1)).attention
    sum(plain_layer(terms[layer], x).sum() for layer in terms).backward()
    assert all(parameter.grad is not None for parameter in encoding.parameters())


@pytest.mark.parametrize("name", ["t5", "tupe", "abs_scalar", "rel_scalar", "transformer_xl"])
def test_parameters_are_drawn_small(name):
    """A standard deviation of 0.02: attention begins as it would without positions."""
    torch.manual_seed(0)
    encoding = build(name, Stack(64, max_length=200, layers=6, heads=8))
    drawn = {n: p for n, p in encoding.named_parameters() if "." not in n}
    assert drawn
    for parameter in drawn.values():
        deviation = float(parameter.detach().std())
        assert abs(deviation - 0.02) < 0.02 * 4 / (2 * parameter.numel()) ** 0.5
