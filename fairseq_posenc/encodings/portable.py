"""What an encoding computes in evaluation, in tables that programs without encodings can hold."""

from dataclasses import dataclass
from typing import List, Optional

from torch import Tensor


@dataclass
class Portable:
    """What an encoding computes in evaluation, whatever the tokens.

    Positions count from 0 at the first real token. What is ``None`` is left out; an encoding
    without anything knows no positions. The formula of what happens in self-attention is that of
    :class:`fairseq_posenc.encodings.base.AttentionTerms`.

    Attributes:
        input: ``(n, channels)``; row ``p`` is added to the embedding of the token at position p.
        bias: ``(layers or 1, heads or 1, 2 n - 1)``, added to the scaled scores; entry
            ``n - 1 + d`` is for distance ``d``, query minus key. In a decoder those for negative
            distances mean nothing.
        relative_keys: ``(layers, 2 k + 1, head_channels)``; row ``k + d`` is for distance ``d``,
            and distances are clipped to ``-k … k``.
        relative_values: the same for the values.
        rotation: ``(head_channels // 2,)``; channels ``2c`` and ``2c + 1`` of queries and keys at
            position p are turned by the angle ``p · rotation[c]``.
    """

    input: Optional[Tensor] = None
    bias: Optional[Tensor] = None
    relative_keys: Optional[Tensor] = None
    relative_values: Optional[Tensor] = None
    rotation: Optional[Tensor] = None

    @property
    def attention(self) -> List[str]:
        """The names of what acts inside self-attention."""
        return [name for name, value in vars(self).items() if name != "input" and value is not None]
