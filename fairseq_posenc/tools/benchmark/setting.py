"""What is timed: sizes, length, dropout, device."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping

import torch
from torch import Tensor, nn

STOCK = "stock"
BASELINE = "sinusoidal"
PADDING = 1
SHAPES: Dict[str, Dict[str, int]] = {
    "tiny": {"width": 32, "ffn": 64, "layers": 1, "heads": 2, "types": 100},
    "small": {"width": 256, "ffn": 1024, "layers": 3, "heads": 4, "types": 6000},
    "base": {"width": 512, "ffn": 2048, "layers": 6, "heads": 8, "types": 32000},
    # CAPE's Table 9; it names no feed-forward width: four times the model's, few types
    "cape": {"width": 768, "ffn": 3072, "layers": 6, "heads": 8, "types": 1000},
    "bert_small": {"width": 512, "ffn": 2048, "layers": 4, "heads": 8, "types": 30000},
    "bert_base": {"width": 768, "ffn": 3072, "layers": 12, "heads": 12, "types": 30000},
}


@dataclass(frozen=True)
class Setting:
    """One column of a table.

    Attributes:
        shape: one of ``SHAPES``.
        encodings: values of ``--position-encoding``, with options if there are any:
            ``shaw --position-max-distance 8``.
        length: tokens per sentence.
        tokens: tokens per batch; at least one sentence is taken.
        dropout: of hidden states and of attention.
        device: ``cpu`` or ``cuda``.
        dtype: of the model, ``float32``, ``bfloat16`` or ``float16``.
        model: further options of fairseq's models, such as ``encoder_normalize_before``.
        shared: let all contestants train one set of weights, so that many large ones fit into
            memory.
    """

    shape: str
    encodings: List[str]
    length: int
    tokens: int = 1024
    dropout: float = 0.0
    device: str = "cpu"
    dtype: str = "float32"
    model: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = False

    def __getattr__(self, name: str) -> int:
        """Return one of the sizes of the shape."""
        if name in SHAPES["tiny"]:
            return SHAPES[self.shape][name]
        raise AttributeError(name)

    @property
    def contestants(self) -> List[str]:
        """The encodings, and stock fairseq before them."""
        return [STOCK, *self.encodings]

    @property
    def sentences(self) -> int:
        """Number of sentences in a batch."""
        return max(1, self.tokens // self.length)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype."""
        return getattr(torch, self.dtype)

    def described(self) -> Dict[str, object]:
        """Return what a report must say."""
        fields = ("shape", "length", "tokens", "dropout", "device", "dtype")
        return {name: getattr(self, name) for name in fields}

    def draw_tokens(self, left: bool = False) -> Tensor:
        """Draw a batch ``(sentences, length)``; a quarter of the rows is padded by a quarter."""
        tokens = torch.randint(4, self.types, (self.sentences, self.length))
        if self.sentences > 1:
            padded = slice(0, self.length // 4) if left else slice(-(self.length // 4), None)
            if self.length >= 4:
                tokens[: max(1, self.sentences // 4), padded] = PADDING
        return tokens.to(self.device)

    def cast(self, module: nn.Module) -> Any:
        """Move a module to device and precision, in training mode."""
        return module.to(torch.device(self.device), self.torch_dtype).train()
