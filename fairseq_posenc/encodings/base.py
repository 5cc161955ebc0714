"""Input of an encoding (:class:`Positions`), its output (:class:`Terms`) and its base class."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

SHARING = ("none", "layers", "heads")


@dataclass(frozen=True)
class StackConfig:
    """Sizes of the stack of layers (encoder or decoder) that an encoding serves.

    Attributes:
        channels: width of the embeddings and hidden states.
        decoder: whether this is a decoder, which sees the past only.
        max_length: longest sequence that is trained on; the size of a learned table.
        first_index: number that fairseq gives to the first token (padding index + 1), at least 1.
            Sinusoids and tables start there, so that they are exchangeable with stock models.
        layers: number of layers.
        heads: attention heads of a layer; they divide ``channels``.
        has_cls: whether index 0 of every sequence is a [CLS] token (BERT models).
        table_std: standard deviation of new tables of vectors at the input; ``None`` is
            ``1 / √channels``, as in fairseq's Transformer.
        token_std: standard deviation of new token embeddings as the layers get them: 1 in the
            Transformer, which scales them by √channels; 0.02 in BERT. Sinusoids are multiplied by
            it, or they would drown the tokens there.
    """

    channels: int
    decoder: bool = False
    max_length: int = 1024
    first_index: int = 2
    layers: int = 1
    heads: int = 1
    has_cls: bool = False
    table_std: Optional[float] = None
    token_std: float = 1.0

    def __post_init__(self) -> None:
        if self.first_index < 1:
            raise ValueError(f"first index must be at least 1, not {self.first_index}")
        if self.channels % self.heads:
            raise ValueError(f"{self.heads} heads do not divide {self.channels} channels")

    @property
    def head_channels(self) -> int:
        """Width of one attention head."""
        return self.channels // self.heads

    def table_shape(self, sharing: str) -> Tuple[int, int]:
        """Return the first two dimensions of a table of scalars per layer and head.

        Args:
            sharing: ``none``: every head of every layer has its own, ``(layers, heads)``;
                ``layers``: those of the heads serve all layers, ``(1, heads)``; ``heads``: the
                heads of a layer share one, ``(layers, 1)`` (Chen et al. 2021, Table 8).

        Raises:
            ValueError: ``sharing`` is not one of these.
        """
        if sharing not in SHARING:
            raise ValueError(f"sharing must be one of {', '.join(SHARING)}, not {sharing}")
        return 1 if sharing == "layers" else self.layers, 1 if sharing == "heads" else self.heads


@dataclass
class Positions:
    """Positions of the tokens of one side of the model, in one forward pass.

    Attributes:
        numbers: ``(batch, length)`` float32; the first real token of a sequence is 0, whatever
            padding stands before it. Padding has the number of the token before it, or 0.
        padding_mask: ``(batch, length)`` bool, true at padding; ``None`` if there is none.
        shared: what the encoder's encoding drew for the sentence pair and the decoder's must use
            too; tensors whose first dimension is the batch. Empty if nothing is shared.
        cache: when decoding step by step, the dictionary that lives as long as the hypotheses.
            ``numbers`` and ``padding_mask`` then hold the newest token alone.
        num_keys: number of tokens that self-attention may look at: the length, or when decoding
            step by step that of the prefix so far.
        segments: ``(batch, length)`` long, the number of each token's segment, if there are any.
        key_padding_mask: ``(batch, num_keys)`` bool; ``None`` if there is no padding.
    """

    numbers: Tensor
    padding_mask: Optional[Tensor] = None
    shared: List[Tensor] = field(default_factory=list)
    cache: Optional[Dict[str, Dict[str, Any]]] = None
    num_keys: int = 0
    segments: Optional[Tensor] = None
    key_padding_mask: Optional[Tensor] = None

    def __post_init__(self) -> None:
        self.num_keys = self.num_keys or self.numbers.size(1)

    @property
    def position_row(self) -> Tensor:
        """One row of numbers ``(length,)`` for the whole batch: that of its longest sequence.

        Rows that are padded on the left differ from it by a constant, which does not matter to
        distances; encodings that are ``by_index`` get sequences padded on the right.
        """
        return self.numbers.amax(dim=0)

    @classmethod
    def of_length(cls, length: int) -> "Positions":
        """Number the tokens of one whole sequence without padding."""
        return cls(torch.arange(length, dtype=torch.float32).unsqueeze(0))

    @classmethod
    def of_tokens(
        cls, tokens: Tensor, padding_index: int, padded: Optional[bool] = None, **attributes: Any
    ) -> "Positions":
        """Number the tokens ``(batch, length)`` of whole sequences, padded left or right.

        With a ``cache``, the tokens are the prefix so far, and the newest alone is numbered.

        Args:
            tokens: ``(batch, length)``.
            padding_index: the token that pads.
            padded: whether there is any; ``None`` to look, which waits for a GPU.
            **attributes: further ones, such as ``cache``.
        """
        is_padding = tokens.eq(padding_index)
        numbers = ((~is_padding).cumsum(dim=1) - 1).clamp_(min=0).float()
        newest = slice(None if attributes.get("cache") is None else -1, None)
        if bool(is_padding.any()) if padded is None else padded:
            attributes.update(padding_mask=is_padding[:, newest], key_padding_mask=is_padding)
        return cls(numbers[:, newest], num_keys=tokens.size(1), **attributes)


@dataclass
class AttentionTerms:
    """Terms of an encoding in the self-attention of one layer.

    Queries are the last ``Q`` of ``K`` keys: ``Q = K`` for whole sequences, ``Q = 1`` in
    incremental decoding. With query ``i`` and key ``j`` counted along the keys, and their distance
    ``i - j``, head ``h`` computes::

        score[i, j]  = scale · (q[i] + u[h]) · k[j]
                     + scale · (q[i] + v[h]) · (W_K distances)[h, i - j]
                     + scale · q[i] · relative_keys[clip(i - j)]
                     + bias[h, i, j]
                     + bias_by_distance[h, i - j]
                     + index_queries[h, i] · index_keys[h, j]
                     + segment_scalars[h, segment of i, segment of j]
        output[i]    = Σ_j softmax(score)[i, j] · (value[j] + relative_values[clip(i - j)])

    where ``q`` and ``k`` are rotated first if there is a ``rotation``. What is ``None`` is left
    out. All are tensors or a number, so that a layer can pass them on one by one.

    Attributes:
        scale: of the scores; ``None`` is ``1 / √head_channels``. Chen et al. 2021 write ``1 / √d``
            with the hidden size d (eq. 2); our reading is the width of a head, as in Vaswani et al.
        bias: ``(heads or 1, Q, K)``.
        bias_by_distance: ``(heads or 1, Q + K - 1)``, by falling distance from ``K - 1`` to
            ``1 - Q``.
        index_queries, index_keys: ``(heads or 1, T, rank)`` each; Q = K = T.
        segments: ``(batch, K, number of segments)``, one-hot rows; Q = K.
        segment_scalars: ``(heads or 1, number of segments, number of segments)``.
        relative_keys: ``(2k + 1, head_channels)``; row ``k + d`` is for distance ``d``, and
            distances are clipped to ``-k … k``.
        relative_values: the same for the values.
        distances: ``(Q + K - 1, channels)``, by falling distance from ``K - 1`` to ``1 - Q``.
        content_query: u, ``(heads, head_channels)``.
        position_query: v, ``(heads, head_channels)``.
        rotation: ``(2, Q, batch or 1, head_channels // 2)``, cosines and sines of the queries'
            angles, times a factor if vectors become longer; keys are rotated when they are new, so
            the same ones serve. Channels ``2c`` and ``2c + 1`` are a pair.
        distance_keys: no encoding sets it: the attention puts ``W_K distances`` here,
            ``(heads, Q + K - 1, head_channels)``. If it is causal, distances below ``-1`` may be
            missing.
    """

    scale: Optional[float] = None
    bias: Optional[Tensor] = None
    segments: Optional[Tensor] = None
    segment_scalars: Optional[Tensor] = None
    relative_keys: Optional[Tensor] = None
    relative_values: Optional[Tensor] = None
    distances: Optional[Tensor] = None
    content_query: Optional[Tensor] = None
    position_query: Optional[Tensor] = None
    rotation: Optional[Tensor] = None
    distance_keys: Optional[Tensor] = None
    bias_by_distance: Optional[Tensor] = None
    index_queries: Optional[Tensor] = None
    index_keys: Optional[Tensor] = None


@dataclass
class Terms:
    """Terms of an encoding in its stack of layers, for one forward pass.

    Attributes:
        input: ``(batch, length, channels)``, added to the embeddings, or ``None``.
        after_layer: for some layers (numbered from 0), a function from the layer's output
            ``(length, batch, channels)`` to what the next layer gets.
        attention: for each layer that has any, its attention's terms.
        shared: for the other side of the model, see :class:`Positions`.
    """

    input: Optional[Tensor] = None
    attention: Dict[int, AttentionTerms] = field(default_factory=dict)
    after_layer: Dict[int, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    shared: List[Tensor] = field(default_factory=list)

    @classmethod
    def of_biases(cls, stack: StackConfig, biases: Sequence[Tensor]) -> "Terms":
        """Return terms that add biases to the scores of all layers.

        Args:
            stack: the stack of layers.
            biases: one ``(heads or 1, Q, K)`` per layer, or a single one for all layers.
        """
        return cls.of_layers(stack, [AttentionTerms(bias=bias) for bias in biases])

    @classmethod
    def of_layers(cls, stack: StackConfig, terms: Sequence[AttentionTerms]) -> "Terms":
        """Return terms of all layers, given one per layer or a single one for all of them."""
        return cls(attention=dict(enumerate([*terms] * (stack.layers // len(terms)))))


@dataclass
class ExportedPositions:
    """Tables of the positions of an encoding in evaluation, which other programs can hold.

    Positions count from 0 at the first real token. What is ``None`` is left out; an encoding
    without any of these knows no positions. For their use in self-attention see
    :class:`AttentionTerms`.

    Attributes:
        input: ``(n, channels)``; row ``p`` is added to the embedding of the token at position p.
        bias: ``(layers or 1, heads or 1, 2 n - 1)``, added to the scaled scores; entry
            ``n - 1 + d`` is for distance ``d``, query minus key. In a decoder those for negative
            distances mean nothing.
        relative_keys: ``(layers, 2 k + 1, head_channels)``; row ``k + d`` is for distance ``d``,
            and distances are clipped to ``-k … k``.
        relative_values: the same for the values.
        rotation: ``(head_channels // 2,)``; channels ``2c`` and ``2c + 1`` of queries and keys at
            position p are rotated by the angle ``p · rotation[c]``.
    """

    input: Optional[Tensor] = None
    bias: Optional[Tensor] = None
    relative_keys: Optional[Tensor] = None
    relative_values: Optional[Tensor] = None
    rotation: Optional[Tensor] = None

    @property
    def attention(self) -> List[str]:
        """Names of the tables that act inside self-attention."""
        return [name for name, value in vars(self).items() if name != "input" and value is not None]


class Encoding(nn.Module):
    """Base of all encodings: one instance serves one stack.

    The keyword arguments of a subclass's ``__init__``, after the stack, are the options it reads
    (``--position-…`` on the command line); their defaults are the defaults. Subclasses raise
    ``ValueError`` for values that make no sense.

    Attributes:
        max_positions: longest sequence that can be encoded at all.
        by_index: whether whole sequences must be padded on the right, so that a token's index is
            its position in every row; the model then moves padding there.
        export_error: why it cannot be exported, if it has no method ``export_tables``.
    """

    max_positions = 100_000
    by_index = False
    export_error = "it does not say what it computes in evaluation (Encoding.export_tables)"

    def __init__(self, stack: StackConfig):
        super().__init__()
        self.stack = stack

    @property
    def in_evaluation(self) -> "Encoding":
        """The encoding that computes in evaluation, if it is not this one."""
        return self

    def forward(self, positions: Positions) -> Terms:
        """Return this stack's terms; called once per forward pass."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def export_tables(self, length: int) -> ExportedPositions:
        """Return tables of what is computed in evaluation for up to ``length`` tokens.

        Called for export, in evaluation mode and with the parameters on the CPU.

        Raises:
            ValueError: tables cannot hold it; the message says why.
        """
        raise ValueError(self.export_error)
