"""What goes into an encoding (:class:`Positions`) and what comes out (:class:`Terms`)."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Stack:
    """What an encoding must know of the stack of layers (encoder or decoder) that it serves.

    Attributes:
        channels: width of the embeddings and hidden states.
        decoder: whether this is a decoder, which sees the past only.
        max_length: longest sequence that is trained on; the size of a learned table.
        first_index: number that fairseq gives to the first token (padding index + 1), at least 1.
            Sinusoids and tables start there, so that they are exchangeable with stock models.
    """

    channels: int
    decoder: bool = False
    max_length: int = 1024
    first_index: int = 2

    def __post_init__(self):
        if self.first_index < 1:
            raise ValueError(f"first index must be at least 1, not {self.first_index}")


@dataclass
class Positions:
    """Where the tokens of one side of the model stand, in one forward pass.

    Attributes:
        numbers: ``(batch, length)`` float32; the first real token of a sequence is 0, whatever
            padding stands before it. Padding has the number of the token before it, or 0.
        padding_mask: ``(batch, length)`` bool, true at padding; ``None`` if there is none.
        shared: what the encoder's encoding drew for the sentence pair and the decoder's must use
            too; tensors whose first dimension is the batch. Empty if nothing is shared.
        cache: when decoding step by step, the dictionary that lives as long as the hypotheses.
            ``numbers`` then holds the newest token alone.
    """

    numbers: Tensor
    padding_mask: Optional[Tensor] = None
    shared: List[Tensor] = field(default_factory=list)
    cache: Optional[Dict[str, Dict[str, Any]]] = None

    @classmethod
    def of_tokens(cls, tokens: Tensor, padding_index: int, **others) -> "Positions":
        """Number the tokens ``(batch, length)`` of whole sequences, padded left or right.

        When ``cache`` is given, the tokens are the prefix so far, and the newest alone is kept.
        """
        real = tokens.ne(padding_index)
        numbers = (real.cumsum(dim=1) - 1).clamp_(min=0).float()
        if others.get("cache") is not None:
            numbers, real = numbers[:, -1:], real[:, -1:]
        return cls(numbers, None if real.all() else ~real, **others)


@dataclass
class Terms:
    """What an encoding contributes to its stack in one forward pass.

    Attributes:
        input: ``(batch, length, channels)``, added to the embeddings, or ``None``.
        after_layer: for some layers (numbered from 0), a function from the layer's output
            ``(length, batch, channels)`` to what the next layer gets.
        shared: for the other side of the model, see :class:`Positions`.
    """

    input: Optional[Tensor] = None
    after_layer: Dict[int, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    shared: List[Tensor] = field(default_factory=list)


class Encoding(nn.Module):
    """Base of all encodings: one instance serves one stack.

    The keyword arguments of a subclass's ``__init__`` are the options it reads
    (``--position-…`` on the command line); their defaults are the defaults. Subclasses raise
    ``ValueError`` for values that make no sense.

    Attributes:
        max_positions: longest sequence that can be encoded at all.
    """

    max_positions = 100_000

    def __init__(self, stack: Stack):
        super().__init__()
        self.stack = stack

    def forward(self, positions: Positions) -> Terms:
        """Return this stack's terms; called once per forward pass."""
        raise NotImplementedError(f"{type(self).__name__}.forward")


def worker_generator(device: torch.device) -> torch.Generator:
    """Return a random generator that no other data-parallel worker shares.

    fairseq seeds torch before every update with seed + number of updates, on all workers alike.
    Our generator hangs on torch's, so a resumed run draws what an unbroken one draws, and on the
    worker's rank, so that workers differ.
    """
    seed = int(torch.randint(2**31, ()))
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = torch.distributed.get_rank() if distributed else 0
    # An odd factor keeps the seeds of all ranks distinct; CPU generators read 32 bits of them.
    return torch.Generator(device=device).manual_seed((seed + rank * 0x9E3779B1) % 2**32)
