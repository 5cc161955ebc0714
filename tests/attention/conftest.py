"""Random encodings and inputs of heads, and what a layer makes of an encoding's terms."""

import math
from dataclasses import dataclass, fields

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.plain import CoreTerms, attend
from fairseq_posenc.encodings import Stack, build

PADDING = 1


@dataclass
class Inputs:
    """What the heads of one layer get; ``queries``, ``keys``, ``values``: ``(B, H, T, d)``."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    key_weight: Tensor
    padding: Tensor
    decoder: bool

    def to(self, dtype):
        """Return leaves of a new type with the same values."""
        copies = [t.detach().to(dtype).requires_grad_() for t in self.leaves()]
        return Inputs(*copies, self.padding, self.decoder)

    def leaves(self):
        return [self.queries, self.keys, self.values, self.key_weight]


def rotated(x, rotation):
    if rotation is None:
        return x
    turned = torch.empty_like(x)
    cosine, sine = rotation
    turned[..., 0::2] = x[..., 0::2] * cosine - x[..., 1::2] * sine
    turned[..., 1::2] = x[..., 0::2] * sine + x[..., 1::2] * cosine
    return turned


def core_terms(terms, key_weight, heads):
    """What the layer makes of an encoding's terms for the core: keys of the distances."""
    channels = key_weight.shape[0]
    given = {f.name: getattr(terms, f.name, None) for f in fields(CoreTerms)}
    if given["scale"] is None:
        given["scale"] = 1 / math.sqrt(channels // heads)
    if terms.distances is not None:
        projected = terms.distances @ key_weight.t()
        given["distance_keys"] = projected.view(-1, heads, channels // heads).transpose(0, 1)
    return CoreTerms(**given)


@pytest.fixture(scope="session")
def random_encoding():
    """Function that builds an encoding with random parameters, in evaluation mode."""

    def make(name, options=None, **stack):
        stack = {"channels": 8, "heads": 2, "layers": 2, "max_length": 4, **stack}
        encoding = build(name, Stack(**stack), **(options or {})).eval()
        generator = torch.Generator().manual_seed(2)
        for parameter in encoding.parameters():
            parameter.data.normal_(std=0.5, generator=generator)
        return encoding

    return make


@pytest.fixture(scope="session")
def inputs():
    """Function from tokens ``(B, T)`` to random float32 :class:`Inputs`."""

    def make(tokens, decoder, heads=2, width=4):
        generator = torch.Generator().manual_seed(3)
        shape = (*tokens.shape, heads, width)
        parts = [torch.randn(shape, generator=generator).transpose(1, 2) for _ in range(3)]
        key_weight = 0.5 * torch.randn(heads * width, heads * width, generator=generator)
        return Inputs(*parts, key_weight, tokens.eq(PADDING), decoder)

    return make


@pytest.fixture(scope="session")
def plain_layer():
    """Function that does what a layer does with an encoding's terms, by the plain core.

    With one query for many keys, ``newest`` takes the last of the queries.
    """

    def run(terms, x, newest=False):
        queries = rotated(x.queries[:, :, -1:] if newest else x.queries, terms.rotation)
        keys = x.keys if newest else rotated(x.keys, terms.rotation)
        core = core_terms(terms, x.key_weight, x.queries.shape[1])
        padding = x.padding if bool(x.padding.any()) else None
        causal = x.decoder and not newest
        return attend(queries, keys, x.values, core, padding, causal, 0.0, False)[0]

    return run


@pytest.fixture(scope="session")
def rotate():
    """Function that rotates heads ``(B, H, T, d)`` by a rotation of the contract, or by none."""
    return rotated
