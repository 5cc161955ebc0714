"""Projections to and from attention heads, with fairseq's parameters."""

import math
from typing import Any, Dict, Optional

from fairseq.incremental_decoding_utils import FairseqIncrementalState
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor, nn

State = Dict[str, Dict[str, Any]]


class Projections(FairseqIncrementalState, nn.Module):
    """Projections to and from attention heads.

    Parameters (``k_proj``, ``v_proj``, ``q_proj``, ``out_proj``, each ``weight`` and ``bias``), how
    they are drawn and in which order are those of fairseq's ``MultiheadAttention``.

    Args:
        channels: width of the queries and of the output.
        heads: number of heads; they divide ``channels``.
        key_channels: width of what keys and values are made from, if not ``channels``.
        dropout: probability that an attention weight is dropped in training.
        q_noise: share of weights under quantisation noise.
        qn_block_size: size of the blocks of that noise.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        key_channels: Optional[int] = None,
        dropout: float = 0.0,
        q_noise: float = 0.0,
        qn_block_size: int = 8,
    ):
        super().__init__()
        key_channels = key_channels or channels
        self.num_heads = heads
        self.head_dim = channels // heads
        self.dropout_module = FairseqDropout(dropout, module_name="MultiheadAttention")
        noise = {"p": q_noise, "block_size": qn_block_size}
        self.k_proj = quant_noise(nn.Linear(key_channels, channels), **noise)
        self.v_proj = quant_noise(nn.Linear(key_channels, channels), **noise)
        self.q_proj = quant_noise(nn.Linear(channels, channels), **noise)
        self.out_proj = quant_noise(nn.Linear(channels, channels), **noise)
        gain = 1 / math.sqrt(2) if key_channels == channels else 1.0
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    @property
    def dropout_p(self) -> float:
        """Probability that a weight is dropped now."""
        active = self.training or self.dropout_module.apply_during_inference
        return self.dropout_module.p if active else 0.0

    def split(self, x: Tensor) -> Tensor:
        """Return ``(length, batch, channels)`` as ``(batch, heads, length, head channels)``."""
        length, batch, _ = x.shape
        return x.view(length, batch, -1, self.head_dim).permute(1, 2, 0, 3)

    def join(self, x: Tensor) -> Tensor:
        """Undo :meth:`split`, and project to the output."""
        return self.out_proj(x.permute(2, 0, 1, 3).flatten(2))

    def remembered(self, state: State) -> Dict[str, Any]:
        """Return what this module keeps in the state of a step-by-step search, to be written to."""
        name: str = self._get_full_incremental_state_key("attention")  # type: ignore[operator]
        return state.setdefault(name, {})
