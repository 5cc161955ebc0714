"""Random queries, keys, values and terms for the core of attention, and its gradients."""

from dataclasses import dataclass
from typing import Dict, Optional

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import plain
from fairseq_posenc.encodings.base import AttentionTerms


@dataclass
class Case:
    """Tensors by name (``queries``, ``keys``, ``values`` and terms), mask and direction."""

    tensors: Dict[str, Tensor]
    scale: float
    padding: Optional[Tensor]
    causal: bool
    shared: bool

    def heads_and_terms(self, tensors):
        tensors = dict(tensors)
        if self.shared:
            tensors["relative_values"] = tensors["relative_keys"]
        heads = [tensors.pop(name) for name in ("queries", "keys", "values")]
        return heads, AttentionTerms(self.scale, **tensors)

    def run(self, attend, tensors=None, dropout_p=0.0, need_weights=False):
        heads, terms = self.heads_and_terms(self.tensors if tensors is None else tensors)
        return attend(*heads, terms, self.padding, self.causal, dropout_p, need_weights)

    def leaves(self, dtype):
        """Copies of the tensors, all with a gradient but the one-hot segments."""
        copies = {name: t.detach().to(dtype) for name, t in self.tensors.items()}
        return {name: t.requires_grad_(name != "segments") for name, t in copies.items()}

    def sighted(self):
        """Which queries may look at some key, ``(B, 1, Q, 1)``."""
        queries, keys = self.tensors["queries"], self.tensors["keys"]
        seen = torch.ones(queries.shape[0], queries.shape[2], keys.shape[2], dtype=torch.bool)
        if self.padding is not None:
            seen &= ~self.padding[:, None]
        if self.causal:
            seen = seen.tril()
        return seen.any(dim=2)[:, None, :, None]

    def outputs_and_gradients(self, attend, dtype, dropout_p=0.0):
        """Outputs where a query sees anything, and the gradients of a random sum of them."""
        tensors = self.leaves(dtype)
        output = self.run(attend, tensors, dropout_p)[0] * self.sighted()
        generator = torch.Generator().manual_seed(5)
        outer = torch.randn(output.shape, generator=generator).to(dtype)
        differentiable = {n: t for n, t in tensors.items() if t.requires_grad}
        found = torch.autograd.grad((output * outer).sum(), list(differentiable.values()))
        return output.detach(), dict(zip(differentiable, found))


def mask_of(batch, keys, side, generator):
    """A mask with 0 to ``keys - 1`` paddings per row on one side; ``None`` if there is no side."""
    if side is None:
        return None
    paddings = torch.randint(0, keys, (batch, 1), generator=generator)
    paddings[0] = 0
    index = torch.arange(keys).expand(batch, keys)
    return index < paddings if side == "left" else index >= keys - paddings


@pytest.fixture(scope="session")
def plain_attend():
    """The plain implementation, with the arguments and results of the entrance."""

    def attend(*arguments):
        *inputs, need_weights = arguments
        outputs, weights = plain.attend(plain.Inputs(*inputs))
        return outputs, weights if need_weights else None

    return attend


@pytest.fixture(scope="session")
def make_case():
    """Function that makes a :class:`Case`; ``kind`` joins names of terms by ``+``.

    Queries, keys and values are views of ``(T, B, C)`` tensors, as projections are.
    """

    def make(kind, batch=2, heads=2, length=5, keys=None, width=8, side=None, causal=False, k=3):
        generator = torch.Generator().manual_seed(7)
        keys = keys or length

        def random(*shape):
            return torch.randn(*shape, generator=generator)

        def projection(time):
            return random(time, batch, heads, width).permute(1, 2, 0, 3)

        tensors = {"queries": projection(length), "keys": projection(keys)}
        tensors["values"] = projection(keys)
        parts = kind.split("+")
        if "bias" in parts:
            tensors["bias"] = random(heads, length, keys)
        if "one_bias" in parts:
            tensors["bias"] = random(1, length, keys)
        if "row" in parts or "one_row" in parts:
            scalars = random(1 if "one_row" in parts else heads, length + keys - 1)
            tensors["bias_by_distance"] = scalars
        if "index" in parts or "one_index" in parts:
            vectors = 1 if "one_index" in parts else heads
            tensors["index_queries"] = random(vectors, length, 3)
            tensors["index_keys"] = random(vectors, keys, 3)
        if "segments" in parts or "one_segments" in parts:
            numbers = torch.randint(0, 3, (batch, keys), generator=generator)
            tensors["segments"] = torch.nn.functional.one_hot(numbers, 3).float()
            tensors["segment_scalars"] = random(1 if "one_segments" in parts else heads, 3, 3)
        if {"relative", "relative_keys", "shared"} & set(parts):
            tensors["relative_keys"] = random(2 * k + 1, width)
        if {"relative", "relative_values"} & set(parts):
            tensors["relative_values"] = random(2 * k + 1, width)
        if "distances" in parts:
            # as layers do, which leave out the future that nobody sees
            rows = length + min(2 if causal else keys, keys) - 1
            tensors["distance_keys"] = random(heads, rows, width)
        if "distances" in parts or "u" in parts:
            tensors["content_query"] = random(heads, width)
        if "distances" in parts:
            tensors["position_query"] = random(heads, width)
        padding = mask_of(batch, keys, side, generator)
        return Case(tensors, 0.7 * width**-0.5, padding, causal, "shared" in parts)

    return make
