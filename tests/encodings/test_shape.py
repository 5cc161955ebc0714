"""SHAPE against PE(i + k) of its section 2.3, and the distribution of k."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build


def shape(decoder=False, **options):
    return build("shape", StackConfig(12, decoder), **options)


def numbers(sequences, length):
    return torch.arange(length, dtype=torch.float64).repeat(sequences, 1)


def chi_square(counts, expected):
    return float(((counts.double() - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_a_sequence_has_one_offset_and_sequences_have_their_own(
    sinusoid, batch, place, decoder, left
):
    """BOS and the token after left padding are shifted like every other token, anew each pass."""
    torch.manual_seed(0)
    encoding, lengths = shape(decoder, max_shift=30), [6, 2, 4] * 8
    tokens = batch(lengths, left)
    positions, seen = place(tokens), []
    candidates = [sinusoid(2 + k + numbers(1, 6), 12)[0] for k in range(31)]
    for _ in range(2):
        terms = encoding(positions)
        assert terms.shared == []
        for row, real, length in zip(terms.input.double(), tokens.ne(1), lengths):
            matches = [
                k for k, c in enumerate(candidates) if (row[real] - c[:length]).abs().max() < 1e-4
            ]
            assert len(matches) == 1
            seen += matches
    assert len(set(seen)) > 20
    assert sum(a != b for a, b in zip(seen[:24], seen[24:])) > 18


@pytest.mark.parametrize("most, sequences", [(5, 60_000), (500, 100_200)])
def test_every_offset_from_0_to_k_is_equally_likely_both_included(most, sequences):
    torch.manual_seed(1)
    encoding = shape() if most == 500 else shape(max_shift=most)
    drawn = encoding.draw(torch.zeros(sequences, 1))
    assert drawn.shape == (sequences, 1) and torch.equal(drawn, drawn.round())
    counts = torch.bincount(drawn.flatten().long())
    assert len(counts) == most + 1
    assert abs(chi_square(counts, sequences / (most + 1)) - most) < 4.1 * (2 * most) ** 0.5


def test_source_and_target_are_shifted_independently():
    torch.manual_seed(0)
    tokens = torch.zeros(20_000, 1)
    source, target = shape(max_shift=9).draw(tokens), shape(True, max_shift=9).draw(tokens)
    pairs = torch.bincount((10 * source + target).flatten().long(), minlength=100)
    assert chi_square(pairs, 200) < 148.2, "99 d. o. f., 0.1 %"


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("offset", [0, 1, 500])
def test_evaluation_has_one_constant_offset(sinusoid, decoder, offset):
    encoding = shape(decoder, **({"eval_shift": offset} if offset else {})).eval()
    positions = Positions(numbers(3, 7))
    expected = sinusoid(2 + offset + positions.numbers, 12)
    torch.testing.assert_close(encoding(positions).input, expected, rtol=0, atol=1e-12)


def test_alpha_stretches_before_the_shift(sinusoid, monkeypatch):
    encoding = shape(source_scale=1.25)
    monkeypatch.setattr(encoding, "draw", lambda numbers: torch.tensor([[3.0]]).double())
    found = encoding(Positions(numbers(1, 6))).input
    torch.testing.assert_close(found, sinusoid(5 + 1.25 * numbers(1, 6), 12), rtol=0, atol=1e-12)
