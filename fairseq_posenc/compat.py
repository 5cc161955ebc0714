"""Every difference between fairseq 0.12.2, its maintained fork and versions of torch."""

import re
from typing import Any, Dict

import torch
from torch import nn

try:
    from torch.compiler import is_compiling as is_compiling
except ImportError:  # torch 2.0
    from torch._utils import is_compiling as is_compiling

_TORCH = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))
# torch 2.0 multiplies small outputs that shall be overwritten by 0, so that NaN in them stays NaN.
BADDBMM_READS_OUT = _TORCH < (2, 1)
# whether torch's attention has an argument for another scale
ATTENTION_TAKES_SCALE = _TORCH >= (2, 1)
_FUSED_WEIGHTS = [
    f"{part}_{kind}"
    for part in ("in_proj", "out_proj", "fc1", "fc2")
    for kind in ("weight", "bias")
]


def remove_fused_weights(layer: nn.Module) -> None:
    """Remove the second copy of its weights that an encoder layer of fairseq 0.12.2 has.

    It is for a fused kernel that knows no positions, and would get no gradients.
    """
    for name in _FUSED_WEIGHTS:
        if hasattr(layer, name):
            delattr(layer, name)


def drop_fused_weights(state_dict: Dict[str, Any], prefix: str) -> None:
    """Remove that copy from a state dictionary, which is changed in place.

    Args:
        state_dict: of any fairseq model.
        prefix: name of the layer with a dot, for example ``encoder.layers.0.``.
    """
    for name in _FUSED_WEIGHTS:
        state_dict.pop(prefix + name, None)


def drop_position_buffers(state_dict: Dict[str, Any], prefix: str) -> None:
    """Remove the buffers, not weights, that fairseq's sinusoids have left in checkpoints.

    Args:
        state_dict: changed in place.
        prefix: name of the embedding, for example ``encoder.embed_positions``.
    """
    for buffer in ("weights", "_float_tensor"):
        state_dict.pop(f"{prefix}.{buffer}", None)
