"""Uniform SHAPE: where sequences may stand, how often a position is seen, what a pair shares."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build

MOST = 64


def unifpe(decoder=False, **options):
    return build("unifpe", StackConfig(8, decoder, max_length=MOST), **options)


def offsets_in_words(length):
    """All offsets of a sequence, as often as they are drawn, by the paper's two draws."""
    if 2 * length >= MOST:
        return [0]
    windows, rest = MOST // length, MOST % length
    found = []
    for gap in range(windows):
        starts = [k * length for k in range(windows)]
        found += starts[:gap] + [start + rest for start in starts[gap:]]
    return found


@pytest.mark.parametrize("length", [1, 5, 20, 31, 32, 64, 70])
def test_offsets_are_drawn_as_the_paper_draws_them(length):
    torch.manual_seed(0)
    expected, drawn = (
        offsets_in_words(length),
        unifpe().draw(torch.full((40_000, 1), float(length))),
    )
    assert set(drawn.flatten().tolist()) == set(expected)
    for offset in set(expected):
        share = expected.count(offset) / len(expected)
        error = (share * (1 - share) / 40_000) ** 0.5
        assert float((drawn == offset).float().mean()) == pytest.approx(share, abs=4.5 * error)


def test_positions_are_seen_more_evenly_than_with_shape():
    """Of 64 positions and 20 tokens 0.21 to 0.34, as in the authors' code; SHAPE 0.02 to 0.45."""
    torch.manual_seed(0)
    seen = torch.zeros(MOST)
    for offset in unifpe().draw(torch.full((40_000, 1), 20.0)).flatten().long().tolist():
        seen[offset : offset + 20] += 1 / 40_000
    assert float(seen.min()) > 0.20 and float(seen.max()) < 0.355


@pytest.mark.parametrize("decoder", [False, True])
def test_a_sequence_is_shifted_by_its_own_length_whatever_the_padding(sinusoid, batch, decoder):
    torch.manual_seed(0)
    lengths = [6, 20, 3] * 30
    for left in (False, True):
        tokens = batch(lengths, left)
        positions = Positions.of_tokens(tokens, 1)
        found = unifpe(decoder)(positions)
        shifted = positions.numbers + found.shared[0]
        assert torch.allclose(found.input.double(), sinusoid(2 + shifted, 8), atol=1e-4)
        for length, (offset,) in zip(lengths, found.shared[0].tolist()):
            assert offset in offsets_in_words(length)
        assert len(set(found.shared[0].flatten().tolist())) > 20


def test_a_pair_shares_its_offset_and_the_target_stays_below_m():
    torch.manual_seed(0)
    source, target = Positions(torch.arange(5.0).repeat(500, 1)), torch.arange(12.0).repeat(500, 1)
    offsets = unifpe()(source).shared[0]
    beside = unifpe(True)(Positions(target, shared=[offsets])).shared[0]
    assert torch.equal(beside, offsets.clamp(max=MOST - 12)) and bool((offsets > MOST - 12).any())
    apart = {"separate_draws": True}
    assert unifpe(**apart)(source).shared == unifpe(True, **apart)(source).shared == []


def test_evaluation_is_that_of_sinusoids(sinusoid):
    found = unifpe().eval()(Positions.of_length(90)).input
    assert torch.equal(found, build("sinusoidal", StackConfig(8))(Positions.of_length(90)).input)


def test_m_is_the_longest_sequence_of_the_training_if_not_told():
    assert build("unifpe", StackConfig(8, max_length=77)).drawn_below == 77
    assert unifpe(drawn_below=33).drawn_below == 33
