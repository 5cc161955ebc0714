"""Sinusoids against loops over positions and channels, and against stock fairseq."""

import math

import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding

from fairseq_posenc.encodings import Positions, StackConfig, build
from fairseq_posenc.encodings.sinusoidal import sinusoid as fast

CHANNELS = [4, 5, 6, 9, 16, 33]
NUMBERS = [[0, 1, 2, 3, 100, 1024], [-1, -7.25, 0.5, 3.1415926, 999.75, -1000]]


@pytest.mark.parametrize("channels", CHANNELS)
def test_double_precision_equals_the_loops(sinusoid, channels):
    numbers = torch.tensor(NUMBERS, dtype=torch.float64)
    found = fast(numbers, channels)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, sinusoid(numbers, channels), rtol=0, atol=1e-12)


@pytest.mark.parametrize("channels", CHANNELS + [64, 512])
def test_single_precision_equals_the_loops_but_for_the_rounding_of_phases(sinusoid, channels):
    """Frequencies are off by up to 22 units in the last place, sines by 2."""
    numbers = torch.tensor([list(range(0, 1100, 50)) + [0.1, 17.3, -5.7, 1023.4, -1023.4, 2.5]])
    found = fast(numbers, channels)
    assert found.dtype == torch.float32
    error = (found.double() - sinusoid(numbers, channels)).abs()
    limit = 2.0**-24 * (22 * numbers.abs().double() + 2)
    assert bool((error <= limit.unsqueeze(-1)).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_positions_in_half_precision_are_embedded_in_single_precision(dtype):
    numbers = torch.arange(256)
    found = fast(numbers.to(dtype), 64)
    assert found.dtype == torch.float32
    assert torch.equal(found, fast(numbers.float(), 64))


@pytest.mark.parametrize("channels", [0, 1, 2, 3])
def test_too_few_channels_for_two_sinusoids_are_refused(channels):
    with pytest.raises(ValueError, match="4"):
        build("sinusoidal", StackConfig(channels=channels))


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_terms_of_real_tokens_are_those_of_stock_fairseq(batch, place, decoder, left):
    tokens = batch([40, 7, 23], left)
    stock = SinusoidalPositionalEmbedding(16, padding_idx=1)(tokens)
    found = build("sinusoidal", StackConfig(16, decoder))(place(tokens)).input
    real = tokens.ne(1)
    torch.testing.assert_close(found[real], stock[real], rtol=0, atol=1e-6)


@pytest.mark.parametrize("first", [1, 2, 5])
def test_the_first_token_has_the_first_index(sinusoid, first):
    encoding = build("sinusoidal", StackConfig(8, first_index=first))
    numbers = torch.arange(7, dtype=torch.float64).unsqueeze(0)
    found = encoding(Positions(numbers)).input
    torch.testing.assert_close(found, sinusoid(first + numbers, 8), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["sinusoidal", "shape", "cape"])
@pytest.mark.parametrize("decoder", [False, True])
def test_alpha_stretches_the_source_and_leaves_its_first_token(sinusoid, name, decoder):
    """CAPE, section 5.3 and D.1: source positions times α, aligned at the first position."""
    alpha = 1.1632
    encoding = build(name, StackConfig(8, decoder), source_scale=alpha).eval()
    numbers = torch.arange(40, dtype=torch.float64).unsqueeze(0)
    expected = sinusoid(2 + (numbers if decoder else alpha * numbers), 8)
    found = encoding(Positions(numbers)).input
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert math.isclose(float(found[0, 0, 0]), math.sin(2))


def test_no_position_has_the_index_of_padding():
    with pytest.raises(ValueError, match="at least 1"):
        StackConfig(8, first_index=0)


@pytest.mark.parametrize("name", ["sinusoidal", "shape", "cape"])
def test_small_token_embeddings_get_small_sinusoids(name):
    positions = Positions.of_tokens(torch.full((1, 9), 7), 1)
    whole, small = (
        build(name, StackConfig(16, token_std=std)).eval()(positions).input for std in (1.0, 0.02)
    )
    assert torch.allclose(small, 0.02 * whole) and float(whole.abs().max()) > 0.9
