"""Randomized positions: which subsets are drawn, and that the inner encoding gets them."""

import itertools

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.randomized import INNER

BY_DISTANCE = ["alibi", "t5", "kerple"]
MOST = 40


def randomized(inner="sinusoidal", decoder=False, most=MOST):
    stack = Stack(8, decoder, layers=2, heads=2, max_length=10)
    return build("randomized", stack, inner=inner, drawn_below=most)


def test_every_subset_is_equally_likely_and_rises():
    torch.manual_seed(0)
    drawn = randomized(most=5).draw(torch.full((20_000,), 3))
    assert bool((drawn[:, 3:] == 5).all()), "behind the sequence"
    seen = [tuple(row) for row in drawn[:, :3].tolist()]
    subsets = list(itertools.combinations(range(5), 3))
    assert set(seen) == set(subsets)
    counts = torch.tensor([seen.count(subset) for subset in subsets]).double()
    assert float(((counts - 2000) ** 2 / 2000).sum()) < 27.9, "9 d. o. f., 0.1 %"


@pytest.mark.parametrize("left", [False, True])
def test_each_sequence_has_sinusoids_of_its_own_draw(batch, place, sinusoid, left, monkeypatch):
    encoding, tokens, drawn = randomized(), batch([4, 2, 4], left), []
    draw = encoding.draw
    monkeypatch.setattr(encoding, "draw", lambda lengths: drawn.append(draw(lengths)) or drawn[-1])
    torch.manual_seed(1)
    found = encoding(place(tokens)).input.double()
    [rows] = drawn
    assert rows[0, :4].tolist() != rows[2, :4].tolist()
    for row, real, own in zip(found, tokens.ne(1), rows):
        numbers = own[own < MOST].float().unsqueeze(0)
        assert torch.allclose(row[real], sinusoid(2 + numbers, 8)[0], atol=1e-4)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("inner", BY_DISTANCE)
def test_biases_are_those_of_the_drawn_distances(batch, place, inner, decoder, monkeypatch):
    encoding = randomized(inner, decoder)
    for parameter in encoding.parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(0))
    row = torch.tensor([[2, 3, 11, 30, 39] + [MOST] * 35])
    monkeypatch.setattr(encoding, "draw", lambda lengths: row)
    terms = encoding(place(batch([5, 3])))
    # of a sequence of all positions, the rows and columns of those that were drawn
    chosen, whole = row[0, :5], encoding.inner(Positions.of_length(MOST))
    for layer in range(2):
        expected = whole.attention[layer].bias[:, chosen][..., chosen]
        assert torch.equal(terms.attention[layer].bias, expected)
        if encoding.training and list(encoding.parameters()):
            expected.square().sum().backward(retain_graph=True)
            slopes = [p.grad.clone() for p in encoding.parameters()]
            encoding.zero_grad()
            terms.attention[layer].bias.square().sum().backward(retain_graph=True)
            for one, other in zip(encoding.parameters(), slopes):
                torch.testing.assert_close(one.grad, other)
            encoding.zero_grad()


def test_rotations_are_those_of_the_drawn_positions(batch, place, monkeypatch):
    encoding = randomized("rotary")
    row = torch.tensor([[2, 3, 11, 30, 39] + [MOST] * 35])
    monkeypatch.setattr(encoding, "draw", lambda lengths: row)
    whole = encoding.inner(Positions.of_length(MOST)).attention[0].rotation
    for left in (False, True):
        found = encoding(place(batch([5, 3], left))).attention[0].rotation
        assert torch.equal(found, whole[:, row[0, :5]])


@pytest.mark.parametrize("inner", INNER)
def test_evaluation_and_what_is_longer_than_m_are_the_inner_encodings(batch, place, effect, inner):
    torch.manual_seed(2)
    for encoding, length in ((randomized(inner).eval(), 6), (randomized(inner, most=5), 6)):
        positions, hidden = place(batch([length, 3])), torch.randn(2, length, 8)
        found = effect(encoding, positions, hidden)
        assert torch.equal(found, effect(encoding.inner, positions, hidden))


@pytest.mark.parametrize("inner", INNER)
def test_source_and_target_draw_for_themselves(batch, place, inner):
    assert randomized(inner)(place(batch([4, 3]))).shared == []
