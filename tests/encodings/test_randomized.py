"""Randomized positions: which subsets are drawn, and that the inner encoding gets them."""

import itertools

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build
from fairseq_posenc.encodings.randomized import INNER

BY_DISTANCE = ["alibi", "t5", "kerple"]
MOST = 40


def randomized(inner="sinusoidal", decoder=False, most=MOST):
    stack = StackConfig(8, decoder, layers=2, heads=2, max_length=10)
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


def test_distances_are_drawn_from_one_on_with_equal_chances():
    torch.manual_seed(0)
    drawn = randomized(most=5).draw(torch.full((20_000,), 2), 1)
    assert drawn.shape == (20_000, 4) and bool((drawn[:, 2:] == 5).all())
    seen = [tuple(row) for row in drawn[:, :2].tolist()]
    subsets = list(itertools.combinations(range(1, 5), 2))
    counts = torch.tensor([seen.count(subset) for subset in subsets]).double()
    assert int(counts.sum()) == 20_000
    assert float(((counts - 20_000 / 6) ** 2 / (20_000 / 6)).sum()) < 20.5, "5 d. o. f., 0.1 %"


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("inner", BY_DISTANCE)
def test_drawn_distances_lie_along_the_diagonals(batch, place, inner, decoder, monkeypatch):
    """bias[i, j] is that of the drawn distance |i - j|, before or behind."""
    encoding = randomized(inner, decoder)
    for parameter in encoding.parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(0))
    distances, asked = [0, 3, 11, 30, 39], []
    row = torch.tensor([distances[1:] + [MOST] * 35])
    monkeypatch.setattr(encoding, "draw", lambda *how: asked.append(how) or row)
    terms = encoding(place(batch([5, 3])))
    assert asked == [(torch.tensor([4]), 1)]
    whole = encoding.inner(Positions.of_length(MOST))
    for layer in range(2):
        bias, of_all = terms.attention[layer].bias, whole.attention[layer].bias
        expected = torch.stack([
            torch.stack([of_all[:, max(0, d), max(0, -d)] for d in
                         ((1 if i > j else -1) * distances[abs(i - j)] for j in range(5))], dim=-1)
            for i in range(5)
        ], dim=-2)  # fmt: skip
        assert torch.equal(bias, expected)
        if list(encoding.parameters()):
            expected.square().sum().backward(retain_graph=True)
            slopes = [p.grad.clone() for p in encoding.parameters()]
            encoding.zero_grad()
            bias.square().sum().backward(retain_graph=True)
            for parameter, slope in zip(encoding.parameters(), slopes):
                torch.testing.assert_close(parameter.grad, slope)
            encoding.zero_grad()


def test_rotations_are_those_of_the_drawn_positions(batch, place, monkeypatch):
    encoding = randomized("rotary")
    row, asked = torch.tensor([[2, 3, 11, 30, 39] + [MOST] * 35]), []
    monkeypatch.setattr(encoding, "draw", lambda lengths: asked.append(lengths) or row)
    whole = encoding.inner(Positions.of_length(MOST)).attention[0].rotation
    for left in (False, True):
        found = encoding(place(batch([5, 3], left))).attention[0].rotation
        assert torch.equal(found, whole[:, row[0, :5]])
    assert asked == [torch.tensor([5])] * 2


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
