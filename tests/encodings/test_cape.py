"""CAPE against its appendix A, number by number: what is done with the random numbers."""

import math

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.cape import Draws, augment, centre

NAN = float("nan")


def paper_positions(positions, normalise, augmented, global_shifts, local_shifts, log_scales):
    """Appendix A of the CAPE papers, one number after the other; NaN stands for padding.

    Later version: without augmentation the mean is all that is taken off.
    """
    result = []
    for b, sentence in enumerate(positions):
        real = [n for n in sentence if not math.isnan(n)]
        mean = sum(real) / len(real) if normalise else 0.0
        row = []
        for i, n in enumerate(sentence):
            moved = n - mean
            if augmented:
                moved = (moved + global_shifts[b] + local_shifts[b][i]) * math.exp(log_scales[b])
            row.append(moved)
        result.append(row)
    return torch.tensor(result, dtype=torch.float64)


def cape(decoder=False, **options):
    return build("cape", Stack(12, decoder), **options)


def some_draws(sequences, length, dtype=torch.float64):
    """Random numbers as the encoding may draw them, here from a generator of our own."""
    generator = torch.Generator().manual_seed(5)

    def uniform(bound, *shape):
        return (2 * torch.rand(shape, generator=generator, dtype=dtype) - 1) * bound

    return Draws(
        uniform(50, sequences, 1), uniform(0.5, sequences, length), uniform(0.3, sequences, 1)
    )


def as_lists(draws):
    return (
        draws.global_shift.flatten().tolist(),
        draws.local_shift.tolist(),
        draws.log_scale.flatten().tolist(),
    )


@pytest.fixture(params=[False, True], ids=["right", "left"])
def padded(request, batch, place):
    """Positions of three sentences in float64, the paper's view of them, and what is real."""
    tokens = batch([9, 1, 5], left=request.param)
    positions = place(tokens)
    positions.numbers = positions.numbers.double()
    real = tokens.ne(1)
    return positions, positions.numbers.masked_fill(~real, NAN), real


@pytest.mark.parametrize("dtype, limit", [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_augmented_positions_are_those_of_appendix_a(dtype, limit):
    numbers = torch.arange(1000, dtype=dtype).repeat(4, 1)
    draws = some_draws(4, 1000, dtype)
    expected = paper_positions(numbers.tolist(), False, True, *as_lists(draws))
    found = augment(numbers, draws)
    assert found.dtype == dtype
    size = (numbers + draws.global_shift.abs() + 1).double() * draws.log_scale.double().exp()
    assert bool(((found.double() - expected).abs() <= limit * size).all())


@pytest.mark.parametrize("dtype, limit", [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_the_mean_is_that_of_real_tokens(padded, dtype, limit):
    positions, paper_view, real = padded
    expected = paper_positions(paper_view.tolist(), True, False, [], [], [])
    found = centre(positions.numbers.to(dtype), positions.padding_mask)
    torch.testing.assert_close(found.double()[real], expected[real], rtol=0, atol=9 * limit)


def test_the_mean_of_a_batch_without_padding():
    numbers = torch.arange(6.0).repeat(2, 1)
    assert centre(numbers, None).tolist() == [[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]] * 2


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1.0337, 0.8])
def test_the_term_in_training_is_the_sinusoid_of_the_papers_position(
    padded, sinusoid, monkeypatch, normalise, alpha
):
    positions, paper_view, real = padded
    draws = some_draws(3, 9)
    encoding = cape(source_scale=alpha, mean_normalize=normalise)
    monkeypatch.setattr(encoding, "draw", lambda positions: draws)
    expected = paper_positions((alpha * paper_view).tolist(), normalise, True, *as_lists(draws))
    expected = sinusoid(2 + expected.masked_fill(~real, 0), 12)
    found = encoding(positions).input
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-12)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1.1632])
def test_the_term_in_evaluation_is_that_of_plain_positions(padded, sinusoid, normalise, alpha):
    positions, paper_view, real = padded
    encoding = cape(global_scale=2.0, source_scale=alpha, mean_normalize=normalise).eval()
    expected = paper_positions((alpha * paper_view).tolist(), normalise, False, [], [], [])
    expected = sinusoid(2 + expected.masked_fill(~real, 0), 12)
    found = encoding(positions).input
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-12)


def test_alpha_is_for_the_source_alone(sinusoid, monkeypatch):
    draws = some_draws(2, 7)
    encoding = cape(decoder=True, source_scale=1.1632)
    monkeypatch.setattr(encoding, "draw", lambda positions: draws)
    numbers = torch.arange(7, dtype=torch.float64).repeat(2, 1)
    expected = paper_positions(numbers.tolist(), False, True, *as_lists(draws))
    found = encoding(Positions(numbers)).input
    torch.testing.assert_close(found, sinusoid(2 + expected, 12), rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_without_augmentation_it_is_sinusoidal(batch, place, decoder, training):
    positions = place(batch([9, 4], left=True))
    still = cape(decoder, global_shift=0.0, local_shift=0.0, global_scale=1.0).train(training)
    plain = build("sinusoidal", Stack(12, decoder)).eval()
    assert torch.equal(still(positions).input, plain(positions).input)


def test_positions_shifted_by_less_than_half_a_token_stay_in_order():
    torch.manual_seed(0)
    encoding = cape(global_shift=50.0, local_shift=0.5, global_scale=2.0)
    numbers = torch.arange(64.0).repeat(500, 1)
    found = augment(numbers, encoding.draw(Positions(numbers)))
    assert float(found.diff(dim=1).min()) >= 0


def test_half_a_token_is_the_most_that_keeps_the_order():
    torch.manual_seed(0)
    encoding = cape(local_shift=0.6)
    numbers = torch.arange(64.0).repeat(500, 1)
    found = augment(numbers, encoding.draw(Positions(numbers)))
    assert float(found.diff(dim=1).min()) < 0


def test_a_decoder_cannot_subtract_a_mean_that_it_does_not_know():
    with pytest.raises(ValueError, match="mean"):
        cape(decoder=True, mean_normalize=True)
