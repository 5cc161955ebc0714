"""CAPE against its appendix A, number by number, the distributions of its draws, and who shares."""

import math

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build
from fairseq_posenc.encodings.cape import Draws

NAN = float("nan")
BOTH = pytest.mark.parametrize("decoder", [False, True])


def paper_positions(positions, normalise, draws=None):
    """Appendix A of the CAPE papers, one number after the other; NaN stands for padding.

    Later version: without augmentation the mean is all that is taken off.
    """
    result = []
    for b, sentence in enumerate(positions.tolist()):
        real = [n for n in sentence if not math.isnan(n)]
        mean = sum(real) / len(real) if normalise else 0.0
        row = []
        for i, n in enumerate(sentence):
            place = n - mean
            if draws is not None:
                shift, own, log_scale = draws
                place = (place + shift[b].item() + own[b, i].item()) * math.exp(log_scale[b].item())
            row.append(place)
        result.append(row)
    return torch.tensor(result, dtype=torch.float64)


def cape(decoder=False, **options):
    return build("cape", StackConfig(12, decoder), **options)


def zeros(sequences, length=1, **others):
    return Positions(torch.zeros(sequences, length), **others)


def distance_from_uniform(values, bound):
    """Kolmogorov-Smirnov distance from U(-bound, bound), times the root of the sample size."""
    ordered = values.double().flatten().sort().values
    share = (ordered + bound) / (2 * bound)
    steps = torch.arange(len(ordered) + 1).double() / len(ordered)
    worst = max(float((steps[1:] - share).max()), float((share - steps[:-1]).max()))
    return worst * math.sqrt(len(ordered))


def correlation(a, b):
    return abs(float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]))


@pytest.mark.parametrize(
    "lengths, left", [([9, 1, 5], False), ([9, 1, 5], True), ([9, 9, 9], False)]
)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("alpha, decoder", [(1.0, False), (1.1632, False), (0.8, True)])
def test_the_term_is_the_sinusoid_of_the_papers_position(
    batch, place, sinusoid, monkeypatch, lengths, left, training, normalise, alpha, decoder
):
    """α is for the source alone, and only the source can subtract the mean."""
    tokens = batch(lengths, left)
    positions, real = place(tokens), tokens.ne(1)
    positions.numbers = positions.numbers.double()
    generator = torch.Generator().manual_seed(5)
    shapes, bounds = [(3, 1), (3, 9), (3, 1)], [50, 0.5, 0.3]
    rand = [torch.rand(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    draws = Draws(*((2 * numbers - 1) * bound for numbers, bound in zip(rand, bounds)))
    normalise = normalise and not decoder
    encoding = cape(decoder, source_scale=alpha, mean_normalize=normalise).train(training)
    monkeypatch.setattr(encoding, "draw", lambda positions: draws)
    scaled = (1.0 if decoder else alpha) * positions.numbers.masked_fill(~real, NAN)
    expected = paper_positions(scaled, normalise, draws if training else None)
    expected = sinusoid(2 + expected.masked_fill(~real, 0), 12)
    found = encoding(positions).input
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-12)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("local_shift, ordered", [(0.5, True), (0.6, False)])
def test_half_a_token_is_the_most_that_keeps_the_order(local_shift, ordered):
    torch.manual_seed(0)
    encoding = cape(global_shift=50.0, local_shift=local_shift, global_scale=2.0)
    numbers = torch.arange(64.0).repeat(500, 1)
    shift, own, log_scale = encoding.draw(Positions(numbers))
    found = (numbers + shift + own) * log_scale.exp()
    assert (float(found.diff(dim=1).min()) >= 0) == ordered


def test_a_decoder_cannot_subtract_a_mean_that_it_does_not_know():
    with pytest.raises(ValueError, match="mean"):
        cape(decoder=True, mean_normalize=True)


@BOTH
def test_draws_are_uniform_within_their_bounds(decoder):
    torch.manual_seed(0)
    options = {"global_shift": 10.0, "local_shift": 0.4, "global_scale": 1.4}
    draws = cape(decoder, **options).draw(zeros(20_000, 3))
    shapes = [(20_000, 1), (20_000, 3), (20_000, 1)]
    for value, shape, bound in zip(draws, shapes, [10.0, 0.4, math.log(1.4)]):
        assert value.shape == shape and value.dtype == torch.float32
        assert float(value.abs().max()) <= bound * (1 + 1e-6)
        assert distance_from_uniform(value, bound) < 1.95, "0.1 % level"


def test_the_defaults_are_the_papers_for_six_layers():
    """D.1, first version: Δmax 5; section 5.3: εmax 0.5; no global scaling."""
    torch.manual_seed(0)
    shift, own, log_scale = cape().draw(zeros(20_000))
    assert distance_from_uniform(shift, 5.0) < 1.95
    assert distance_from_uniform(own, 0.5) < 1.95
    assert not log_scale.any()


def test_draws_of_passes_sequences_and_tokens_are_independent():
    torch.manual_seed(0)
    encoding = cape(global_scale=2.0)
    (shift, own, scale), again = (encoding.draw(zeros(20_000, 2)) for _ in range(2))
    left, right = own.unbind(dim=1)
    pairs = [(left, right), (shift, scale), (shift, left), (scale, left)]
    pairs += [(x[1:], x[:-1]) for x in (left, shift, scale)]
    pairs += zip((shift, own, scale), again)
    for one, other in pairs:
        assert correlation(one, other) < 3.3 / math.sqrt(20_000)


def test_source_and_target_share_the_global_shift_and_scale_but_no_local_shift(monkeypatch):
    """They follow their sentences: beams and shards reorder the encoder's output."""
    torch.manual_seed(0)
    options = {"global_shift": 50.0, "global_scale": 1.5}
    encoder, decoder = cape(**options), cape(decoder=True, **options)
    source = encoder.draw(zeros(2000, 4))
    monkeypatch.setattr(encoder, "draw", lambda positions: source)
    shared = encoder(zeros(2000, 4)).shared
    order = torch.randperm(2000)
    target = decoder.draw(zeros(2000, 4, shared=[s.index_select(0, order) for s in shared]))
    assert torch.equal(target.global_shift, source.global_shift[order])
    assert torch.equal(target.log_scale, source.log_scale[order])
    assert len(source.global_shift.unique()) > 1990
    assert correlation(source.local_shift[order], target.local_shift) < 3.3 / math.sqrt(8000)
    assert distance_from_uniform(target.local_shift, 0.5) < 1.95


def test_in_training_the_target_stands_where_its_source_does():
    """By the draws themselves: without local shifts, target token 5 is source token 4 · α."""
    torch.manual_seed(0)
    options = {"local_shift": 0.0, "global_scale": 1.5, "source_scale": 1.25}
    encoder, decoder = cape(**options), cape(decoder=True, **options)
    numbers = torch.arange(6.0).repeat(8, 1)
    source = encoder(Positions(numbers))
    target = decoder(Positions(numbers, shared=source.shared)).input
    torch.testing.assert_close(target[:, [0, 5]], source.input[:, [0, 4]])
    assert not torch.allclose(target[:, 1], source.input[:, 1])
    alone = decoder(Positions(numbers)).input
    assert bool((alone != target).any(dim=-1).all()), "without an encoder it draws its own"


@BOTH
def test_evaluation_hands_nothing_over_and_heeds_nothing(decoder):
    encoding = cape(decoder, global_scale=1.5).eval()
    shared = cape(global_scale=1.5)(zeros(3, 4)).shared
    terms = encoding(zeros(3, 4, shared=shared))
    assert terms.shared == []
    assert torch.equal(terms.input, encoding(zeros(3, 4)).input)
