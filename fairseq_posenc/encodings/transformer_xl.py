"""Relative sinusoids with trained queries of their own (Dai et al. 2019, Yang et al. 2019)."""

from typing import Any, Dict

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import AttentionTerms, Encoding, Positions, StackConfig, Terms


def relative_sinusoid(
    longest: int, channels: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return sinusoids of distances, sines and cosines in turn (Chen et al. 2021, section 2.2.1).

    ``R[d, 2c] = sin(d / 10000 ** (2c / channels))``, ``R[d, 2c + 1] = cos(…)``, by falling distance
    from ``longest - 1`` to ``1 - longest``: ``(2 · longest - 1, channels)``.
    """
    # a tensor made in inference mode could not be used in training later
    with torch.inference_mode(False):
        distances = torch.arange(longest - 1, -longest, -1, device=device).to(dtype)
        even = torch.arange(0, channels, 2, dtype=dtype, device=device)
        angles = distances.unsqueeze(-1) * torch.pow(10000, -even / channels)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :channels]


class TransformerXL(Encoding):
    """Sinusoids of the distance as further keys, and trained queries u and v.

    Chen et al. 2021, section 2.2.2, as printed; per head, with the layer's queries ``q = W_Q x``
    and keys ``k = W_K x`` of width d, all four terms scaled by ``1 / √d``::

        A[i, j] = q[i] · k[j] + q[i] · W_K R[i - j] + u · k[j] + v · W_K R[i - j]

    Readings: ``R``, see :func:`relative_sinusoid`, has the width of the embeddings, as ``W_K`` of
    the layer, without its bias, projects it (Yang et al. 2019 have a projection of its own for
    ``R``). u and v are per layer and head. Any length can be encoded.

    Parameters: u = ``content_query`` and v = ``position_query``, ``(layers, heads, d)``, drawn from
    N(0, 0.02²). ``R`` is one tensor for all layers.
    """

    export_error = "its scores come from distances projected by the weights of every layer's keys"

    def __init__(self, stack: StackConfig):
        super().__init__(stack)
        shape = (stack.layers, stack.heads, stack.head_channels)
        self.content_query = nn.Parameter(torch.empty(shape))
        self.position_query = nn.Parameter(torch.empty(shape))
        nn.init.normal_(self.content_query, std=0.02)
        nn.init.normal_(self.position_query, std=0.02)
        self._tables: Dict[Any, Tensor] = {}

    def forward(self, positions: Positions) -> Terms:
        """Return the sinusoids, and u and v of each layer."""
        # distances: (Q + K - 1, channels), one object for all layers; u, v: per layer (heads, d)
        distances = self.sinusoids(positions.numbers.size(1), positions.num_keys)
        by_layer = zip(self.content_query.unbind(), self.position_query.unbind())
        terms = [
            AttentionTerms(distances=distances, content_query=u, position_query=v)
            for u, v in by_layer
        ]
        return Terms(attention=dict(enumerate(terms)))

    def sinusoids(self, queries: int, keys: int) -> Tensor:
        """Return ``R``, ``(Q + K - 1, channels)``, by falling distance from ``K - 1``."""
        like = self.content_query
        dtype = torch.promote_types(like.dtype, torch.float32)
        if torch.compiler.is_exporting():  # the number of keys is a symbol, any table has a length
            table = relative_sinusoid(keys, self.stack.channels, dtype, like.device)
            return table[: keys - 1 + queries]
        # powers of two: lengths that grow by one need few tables
        longest = max(64, 2 ** (keys - 1).bit_length())
        key = (longest, dtype, like.device)
        if key not in self._tables:
            self._tables[key] = relative_sinusoid(longest, self.stack.channels, *key[1:])
        table = self._tables[key]
        # from distance K - 1 down to 1 - Q
        return table[longest - keys : longest - 1 + queries]
