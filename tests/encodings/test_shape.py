"""SHAPE against PE(i + k) of its section 2.3, and the distribution of k."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build


def shape(decoder=False, **options):
    return build("shape", Stack(12, decoder), **options)


def numbers(sequences, length):
    return torch.arange(length, dtype=torch.float64).repeat(sequences, 1)


def offsets_seen(encoding, positions, sinusoid, largest):
    """For every sequence, all k in 0…largest that would explain the whole of it."""
    terms = encoding(positions).input
    candidates = [sinusoid(2 + k + positions.numbers[:1], 12) for k in range(largest + 1)]
    return [
        [k for k, term in enumerate(candidates) if (found - term[0]).abs().max() < 1e-9]
        for found in terms
    ]


def test_tokens_are_encoded_as_if_they_stood_k_further(sinusoid, monkeypatch):
    encoding = shape()
    offsets = torch.tensor([[0.0], [1.0], [137.0], [500.0]], dtype=torch.float64)
    monkeypatch.setattr(encoding, "draw", lambda numbers: offsets)
    positions = Positions(numbers(4, 9))
    found = encoding(positions).input
    for b in range(4):
        for i in range(9):
            k = int(offsets[b])
            expected = sinusoid(torch.tensor([[2 + i + k]]), 12)[0, 0]
            torch.testing.assert_close(found[b, i], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", [False, True])
def test_a_sequence_has_one_offset_and_sequences_have_their_own(sinusoid, decoder):
    torch.manual_seed(0)
    found = offsets_seen(shape(decoder, max_shift=30), Positions(numbers(64, 5)), sinusoid, 30)
    assert all(len(offsets) == 1 for offsets in found)
    assert len({offsets[0] for offsets in found}) > 20


def test_padding_does_not_split_a_sequence(sinusoid, batch, place):
    """BOS and the token after left padding are shifted like every other token."""
    torch.manual_seed(0)
    positions = place(batch([6, 2, 4], left=True))
    terms = shape(max_shift=50)(positions).input.double()
    for b, length in enumerate([6, 2, 4]):
        real = terms[b, 6 - length :]
        matches = [
            k
            for k in range(51)
            if (real - sinusoid(2 + k + numbers(1, length), 12)[0]).abs().max() < 1e-4
        ]
        assert len(matches) == 1


def test_every_offset_from_0_to_k_is_equally_likely_both_included():
    torch.manual_seed(0)
    drawn = shape(max_shift=5).draw(torch.zeros(60_000, 1))
    assert drawn.shape == (60_000, 1)
    counts = torch.bincount(drawn.flatten().long(), minlength=6).double()
    assert len(counts) == 6
    assert float(((counts - 10_000) ** 2 / 10_000).sum()) < 20.5, "chi-square, 5 d. o. f., 0.1 %"


def test_the_default_draws_from_0_to_500():
    torch.manual_seed(1)
    drawn = shape().draw(torch.zeros(100_200, 1)).flatten()
    assert torch.equal(drawn, drawn.round())
    counts = torch.bincount(drawn.long(), minlength=501).double()
    assert len(counts) == 501
    chi_square = float(((counts - 200) ** 2 / 200).sum())
    assert 374 < chi_square < 626, "500 ± 4 standard deviations"
    assert abs(float(drawn.mean()) - 250) < 2


def test_every_forward_pass_draws_anew(sinusoid):
    torch.manual_seed(0)
    encoding, positions = shape(max_shift=40), Positions(numbers(32, 3))
    first = offsets_seen(encoding, positions, sinusoid, 40)
    second = offsets_seen(encoding, positions, sinusoid, 40)
    assert sum(a != b for a, b in zip(first, second)) > 24


def test_source_and_target_are_shifted_independently():
    torch.manual_seed(0)
    tokens = torch.zeros(20_000, 1)
    source, target = shape(max_shift=9).draw(tokens), shape(True, max_shift=9).draw(tokens)
    pairs = torch.bincount((10 * source + target).flatten().long(), minlength=100).double()
    chi_square = float(((pairs - 200) ** 2 / 200).sum())
    assert chi_square < 148.2, "chi-square, 99 d. o. f., 0.1 %"


def test_nothing_is_handed_to_the_other_side():
    assert shape()(Positions(numbers(2, 3))).shared == []


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("offset", [0, 1, 500])
def test_evaluation_has_one_constant_offset(sinusoid, decoder, offset):
    encoding = shape(decoder, max_shift=500, eval_shift=offset).eval()
    positions = Positions(numbers(3, 7))
    expected = sinusoid(2 + offset + positions.numbers, 12)
    torch.testing.assert_close(encoding(positions).input, expected, rtol=0, atol=1e-12)


def test_in_evaluation_the_paper_does_not_shift():
    positions = Positions(numbers(3, 7))
    plain = build("sinusoidal", Stack(12)).eval()(positions).input
    assert torch.equal(shape().eval()(positions).input, plain)


@pytest.mark.parametrize("training", [False, True])
def test_without_shift_it_is_sinusoidal(batch, place, training):
    positions = place(batch([9, 4], left=True))
    plain = build("sinusoidal", Stack(12)).train(training)(positions).input
    assert torch.equal(shape(max_shift=0).train(training)(positions).input, plain)


def test_alpha_stretches_before_the_shift(sinusoid, monkeypatch):
    encoding = shape(source_scale=1.25)
    monkeypatch.setattr(encoding, "draw", lambda numbers: torch.tensor([[3.0]]).double())
    found = encoding(Positions(numbers(1, 6))).input
    torch.testing.assert_close(found, sinusoid(5 + 1.25 * numbers(1, 6), 12), rtol=0, atol=1e-12)
