"""Attention with position terms, and a small stack of layers."""

import copy
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc.attention import projections
from fairseq_posenc.encodings import Encoding, Positions, StackConfig, build
from fairseq_posenc.encodings.base import AttentionTerms, Terms


class SelfAttention(projections.SelfAttentionBase):
    """Multi-head self-attention with the position terms of its layer; it names no encoding.

    The formula is that of :class:`fairseq_posenc.encodings.base.AttentionTerms`. Parameters are
    named as in fairseq: ``q_proj``, ``k_proj``, ``v_proj``, ``out_proj``.

    Args:
        channels: width of inputs and outputs.
        heads: they divide the channels; rotary needs an even width per head.
        causal: whether no token sees a later one.
        dropout: of the attention weights, in training.
    """

    batch_first = True

    def __init__(self, channels: int, heads: int, causal: bool = False, dropout: float = 0.0):
        if channels % heads:
            raise ValueError(f"{heads} heads do not divide {channels} channels")
        super().__init__(channels, heads)
        self.causal, self.dropout = causal, dropout

    @property
    def dropout_p(self) -> float:  # type: ignore[override]
        """Probability that a weight is dropped now."""
        return self.dropout if self.training else 0.0

    def forward(
        self,
        x: Tensor,
        terms: Optional[AttentionTerms] = None,
        padding_mask: Optional[Tensor] = None,
    ) -> Tensor:
        """Return the output ``(batch, length, channels)``.

        Args:
            x: ``(batch, length, channels)``.
            terms: this layer's, ``encoding(positions).attention[layer]``; ``None`` for none.
            padding_mask: ``(batch, length)`` bool, true at padding, which is masked.
        """
        outputs, _ = self.attend(x, terms or AttentionTerms(), padding_mask, self.causal)
        return outputs


class EncoderLayer(nn.Module):
    """Self-attention and two linear layers, each with a LayerNorm and added to its input.

    Args:
        channels: width of inputs and outputs.
        heads: of the attention.
        inner: width between the two linear layers.
        dropout: of attention weights and of what is added, in training.
        norm_first: whether each LayerNorm stands before what is added, or else after the sum.
        activation: between the two linear layers.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        inner: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ):
        super().__init__()
        self.norm_first, self.activation = norm_first, activation
        self.self_attn = SelfAttention(channels, heads, dropout=dropout)
        self.self_attn_layer_norm = nn.LayerNorm(channels)
        self.fc1 = nn.Linear(channels, inner)
        self.fc2 = nn.Linear(inner, channels)
        self.final_layer_norm = nn.LayerNorm(channels)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        terms: Optional[AttentionTerms] = None,
        padding_mask: Optional[Tensor] = None,
    ) -> Tensor:
        """Return ``(batch, length, channels)``; for the arguments see :class:`SelfAttention`."""
        x = self.added(
            x, self.self_attn_layer_norm, lambda y: self.self_attn(y, terms, padding_mask)
        )
        return self.feed_forward(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        """Return the output of the two linear layers for ``(batch, length, channels)``."""
        return self.added(
            x, self.final_layer_norm, lambda y: self.fc2(self.activation(self.fc1(y)))
        )

    def added(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Return ``x`` with the output of a part added, normalised before or after."""
        if self.norm_first:
            return x + self.dropout(part(norm(x)))
        omega = getattr(norm, "omega", None)  # ADMIN's, of trained models
        return norm((x if omega is None else omega * x) + self.dropout(part(x)))


class Encoder(nn.Module):
    """Layers with a position encoding of ours.

    Args:
        layer: of which each layer is a copy, with parameters drawn anew; as :class:`EncoderLayer`.
            Its attention becomes causal if the stack is a decoder.
        stack: number of layers, heads and channels, and whether tokens see the past only.
        encoding: one of :func:`fairseq_posenc.encodings.names`.
        options: of the encoding, such as ``max_shift=100``.

    Raises:
        ValueError: an unknown encoding or option, or layers that do not fit the stack.
    """

    def __init__(
        self, layer: nn.Module, stack: StackConfig, encoding: str = "sinusoidal", **options: Any
    ):
        super().__init__()
        attention: Any = layer.self_attn
        if attention.num_heads != stack.heads or attention.q_proj.in_features != stack.channels:
            raise ValueError("the layer has other channels or heads than the stack")
        attention.causal = stack.decoder
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(stack.layers))
        for module in self.layers.modules():
            getattr(module, "reset_parameters", lambda: None)()
        self.embed_positions: Encoding = build(encoding, stack, **options)
        # layers that normalise their output need no further LayerNorm
        norm_first = getattr(layer, "norm_first", True)
        self.layer_norm: nn.Module = nn.LayerNorm(stack.channels) if norm_first else nn.Identity()

    def forward(
        self,
        x: Tensor,
        padding_mask: Optional[Tensor] = None,
        segments: Optional[Tensor] = None,
    ) -> Tensor:
        """Return the last layer's output ``(batch, length, channels)``.

        Args:
            x: ``(batch, length, channels)``, the embeddings, without positions. Sinusoids have a
                size of about 0.7: multiply embeddings that are much smaller, as by ``√channels``.
            padding_mask: ``(batch, length)`` bool, true at padding.
            segments: ``(batch, length)`` long, the number of each token's segment, if any.

        Raises:
            ValueError: padding on the left, with an encoding that has a table by index.
        """
        positions = self.positions(x, padding_mask, segments)
        terms = self.embed_positions(positions)
        if terms.input is not None:
            x = x + terms.input.to(x.dtype)
        return self.through_layers(x, terms, padding_mask)

    def through_layers(
        self, x: Tensor, terms: Terms, padding_mask: Optional[Tensor], *arguments: Any
    ) -> Tensor:
        """Return the last layer's output; ``arguments`` are further ones of the layers."""
        for number, layer in enumerate(self.layers):
            x = layer(x, terms.attention.get(number), padding_mask, *arguments)
            if number in terms.after_layer:
                x = terms.after_layer[number](x.transpose(0, 1)).transpose(0, 1)
        return self.layer_norm(x)

    def positions(
        self, x: Tensor, padding_mask: Optional[Tensor], segments: Optional[Tensor]
    ) -> Positions:
        """Return where each token stands, padding left out of the count."""
        if padding_mask is None:
            padding_mask = x.new_zeros(x.shape[:2], dtype=torch.bool)
        elif self.embed_positions.by_index:
            self._check_padding(padding_mask)
        numbers = ((~padding_mask).cumsum(dim=1) - 1).clamp(min=0).float()
        return Positions(numbers, padding_mask, segments=segments, key_padding_mask=padding_mask)

    @staticmethod
    def _check_padding(padding_mask: Tensor) -> None:
        """Refuse padding on the left; an exported graph does it when it runs."""
        message = "this encoding has a table by index: pad on the right"
        # a row of padding alone has none before a token
        on_the_left = (padding_mask[:, 0] & ~padding_mask.all(dim=1)).any()
        if torch.compiler.is_exporting():
            torch._assert_async(~on_the_left, message)
        elif bool(on_the_left):
            raise ValueError(message)
