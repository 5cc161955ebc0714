"""Slow references, straight from the formulas, and batches that several test files need."""

import math

import pytest
import torch

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings import Positions

PADDING = 1


def sinusoid_row(number, channels):
    """One embedding in double precision: all sines, then all cosines, then 0 if one is left.

    Vaswani et al.'s sinusoids in fairseq's layout: the angular speeds fall geometrically from 1
    to exactly 1/10000 over the sines.
    """
    pairs = channels // 2
    row = [0.0] * channels
    for m in range(pairs):
        speed = 10000.0 ** (-m / (pairs - 1))
        row[m] = math.sin(number * speed)
        row[pairs + m] = math.cos(number * speed)
    return row


@pytest.fixture(scope="session")
def sinusoid():
    """Function from numbers ``(batch, length)`` to ``(batch, length, channels)`` in float64."""

    def embed(numbers, channels):
        rows = [[sinusoid_row(n, channels) for n in sentence] for sentence in numbers.tolist()]
        return torch.tensor(rows, dtype=torch.float64)

    return embed


@pytest.fixture(scope="session")
def batch():
    """Function from lengths and a side to tokens ``(batch, length)`` with padding on that side."""

    def make(lengths, left=False):
        tokens = torch.full((len(lengths), max(lengths)), PADDING)
        for row, length in zip(tokens, lengths):
            start = len(row) - length if left else 0
            row[start : start + length] = torch.arange(5, 5 + length)
        return tokens

    return make


@pytest.fixture(scope="session")
def place():
    """Function from tokens ``(batch, length)`` to their :class:`Positions`."""

    def positions(tokens, **others):
        return Positions.of_tokens(tokens, PADDING, **others)

    return positions


@pytest.fixture(scope="session")
def effect():
    """Function that sends hidden states ``(batch, length, channels)`` through all terms.

    Where there are attention terms, a self-attention with fixed weights uses them.
    """
    modules = {}

    def attend(stack, layer, hidden, terms, positions):
        key = (stack.channels, stack.heads, layer)
        if key not in modules:
            with torch.random.fork_rng():
                torch.manual_seed(8)
                attention = SelfAttention(stack.channels, stack.heads)
            modules[key] = attention.eval().requires_grad_(False)
        causal = stack.decoder and positions.cache is None
        return modules[key](hidden, terms, positions.key_padding_mask, causal, positions.cache)[0]

    def apply(encoding, positions, hidden):
        terms = encoding(positions)
        if terms.input is not None:
            hidden = hidden + terms.input
        hidden = hidden.transpose(0, 1)
        for layer in range(encoding.stack.layers):
            if layer in terms.attention:
                ours = terms.attention[layer]
                hidden = hidden + attend(encoding.stack, layer, hidden, ours, positions)
            if layer in terms.after_layer:
                hidden = terms.after_layer[layer](hidden)
        return hidden.transpose(0, 1)

    return apply


@pytest.fixture
def on_rank(monkeypatch):
    """Function that makes this process pass for one of several data-parallel workers."""

    def pretend(rank):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda *group: rank)

    return pretend
