"""Multi-head attention in PyTorch alone, shared by fairseq's layers and ``fairseq_posenc.nn``."""

from dataclasses import replace
from typing import Optional, Tuple

import torch
from torch import Tensor, nn

from fairseq_posenc.attention import core
from fairseq_posenc.attention.cache import Prefix
from fairseq_posenc.attention.plain import rotated
from fairseq_posenc.encodings.base import AttentionTerms


class Projections(nn.Module):
    """Projections to and from attention heads; parameters are named as in fairseq.

    Args:
        channels: width of inputs and outputs.
        heads: they divide the channels; rotary needs an even width per head.
        key_channels: width of what keys and values are made from, if another.
    """

    batch_first = False  # inputs: (batch, length, channels); else (length, batch, channels)
    dropout_p = 0.0  # probability that a weight is dropped now

    def __init__(self, channels: int, heads: int, key_channels: Optional[int] = None):
        super().__init__()
        key_channels = key_channels or channels
        self.num_heads, self.head_dim = heads, channels // heads
        self.k_proj = nn.Linear(key_channels, channels)
        self.v_proj = nn.Linear(key_channels, channels)
        self.q_proj = nn.Linear(channels, channels)
        self.out_proj = nn.Linear(channels, channels)

    def split(self, x: Tensor) -> Tensor:
        """Return an input's projection as ``(batch, heads, length, head channels)``."""
        by_head = x.unflatten(-1, (self.num_heads, -1))
        return by_head.permute(*((0, 2, 1, 3) if self.batch_first else (1, 2, 0, 3)))

    def join(self, x: Tensor) -> Tensor:
        """Undo :meth:`split`, and project to the output."""
        by_token = x.permute(*((0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)))
        return self.out_proj(by_token.flatten(2))


class SelfAttentionBase(Projections):
    """Multi-head self-attention with the position terms of its layer; it names no encoding.

    The formula is that of :class:`fairseq_posenc.encodings.base.AttentionTerms`, and is the same
    for whole sequences and step by step.
    """

    def attend(
        self,
        x: Tensor,
        terms: AttentionTerms,
        padding_mask: Optional[Tensor] = None,
        causal: bool = False,
        prefix: Optional[Prefix] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the output, of ``x``'s shape, and the weights if asked for.

        Args:
            x: ``(length, batch, channels)``, or ``(batch, length, channels)`` if batch first.
            terms: this layer's.
            padding_mask: ``(batch, keys)`` bool, true at padding, which is masked.
            causal: whether a token sees no later ones.
            prefix: when decoding step by step, the tokens before. ``x`` is then of the newest
                token, ``padding_mask`` and ``terms`` of the prefix so far.
            need_weights: whether to return the weights ``(batch, heads, length, keys)`` too.
        """
        # each of x's shape
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if terms.rotation is not None:
            # (length, batch or 1, 1, channel pairs), or batch first; ONNX unsqueezes real numbers
            parts = (part.unsqueeze(-2) for part in terms.rotation)
            rotation = torch.complex(*(p.transpose(0, 1) if self.batch_first else p for p in parts))
            queries, keys = rotated(queries, rotation), rotated(keys, rotation)
        if prefix is not None:
            # of the newest token → of the prefix so far
            keys, values = prefix.keys.append(keys), prefix.values.append(values)
        # outputs: (batch, heads, queries, head channels); weights: (batch, heads, queries, keys)
        outputs, weights = core.attend(
            self.split(queries),
            self.split(keys),
            self.split(values),
            self.core_terms(terms, prefix, causal, x.dtype),
            padding_mask,
            causal=causal,
            dropout_p=self.dropout_p,
            need_weights=need_weights,
        )
        return self.join(outputs), weights

    def core_terms(
        self,
        terms: AttentionTerms,
        prefix: Optional[Prefix] = None,
        causal: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> AttentionTerms:
        """Return the terms as :func:`core.attend` takes them, once the rotation is done.

        Distances are projected as keys of that ``dtype`` are. If ``causal``, distances of the
        future are left out but one. Step by step only the newest distance is projected, which is
        the largest and the first row; ``prefix`` keeps it.
        """
        distances = terms.distances
        if distances is None:
            return replace(terms, rotation=None)
        if causal:
            # of the 2 K - 1 distances, falling from K - 1: the K that are not negative, and -1
            distances = distances[: distances.size(0) // 2 + 2]
        past = None if prefix is None else prefix.distances
        # projected: (distances, channels), from the largest distance down
        new = distances if past is None else distances[: distances.size(0) - past.size(0)]
        # by the module, which may be quantised, or have a LoRA; its bias adds the same to all
        # scores of a query, which the softmax does not see
        projected = self.k_proj(new.to(dtype))
        projected = projected if past is None else torch.cat([projected, past])
        if prefix is not None:
            prefix.distances = projected
        # (heads, distances, head channels)
        by_head = projected.unflatten(-1, (self.num_heads, -1)).transpose(0, 1)
        return replace(terms, rotation=None, distances=None, distance_keys=by_head)
