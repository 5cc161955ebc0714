"""The convolutional encoding against a triple loop in double precision, whole and stepwise."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build

CHANNELS = 3
EXACT = {"rtol": 0, "atol": 1e-12}


def slow_generator(hidden, real, weight, bias, causal):
    """Algorithm 1 of the PEG paper in one dimension.

    Args:
        hidden: ``(length, batch, channels)``.
        real: ``(batch, length)`` bool; elsewhere is padding, which counts as zero.
        weight: ``(channels, taps)``, a filter for each channel.
        bias: ``(channels,)``.
        causal: whether the last tap is on the token itself, instead of the middle one.
    """
    length, batch, channels = hidden.shape
    taps = weight.shape[1]
    own = taps - 1 if causal else taps // 2
    result = hidden.clone()
    for b in range(batch):
        for t in range(length):
            for c in range(channels):
                total = float(bias[c])
                for tap in range(taps):
                    s = t + tap - own
                    if 0 <= s < length and real[b, s]:
                        total += float(weight[c, tap]) * float(hidden[s, b, c])
                result[t, b, c] += total
    return result


def conditional(decoder=False, taps=3):
    torch.manual_seed(0)
    return build("conditional", StackConfig(CHANNELS, decoder), kernel_size=taps).double()


def reference(encoding, hidden, real):
    weight, bias = encoding.conv.weight.detach().squeeze(1), encoding.conv.bias.detach()
    return slow_generator(hidden, real, weight, bias, encoding.stack.decoder)


def some_hidden(length, sequences):
    torch.manual_seed(1)
    return torch.randn(length, sequences, CHANNELS, dtype=torch.float64)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("taps", [3, 5, 9])
@pytest.mark.parametrize("left", [False, True])
def test_the_first_layers_output_equals_the_loops(batch, place, decoder, taps, left):
    encoding = conditional(decoder, taps)
    tokens, hidden = batch([7, 1, 4], left), some_hidden(7, 3)
    terms = encoding(place(tokens))
    assert terms.input is None
    assert list(terms.after_layer) == [0]
    real = tokens.ne(1)
    expected = reference(encoding, hidden, real).transpose(0, 1)
    found = terms.after_layer[0](hidden).transpose(0, 1)
    torch.testing.assert_close(found[real], expected[real], **EXACT)


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("left", [False, True])
def test_the_class_token_passes_by_as_in_algorithm_1(batch, place, taps, left):
    """It is split off before the convolution, and put back."""
    encoding = build("conditional", StackConfig(CHANNELS, has_cls=True), kernel_size=taps).double()
    tokens, hidden = batch([7, 4], left), some_hidden(7, 2)
    found = encoding(place(tokens)).after_layer[0](hidden).transpose(0, 1)
    for row, real in enumerate(tokens.ne(1)):
        cls, *features = hidden[real, row]
        features = torch.stack(features).unsqueeze(1)
        whole = torch.ones(1, len(features), dtype=torch.bool)
        expected = torch.cat([cls.unsqueeze(0), reference(encoding, features, whole)[:, 0]])
        torch.testing.assert_close(found[row, real], expected, **EXACT)
    like_any = build("conditional", StackConfig(CHANNELS, has_cls=True), convolve_cls=True).double()
    expected = reference(like_any, hidden, tokens.ne(1)).transpose(0, 1)[tokens.ne(1)]
    found = like_any(place(tokens)).after_layer[0](hidden).transpose(0, 1)[tokens.ne(1)]
    torch.testing.assert_close(found, expected, **EXACT)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), 1e300])
def test_what_stands_at_padding_never_leaks(batch, place, decoder, left, rubbish):
    encoding, hidden = conditional(decoder, 5), some_hidden(7, 2)
    tokens = batch([7, 3], left)
    real = tokens.ne(1)
    dirty = hidden.masked_fill(~real.T.unsqueeze(-1), rubbish).requires_grad_()
    layer = encoding(place(tokens)).after_layer[0]
    found = layer(dirty).transpose(0, 1)[real]
    assert torch.equal(found, layer(hidden).transpose(0, 1)[real])
    found.sum().backward()
    gradients = [dirty.grad.transpose(0, 1)[real], encoding.conv.weight.grad]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def step(encoding, place, tokens, hidden, cache):
    """Decode the newest of the tokens, whose hidden state is ``(batch, channels)``."""
    return encoding(place(tokens, cache=cache)).after_layer[0](hidden.unsqueeze(0))[0]


@pytest.mark.parametrize("taps", [3, 7])
@pytest.mark.parametrize("lengths", [[9, 9], [9, 4]])
def test_step_by_step_equals_the_whole(batch, place, taps, lengths):
    encoding, hidden, cache = conditional(True, taps), some_hidden(9, 2), {}
    tokens = batch(lengths, left=True)
    real = tokens.ne(1)
    hidden = hidden.masked_fill(~real.T.unsqueeze(-1), 1e300)
    expected = reference(encoding, hidden, real)
    for t in range(9):
        found = step(encoding, place, tokens[:, : t + 1], hidden[t], cache)
        torch.testing.assert_close(found[real[:, t]], expected[t][real[:, t]], **EXACT)


def test_two_models_of_an_ensemble_can_share_a_cache(place):
    one, other, hidden = conditional(True, 3), conditional(True, 5), some_hidden(6, 2)
    tokens, cache = torch.full((2, 6), 7), {}
    for t in range(6):
        for encoding, scale in ((one, 1.0), (other, -2.0)):
            found = step(encoding, place, tokens[:, : t + 1], scale * hidden[t], cache)
            expected = reference(encoding, scale * hidden, tokens.ne(1))[t]
            torch.testing.assert_close(found, expected, **EXACT)


def test_positions_need_no_numbers_of_their_own():
    """Where a token stands is read off the neighbours alone (section 3.2)."""
    encoding, hidden = conditional(), some_hidden(5, 2)
    far = Positions(torch.full((2, 5), 1e4))
    near = Positions(torch.zeros(2, 5))
    assert torch.equal(encoding(far).after_layer[0](hidden), encoding(near).after_layer[0](hidden))
