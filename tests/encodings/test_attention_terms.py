"""What is computed once, kept, and shared between layers, and what segments add."""

import copy
import dataclasses

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.base import AttentionTerms, Terms
from fairseq_posenc.encodings.segments import SegmentEmbeddings, SegmentScalars

STACK = Stack(8, max_length=16, layers=3, heads=2)
DECODER = dataclasses.replace(STACK, decoder=True)


def line(length, **others):
    return Positions.of_tokens(torch.full((1, length), 7), 1, **others)


@pytest.mark.parametrize(
    "name, chosen",
    [
        ("t5", {}),
        ("tupe", {}),
        ("rotary", {}),
        ("alibi", {}),
        ("abs_scalar", {"sharing": "layers"}),
        ("rel_scalar", {"sharing": "layers"}),
    ],
)
def test_what_all_layers_share_is_one_object(name, chosen):
    terms = build(name, STACK, **chosen)(line(5)).attention
    assert list(terms) == [0, 1, 2]
    assert terms[0] is terms[1] is terms[2]


@pytest.mark.parametrize("name", ["t5", "abs_scalar", "rel_scalar"])
@pytest.mark.parametrize("sharing, heads", [("none", 2), ("heads", 1)])
def test_layers_that_share_nothing_differ(name, sharing, heads):
    terms = build(name, STACK, sharing=sharing)(line(5)).attention
    assert all(terms[layer].bias.shape == (heads, 5, 5) for layer in range(3))
    assert not torch.equal(terms[0].bias, terms[1].bias)
    assert not torch.equal(terms[1].bias, terms[2].bias)


def test_kept_sinusoids_are_right_for_every_length_that_follows():
    encoding = build("transformer_xl", STACK)
    for queries, keys in [(3, 3), (70, 70), (1, 70), (200, 200), (1, 1), (64, 64)]:
        found = encoding.sinusoids(queries, keys)
        fresh = build("transformer_xl", STACK).sinusoids(queries, keys)
        assert found.shape == (queries + keys - 1, 8)
        assert torch.equal(found, fresh)
        assert torch.equal(found[keys - 1], torch.tensor([0.0, 1.0] * 4))
        assert float(found[0, 0]) == pytest.approx(float(torch.tensor(keys - 1.0).sin()), abs=1e-6)


def test_kept_sinusoids_follow_the_parameters_and_are_not_saved():
    encoding = build("transformer_xl", STACK)
    before = encoding.sinusoids(4, 4)
    assert encoding.sinusoids(4, 4).data_ptr() == before.data_ptr()
    assert set(encoding.state_dict()) == {"content_query", "position_query"}
    assert copy.deepcopy(encoding).half().sinusoids(4, 4).dtype == torch.float32
    double = encoding.double().sinusoids(4, 4)
    assert double.dtype == torch.float64
    torch.testing.assert_close(before.double(), double, rtol=0, atol=1e-6)


def test_what_was_made_in_inference_mode_can_be_trained_with():
    encoding, weight = build("transformer_xl", STACK), torch.ones(8, 8, requires_grad=True)
    with torch.inference_mode():
        encoding(line(5))
    (encoding(line(5)).attention[0].distances @ weight).sum().backward()
    assert bool(weight.grad.any())


def test_a_step_of_tupe_projects_the_newest_position_alone():
    encoding, projected, cache = build("tupe", DECODER).eval(), [], {}
    encoding.key.register_forward_hook(lambda *call: projected.append(len(call[-1])))
    whole = encoding(line(9)).attention[0].bias
    for length in (4, 5, 6, 9):
        found = encoding(line(length, cache=cache)).attention[0].bias
        torch.testing.assert_close(found[:, 0], whole[:, length - 1, :length])
    # a prefix that was not followed step by step is projected anew
    assert projected == [9, 4, 1, 1, 9]


@pytest.mark.parametrize("name", ["rotary", "alibi"])
def test_without_parameters_the_model_decides_on_double_precision(name):
    encoding = build(name, STACK)
    assert encoding.state_dict() == {}
    for dtype, expected in [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ]:
        terms = encoding.to(dtype)(line(300)).attention[0]
        assert (terms.bias if name == "alibi" else terms.rotation).dtype == expected


def test_half_precision_does_not_move_the_angles_and_slopes():
    for name, what in (("rotary", "rotation"), ("alibi", "bias")):
        stack = Stack(12 * 14, heads=12)
        exact = getattr(build(name, stack)(line(700)).attention[0], what)
        low = getattr(build(name, stack).bfloat16()(line(700)).attention[0], what)
        assert torch.equal(low, exact)


@pytest.mark.parametrize(
    "sharing, layers, heads", [("none", 3, 2), ("layers", 1, 2), ("heads", 3, 1)]
)
def test_segments_fill_the_terms_of_their_layer(sharing, layers, heads):
    module = SegmentScalars(STACK, 4, sharing)
    assert module.scalars.shape == (layers, heads, 4, 4)
    numbers = torch.tensor([[0, 0, 1, 3]])
    before = Terms(attention={1: AttentionTerms(bias=torch.zeros(1, 4, 4))})
    terms = module(before, numbers).attention
    assert terms[1].bias is before.attention[1].bias and terms[0].bias is None
    for layer in range(3):
        assert torch.equal(terms[layer].segments.argmax(-1), numbers)
        assert torch.equal(terms[layer].segment_scalars, module.scalars[layer % layers])


def test_segment_embeddings_join_what_is_added_at_the_input():
    module = SegmentEmbeddings(STACK, 2)
    numbers = torch.tensor([[0, 1, 1]])
    alone = module(Terms(), numbers).input
    assert torch.equal(alone[0], module.weight[[0, 1, 1]])
    position = torch.randn(1, 3, STACK.channels)
    assert torch.equal(module(Terms(input=position), numbers).input, position + alone)


@pytest.mark.parametrize("chosen, std", [(None, 64**-0.5), (0.02, 0.02)])
def test_segment_embeddings_are_drawn_as_tables_of_positions_are(chosen, std):
    torch.manual_seed(0)
    drawn = SegmentEmbeddings(Stack(64, table_std=chosen), 500).weight.detach()
    assert float(drawn.std()) == pytest.approx(std, rel=0.02)
    assert SegmentEmbeddings(Stack(64), 1).weight.shape == (1, 64)


@pytest.mark.parametrize("segments", [0, -1, 1.5])
def test_segments_must_be_some(segments):
    with pytest.raises(ValueError, match=f"segments.*{segments}"):
        SegmentScalars(STACK, segments)


@pytest.mark.parametrize("name", ["tupe", "abs_scalar", "rel_scalar"])
def test_tables_need_a_row(name):
    with pytest.raises(ValueError, match="0 "):
        build(name, Stack(8, max_length=0))
