"""Encodings inside attention: sizes of tables, what lies beyond them, what is shared and kept."""

import copy

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build
from fairseq_posenc.encodings.base import AttentionTerms, Terms
from fairseq_posenc.encodings.by_distance import to_toeplitz
from fairseq_posenc.encodings.segments import SegmentEmbeddings, SegmentScalars

LAYERS, HEADS, WIDTH, LONGEST = 3, 4, 8, 10
CHANNELS = HEADS * WIDTH
MAPS = 2 * (CHANNELS * CHANNELS + CHANNELS)
TUPE = LONGEST * CHANNELS + 2 * CHANNELS + MAPS + HEADS * 32
COPIES = {"none": LAYERS * HEADS, "layers": HEADS, "heads": LAYERS}

RELATIVE = ["shaw", "transformer_xl", "t5", "rel_scalar", "rotary", "alibi", "kerple"]
BY_INDEX = ["abs_scalar", "tupe"]
both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])


def stack(decoder=False, longest=LONGEST, **others):
    return StackConfig(CHANNELS, decoder, longest, layers=LAYERS, heads=HEADS, **others)


def line(length, **others):
    return Positions.of_tokens(torch.full((1, length), 7), 1, **others)


def whole(encoding, length):
    return encoding(line(length)).attention


def tensors(terms):
    return {name: t for name, t in vars(terms).items() if torch.is_tensor(t)}


def test_numbers_of_parameters():
    expected = [
        ("shaw", {"max_distance": 3}, 2 * LAYERS * 7 * WIDTH),
        ("shaw", {}, 2 * LAYERS * 33 * WIDTH),
        ("shaw", {"max_distance": 3, "shared_tables": True}, LAYERS * 7 * WIDTH),
        ("transformer_xl", {}, 2 * LAYERS * HEADS * WIDTH),
        ("t5", {}, HEADS * 32),
        ("tupe", {}, TUPE),
        ("abs_scalar", {}, LAYERS * HEADS * LONGEST * WIDTH),
        ("rotary", {}, 0),
        ("alibi", {}, 0),
    ]
    for sharing, copies in COPIES.items():
        expected.append(("t5", {"num_buckets": 8, "sharing": sharing}, copies * 8))
        expected.append(("abs_scalar", {"rank": 5, "sharing": sharing}, copies * LONGEST * 5))
    for decoder in (False, True):
        for sharing, copies in COPIES.items():
            scalars = LONGEST if decoder else 2 * LONGEST - 1
            assert count(build("rel_scalar", stack(decoder), sharing=sharing)) == copies * scalars
            for most, length in ((3, 4), (LONGEST, LONGEST)):
                clipped = build("rel_scalar", stack(decoder), sharing=sharing, max_distance=most)
                assert count(clipped) == copies * (length if decoder else 2 * length - 1)
        for name, chosen, number in expected:
            assert count(build(name, stack(decoder), **chosen)) == number, (name, chosen)
    assert count(build("tupe", stack(has_cls=True))) == TUPE + 2 * HEADS
    for sharing, copies in COPIES.items():
        assert count(SegmentScalars(stack(), 5, sharing=sharing)) == copies * 25


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("name", ["t5", "tupe", "abs_scalar", "rel_scalar", "transformer_xl"])
def test_parameters_are_drawn_small(name):
    """A standard deviation of 0.02: attention begins as it would without positions."""
    torch.manual_seed(0)
    large = StackConfig(64, max_length=200, layers=6, heads=8)
    every = dict(build(name, large).named_parameters())
    assert not any(p.any() for n, p in every.items() if n.endswith(".bias"))
    drawn = {n: p for n, p in every.items() if "." not in n}
    drawn["segments"] = SegmentScalars(large, 8).scalars
    for parameter in drawn.values():
        deviation = float(parameter.detach().std())
        assert abs(deviation - 0.02) < 0.02 * 4 / (2 * parameter.numel()) ** 0.5


@pytest.mark.parametrize("name", BY_INDEX)
def test_an_index_beyond_the_table_is_an_error_in_training(name):
    """In evaluation it is the last row, see tests/attention/formulas."""
    for decoder in (False, True):
        encoding = build(name, stack(decoder, longest=4)).train()
        padded = encoding(Positions.of_tokens(torch.tensor([[5, 6, 7, 8, 1, 1]]), 1))
        assert padded.attention[0].bias.shape == (HEADS, 6, 6)
        option = "--max-target-positions" if decoder else "--max-source-positions"
        with pytest.raises(ValueError, match=f"5 tokens .* table of 4 .*; raise {option} "):
            whole(encoding, 5)


@pytest.mark.parametrize("name", ["tupe", "abs_scalar", "rel_scalar"])
def test_tables_need_a_row(name):
    with pytest.raises(ValueError, match="0 "):
        build(name, StackConfig(8, max_length=0))


def test_rotary_needs_an_even_width_of_heads():
    with pytest.raises(ValueError, match="even width.*3"):
        build("rotary", StackConfig(6, heads=2))
    with pytest.raises(ValueError, match="ntk needs heads wider than 2"):
        build("rotary", StackConfig(6, heads=3), scale_method="ntk")


def test_a_scale_of_1_turns_bit_for_bit_as_before_there_were_scales():
    pairs = torch.arange(32, dtype=torch.float32)
    angles = torch.arange(900.0).unsqueeze(-1) * torch.pow(10000, pairs * (-2 / 64))
    for method in ("linear", "ntk"):
        found = whole(build("rotary", StackConfig(64), scale_method=method), 900)[0].rotation
        assert torch.equal(found[:, :, 0], torch.stack([angles.cos(), angles.sin()]))


@pytest.mark.parametrize("shared", [False, True])
def test_shaw_at_zero_attends_as_without_positions_and_learns(shared, effect):
    chosen = {"shared_tables": shared, "initialization": "zero"}
    encoding, hidden = build("shaw", stack(), **chosen), torch.randn(1, 5, CHANNELS)
    without = build("shaw", stack(), **chosen)
    without.forward = lambda positions: Terms(attention=dict.fromkeys(range(3), AttentionTerms()))
    found = effect(encoding, line(5), hidden)
    torch.testing.assert_close(found, effect(without, line(5), hidden))
    found.square().sum().backward()
    assert all(table.grad.any() for table in encoding.parameters())


@both_sides
@pytest.mark.parametrize("name", RELATIVE + BY_INDEX)
def test_terms_do_not_depend_on_the_batch(name, decoder):
    """Shapes of the contract; none is as large as length x length x width."""
    length = 41
    encoding = build(name, stack(decoder, longest=50))
    terms = encoding(Positions.of_tokens(torch.full((3, length), 7), 1))
    assert terms.input is None and sorted(terms.attention) == [0, 1, 2]
    shapes = {
        "bias": (HEADS, length, length),
        "relative_keys": (33, WIDTH),
        "relative_values": (33, WIDTH),
        "distances": (2 * length - 1, CHANNELS),
        "content_query": (HEADS, WIDTH),
        "position_query": (HEADS, WIDTH),
        "rotation": (2, length, 1, WIDTH // 2),
    }
    for layer in terms.attention.values():
        assert tensors(layer)
        for what, tensor in tensors(layer).items():
            assert tensor.shape == shapes[what], what


@pytest.mark.parametrize("name", RELATIVE + BY_INDEX)
def test_a_step_makes_nothing_of_the_size_of_length_squared(name):
    encoding = build(name, stack(decoder=True, longest=4000)).requires_grad_(False)
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if torch.is_tensor(result):
                largest = max(largest, result.numel())
            return result

    with Watch():
        encoding(line(4000, cache={}))
    assert largest <= 20 * 4000 * CHANNELS


@pytest.mark.parametrize("name", ["t5", "abs_scalar", "rel_scalar"])
@pytest.mark.parametrize("sharing, heads", [("none", HEADS), ("heads", 1), ("layers", HEADS)])
def test_layers_share_one_object_or_nothing(name, sharing, heads):
    terms = whole(build(name, stack(), sharing=sharing), 5)
    assert list(terms) == [0, 1, 2]
    assert all(terms[layer].bias.shape == (heads, 5, 5) for layer in range(3))
    for one, other in ((0, 1), (1, 2)):
        assert (terms[one] is terms[other]) == (sharing == "layers")
        assert torch.equal(terms[one].bias, terms[other].bias) == (sharing == "layers")
    for shared in ("tupe", "rotary", "alibi"):
        terms = whole(build(shared, stack()), 5)
        assert terms[0] is terms[1] is terms[2]


def test_kept_sinusoids_are_right_for_every_length_and_precision_that_follows():
    encoding = build("transformer_xl", stack())
    assert set(encoding.state_dict()) == {"content_query", "position_query"}
    for queries, keys in [(3, 3), (70, 70), (1, 70), (200, 200), (1, 1), (64, 64)]:
        found = encoding.sinusoids(queries, keys)
        assert torch.equal(found, build("transformer_xl", stack()).sinusoids(queries, keys))
        assert found.shape == (queries + keys - 1, CHANNELS)
        assert float(found[0, 0]) == pytest.approx(float(torch.tensor(keys - 1.0).sin()), abs=1e-6)
    before = encoding.sinusoids(4, 4)
    assert encoding.sinusoids(4, 4).data_ptr() == before.data_ptr()
    assert copy.deepcopy(encoding).half().sinusoids(4, 4).dtype == torch.float32
    double = encoding.double().sinusoids(4, 4)
    assert double.dtype == torch.float64
    torch.testing.assert_close(before.double(), double, rtol=0, atol=1e-6)


def test_what_was_made_in_inference_mode_can_be_trained_with():
    encoding, weight = build("transformer_xl", stack()), torch.ones(CHANNELS, 8).requires_grad_()
    with torch.inference_mode():
        encoding(line(5))
    (whole(encoding, 5)[0].distances @ weight).sum().backward()
    assert bool(weight.grad.any())


def test_a_step_of_tupe_projects_the_newest_position_alone():
    encoding, projected, cache = build("tupe", stack(decoder=True)).eval(), [], {}
    encoding.key.register_forward_hook(lambda *call: projected.append(len(call[-1])))
    bias = whole(encoding, 9)[0].bias
    for length in (4, 5, 6, 9):
        found = encoding(line(length, cache=cache)).attention[0].bias
        torch.testing.assert_close(found[:, 0], bias[:, length - 1, :length])
    # a prefix that was not followed step by step is projected anew
    assert projected == [9, 4, 1, 1, 9]


@pytest.mark.parametrize("name, what", [("rotary", "rotation"), ("alibi", "bias")])
def test_without_parameters_precision_is_single_at_least_and_exact(name, what):
    encoding = build(name, StackConfig(12 * 14, heads=12))
    assert encoding.state_dict() == {}
    exact, double, low = (
        getattr(whole(encoding.to(dtype), 700)[0], what)
        for dtype in (torch.float32, torch.float64, torch.bfloat16)
    )
    assert double.dtype == torch.float64
    assert low.dtype == torch.float32 and torch.equal(low, exact)


@pytest.mark.parametrize("chosen, std", [(None, 64**-0.5), (0.02, 0.02)])
def test_segment_embeddings_join_what_is_added_at_the_input(chosen, std):
    torch.manual_seed(0)
    module, numbers = (
        SegmentEmbeddings(StackConfig(64, table_std=chosen), 500),
        torch.tensor([[0, 7, 7]]),
    )
    assert float(module.weight.detach().std()) == pytest.approx(std, rel=0.02)
    alone = module(Terms(), numbers).input
    assert torch.equal(alone[0], module.weight[[0, 7, 7]])
    position = torch.randn(1, 3, 64)
    assert torch.equal(module(Terms(input=position), numbers).input, position + alone)


@pytest.mark.parametrize("segments", [0, -1, 1.5])
def test_segments_must_be_some(segments):
    for kind in (SegmentScalars, SegmentEmbeddings):
        with pytest.raises(ValueError, match=f"segments.*{segments}"):
            kind(stack(), segments)
    with pytest.raises(ValueError, match="sharing"):
        SegmentScalars(stack(), 2, sharing="some")


@pytest.mark.parametrize("queries, keys", [(3, 5), (140, 150)])
def test_scalars_lie_along_diagonals_and_get_their_gradients(queries, keys):
    """On a CPU, gradients of 64 rows are summed at a time."""
    generator = torch.Generator().manual_seed(1)
    scalars = torch.randn(2, queries + keys - 1, generator=generator).double().requires_grad_()
    weights = torch.randn(2, queries, keys, generator=generator).double()
    expected = scalars[:, torch.arange(keys) - torch.arange(queries)[:, None] + queries - 1]
    found = to_toeplitz(scalars, queries, keys)
    assert torch.equal(found, expected)
    one, other = (torch.autograd.grad((x * weights).sum(), scalars)[0] for x in (found, expected))
    torch.testing.assert_close(one, other)
