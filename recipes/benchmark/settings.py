"""What is timed: sizes, batch, precision, and whatever else the figures depend on."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

Step = Callable[[], object]
Steps = Dict[str, Step]
STOCK = "stock"
PADDING = 1


class ModelSize(NamedTuple):
    """The size of a model; ``entries`` is the size of its vocabulary."""

    width: int
    ffn: int
    layers: int
    heads: int
    entries: int


SHAPES: Dict[str, ModelSize] = {
    "tiny": ModelSize(width=32, ffn=64, layers=1, heads=2, entries=100),
    "small": ModelSize(width=256, ffn=1024, layers=3, heads=4, entries=6000),
    "base": ModelSize(width=512, ffn=2048, layers=6, heads=8, entries=32000),
    # CAPE's Table 9; the width of its feed-forward layers and the vocabulary are our choice
    "cape": ModelSize(width=768, ffn=3072, layers=6, heads=8, entries=1000),
    "cape_layer": ModelSize(width=768, ffn=3072, layers=1, heads=8, entries=1000),
    "bert_small": ModelSize(width=512, ffn=2048, layers=4, heads=8, entries=30000),
    "bert_base": ModelSize(width=768, ffn=3072, layers=12, heads=12, entries=30000),
}


@dataclass(frozen=True)
class Setting:
    """Whatever the times of some contestants depend on.

    Attributes:
        shape: name of the models' size in ``SHAPES``.
        contestants: values of ``--position-encoding``, with options if there are any:
            ``shaw --position-max-distance 8``. Stock fairseq is timed beside them.
        length, batch: tokens per sentence, sentences per batch.
        dropout: of hidden states and of attention.
        device: ``cpu`` or ``cuda``.
        dtype: of the model, ``float32``, ``bfloat16`` or ``float16``.
    """

    shape: str
    contestants: List[str]
    length: int
    batch: int = 1
    dropout: float = 0.0
    device: str = "cpu"
    dtype: str = "float32"

    @property
    def sizes(self) -> ModelSize:
        """The size of the models."""
        return SHAPES[self.shape]

    def dictionary(self) -> Dictionary:
        """Return a dictionary of as many types as the models have."""
        dictionary = Dictionary()
        for index in range(self.sizes.entries - len(dictionary)):
            dictionary.add_symbol(f"w{index}")
        return dictionary

    def draw_tokens(self, left: bool = False) -> Tensor:
        """Draw a batch ``(batch, length)``; a quarter of the rows is padded by a quarter."""
        tokens = torch.randint(4, self.sizes.entries, (self.batch, self.length))
        if self.batch > 1 and self.length >= 4:
            padded = slice(0, self.length // 4) if left else slice(-(self.length // 4), None)
            tokens[: max(1, self.batch // 4), padded] = PADDING
        return tokens.to(self.device)

    def cast(self, module: nn.Module) -> Any:
        """Move a module to device and precision, in training mode."""
        return module.to(torch.device(self.device), getattr(torch, self.dtype)).train()
