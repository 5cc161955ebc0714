"""Sinusoidal absolute positions (Vaswani et al. 2017), and the base of their variants."""

import math

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import Encoding, ExportedPositions, Positions, StackConfig, Terms


def sinusoid(numbers: Tensor, channels: int) -> Tensor:
    """Return the sinusoids of real-valued positions.

    With ``h = channels // 2`` and ``w_m = 10000 ** (-m / (h - 1))``, ``m = 0 … h - 1``::

        PE(p) = [sin(w_0 p), …, sin(w_{h-1} p), cos(w_0 p), …, cos(w_{h-1} p)]

    This is fairseq's layout, so that checkpoints are exchangeable with stock models. The papers
    interleave sines and cosines and write ``10000 ** (-2m / channels)``. An odd last channel is 0.

    Args:
        numbers: ``(…)``, any real values. Phases are computed in float32 at least: in half
            precision they would be off by 0.2 (fp16) and 1.3 (bf16) at position 500.
        channels: width, at least 4.

    Returns:
        ``(…, channels)`` in float32, or in float64 if ``numbers`` are.
    """
    dtype = torch.promote_types(numbers.dtype, torch.float32)
    half = channels // 2
    rate = -math.log(10000) / (half - 1)
    frequencies = torch.exp(torch.arange(half, dtype=dtype, device=numbers.device) * rate)
    phases = numbers.to(dtype).unsqueeze(-1) * frequencies
    parts = [phases.sin(), phases.cos()]
    if channels % 2:
        parts.append(torch.zeros_like(phases[..., :1]))
    return torch.cat(parts, dim=-1)


class Sinusoidal(Encoding):
    """Sinusoids of the position, added to the embeddings (Vaswani et al. 2017; SHAPE, eq. 1).

    Term: ``input[b, i] = PE(first_index + α · i)``, see :func:`sinusoid`, with ``α`` on the source
    side alone. Nothing is learned. Any length can be encoded. BERT does not scale its embeddings,
    so there the term is multiplied by ``stack.token_std``, also in SHAPE and CAPE: our reading.

    Args:
        source_scale: α > 0, multiplies the positions of the source (CAPE section 5.3; 1.0).
    """

    def __init__(self, stack: StackConfig, source_scale: float = 1.0):
        super().__init__(stack)
        if stack.channels < 4:
            raise ValueError(f"sinusoids need at least 4 channels, not {stack.channels}")
        if not (isinstance(source_scale, (int, float)) and 0 < source_scale < math.inf):
            raise ValueError(f"source scale must be a positive number, not {source_scale}")
        self.scale = 1.0 if stack.decoder else float(source_scale)

    def forward(self, positions: Positions) -> Terms:
        """Return the sinusoids as input term."""
        return self.encode(self.scaled(positions))

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the sinusoids of the positions in evaluation."""
        return ExportedPositions(input=self(Positions.of_length(length)).input[0])

    def scaled(self, positions: Positions) -> Tensor:
        """Return the positions ``(batch, length)`` times α."""
        return positions.numbers * self.scale if self.scale != 1 else positions.numbers

    def encode(self, numbers: Tensor) -> Terms:
        """Return the term of real-valued positions ``(batch, length)``, counted from 0."""
        # term: (batch, length, channels)
        term = sinusoid(numbers + self.stack.first_index, self.stack.channels)
        return Terms(input=term if self.stack.token_std == 1 else term * self.stack.token_std)
