"""CAPE's random numbers: their distributions, and who shares them with whom."""

import math

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.cape import augment


def cape(decoder=False, **options):
    return build("cape", Stack(12, decoder), **options)


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
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


@pytest.mark.parametrize("decoder", [False, True])
def test_draws_are_uniform_within_their_bounds(decoder):
    torch.manual_seed(0)
    draws = cape(decoder, global_shift=10.0, local_shift=0.5, global_scale=1.4).draw(
        zeros(20_000, 3)
    )
    shapes = [(20_000, 1), (20_000, 3), (20_000, 1)]
    bounds = [10.0, 0.5, math.log(1.4)]
    values = [draws.global_shift, draws.local_shift, draws.log_scale]
    for value, shape, bound in zip(values, shapes, bounds):
        assert value.shape == shape
        assert value.dtype == torch.float32
        assert float(value.abs().max()) <= bound * (1 + 1e-6)
        assert distance_from_uniform(value, bound) < 1.95, "0.1 % level"


def test_the_defaults_are_the_papers_for_six_layers():
    """D.1, first version: Δmax 5; section 5.3: εmax 0.5; no global scaling."""
    torch.manual_seed(0)
    draws = cape().draw(zeros(20_000))
    assert distance_from_uniform(draws.global_shift, 5.0) < 1.95
    assert distance_from_uniform(draws.local_shift, 0.5) < 1.95
    assert not draws.log_scale.any()


def test_draws_of_sequences_and_tokens_are_independent():
    torch.manual_seed(0)
    draws = cape(global_scale=2.0).draw(zeros(20_000, 2))
    left, right = draws.local_shift.unbind(dim=1)
    shift, scale = draws.global_shift, draws.log_scale
    pairs = [
        (left, right),
        (left[1:], left[:-1]),
        (shift[1:], shift[:-1]),
        (scale[1:], scale[:-1]),
        (shift, scale),
        (shift, left),
        (scale, left),
    ]
    for one, other in pairs:
        assert abs(correlation(one, other)) < 3.3 / math.sqrt(20_000)


def test_every_forward_pass_draws_anew(batch, place):
    torch.manual_seed(0)
    encoding, positions = cape(global_scale=1.1), place(batch([5, 3]))
    first, second = encoding.draw(positions), encoding.draw(positions)
    for name in ("global_shift", "local_shift", "log_scale"):
        assert bool((getattr(first, name) != getattr(second, name)).all())


@pytest.fixture
def pair():
    """What encoder and decoder draw for the same 2000 sentence pairs, and what is handed over."""
    torch.manual_seed(0)
    options = {"global_shift": 50.0, "local_shift": 0.5, "global_scale": 1.5}
    encoder, decoder = cape(**options), cape(decoder=True, **options)
    source_draws, draw = [], encoder.draw

    def remember(positions):
        source_draws.append(draw(positions))
        return source_draws[-1]

    encoder.draw = remember
    shared = encoder(zeros(2000, 4)).shared
    target = decoder.draw(zeros(2000, 4, shared=shared))
    return source_draws[0], target, shared


def test_source_and_target_share_the_global_shift_and_the_global_scale(pair):
    source, target, _ = pair
    assert torch.equal(source.global_shift, target.global_shift)
    assert torch.equal(source.log_scale, target.log_scale)
    assert len(source.global_shift.unique()) > 1990


def test_source_and_target_have_independent_local_shifts(pair):
    source, target, _ = pair
    assert bool((source.local_shift != target.local_shift).any(dim=1).all())
    assert abs(correlation(source.local_shift, target.local_shift)) < 3.3 / math.sqrt(8000)
    assert distance_from_uniform(target.local_shift, 0.5) < 1.95


def test_what_is_shared_has_the_batch_as_first_dimension(pair):
    source, _, shared = pair
    assert shared
    assert all(len(tensor) == 2000 for tensor in shared)


def test_shared_draws_follow_their_sentences(pair):
    """Beams and shards reorder the encoder's output along the batch."""
    source, _, shared = pair
    order = torch.randperm(2000)
    decoder = cape(decoder=True, global_shift=50.0, global_scale=1.5)
    target = decoder.draw(zeros(2000, 6, shared=[s.index_select(0, order) for s in shared]))
    assert torch.equal(target.global_shift, source.global_shift[order])
    assert torch.equal(target.log_scale, source.log_scale[order])


def test_the_decoders_term_uses_what_the_encoder_drew(sinusoid):
    """With local shifts off, target token 0 stands exactly where source token 0 does."""
    torch.manual_seed(0)
    options = {"local_shift": 0.0, "global_scale": 1.5, "source_scale": 1.25}
    encoder, decoder = cape(**options), cape(decoder=True, **options)
    numbers = torch.arange(6.0).repeat(8, 1)
    source = encoder(Positions(numbers))
    target = decoder(Positions(numbers, shared=source.shared)).input
    torch.testing.assert_close(target[:, 0], source.input[:, 0])
    torch.testing.assert_close(target[:, 5], source.input[:, 4], msg="1.25 · 4 = 5")
    assert not torch.allclose(target[:, 1], source.input[:, 1])


def test_a_decoder_without_an_encoder_draws_its_own():
    torch.manual_seed(0)
    decoder = cape(decoder=True, global_scale=1.3)
    first, second = decoder.draw(zeros(50)), decoder.draw(zeros(50))
    assert float(first.global_shift.std()) > 1
    assert bool((first.global_shift != second.global_shift).all())
    assert bool((first.log_scale != second.log_scale).all())


@pytest.mark.parametrize("decoder", [False, True])
def test_evaluation_hands_nothing_over_and_heeds_nothing(decoder):
    encoding = cape(decoder, global_scale=1.5).eval()
    shared = cape(global_scale=1.5)(zeros(3, 4)).shared
    terms = encoding(zeros(3, 4, shared=shared))
    assert terms.shared == []
    assert torch.equal(terms.input, encoding(zeros(3, 4)).input)


def test_the_term_in_training_comes_from_draw(sinusoid):
    """forward() and draw() with one seed agree, so that tests of draw() are tests of forward()."""
    encoding = cape(global_shift=10.0, global_scale=1.4)
    positions = Positions(torch.arange(9.0).repeat(4, 1))
    torch.manual_seed(2)
    found = encoding(positions).input
    torch.manual_seed(2)
    moved = augment(positions.numbers, encoding.draw(positions))
    torch.testing.assert_close(found.double(), sinusoid(2 + moved, 12), rtol=0, atol=1e-5)
