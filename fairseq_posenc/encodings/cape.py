"""CAPE: continuous augmented positional embeddings (Likhomanenko et al. 2021)."""

import functools
import logging
import math
from dataclasses import replace
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import ExportedPositions, Positions, StackConfig, Terms
from fairseq_posenc.encodings.batch_rng import worker_generator
from fairseq_posenc.encodings.sinusoidal import Sinusoidal

logger = logging.getLogger(__name__)
_KEEPS_ORDER = 0.5  # "maximum to preserve positions order" (D.1)


class Draws(NamedTuple):
    """Random numbers of one forward pass."""

    global_shift: Tensor  # Δ (batch, 1)
    local_shift: Tensor  # ε (batch, length)
    log_scale: Tensor  # log λ (batch, 1)


class Cape(Sinusoidal):
    """Sinusoids of augmented positions (CAPE, sections 4 and 5.3, appendices A and D.1).

    Term: ``input[b, i] = PE(first_index + p'_i)`` with, in training::

        p'_i = (α · i + Δ_b + ε_{b,i}) · λ_b
        Δ_b ~ U(-Δmax, Δmax)   ε_{b,i} ~ U(-εmax, εmax)   log λ_b ~ U(-log λmax, log λmax)

    Source and target of a sentence pair share Δ and λ. ε is drawn per token and side. In evaluation
    nothing is drawn and ``p'_i = α · i``. Positions count from 0, so that α leaves the first source
    token at the place of the first target token (D.1). A decoder without an encoder draws its own.

    Args:
        global_shift: Δmax ≥ 0 (5.0, the best for 6+6 layers, first version of the paper, D.1).
        local_shift: εmax ≥ 0 (0.5, the most that keeps the order of positions).
        global_scale: λmax ≥ 1 (1.0, as for translation).
        source_scale: α > 0: target tokens / source tokens of the training corpus (1.0).
        mean_normalize: subtract the mean position first, in encoders alone (off, as for text in
            the paper).
    """

    def __init__(
        self,
        stack: StackConfig,
        global_shift: float = 5.0,
        local_shift: float = 0.5,
        global_scale: float = 1.0,
        source_scale: float = 1.0,
        mean_normalize: bool = False,
    ):
        super().__init__(stack, source_scale)
        for name, value in (("global", global_shift), ("local", local_shift)):
            if not (0 <= value < math.inf):
                raise ValueError(f"{name} shift must be 0 or more, not {value}")
        if local_shift > _KEEPS_ORDER:
            _warn_of_lost_order(local_shift)
        if not (1 <= global_scale < math.inf):
            raise ValueError(f"global scale λmax must be 1 or more, not {global_scale}")
        if mean_normalize and stack.decoder:
            raise ValueError(
                "mean normalization needs the whole sequence, which a decoder does not have; "
                "leave it off for translation"
            )
        self.global_shift = float(global_shift)
        self.local_shift = float(local_shift)
        self.log_scale = math.log(global_scale)
        self.mean_normalize = mean_normalize

    def forward(self, positions: Positions) -> Terms:
        """Return the sinusoids of the positions, augmented in training."""
        numbers = self.scaled(positions)  # α · i: (batch, length)
        if self.mean_normalize:
            numbers = _centred(numbers, positions.padding_mask)
        if not self.training:
            return self.encode(numbers)
        draws = self.draw(positions)
        # Δ and λ (batch, 1) move all tokens of a sentence alike, ε (batch, length) each by itself
        numbers = (numbers + draws.global_shift + draws.local_shift) * draws.log_scale.exp()
        return replace(self.encode(numbers), shared=[draws.global_shift, draws.log_scale])

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the sinusoids of the positions in evaluation.

        Raises:
            ValueError: they depend on the length of the sequence.
        """
        if self.mean_normalize:
            raise ValueError("mean normalization makes positions depend on the sentence's length")
        return super().export_tables(length)

    def draw(self, positions: Positions) -> Draws:
        """Draw new numbers, but take over those that the other side of the model has drawn."""
        numbers = positions.numbers
        generator = worker_generator(numbers.device)

        def uniform(bound: float, *shape: int) -> Tensor:
            drawn = torch.rand(
                shape, generator=generator, device=numbers.device, dtype=numbers.dtype
            )
            return (2 * drawn - 1) * bound

        batch, length = numbers.shape
        local_shift = uniform(self.local_shift, batch, length)
        if positions.shared:
            global_shift, log_scale = positions.shared
        else:
            global_shift = uniform(self.global_shift, batch, 1)
            log_scale = uniform(self.log_scale, batch, 1)
        return Draws(global_shift, local_shift, log_scale)


@functools.cache  # once, not for each side of a model
def _warn_of_lost_order(local_shift: float) -> None:
    logger.warning(
        "the local shift εmax of %g moves neighbouring tokens past each other in training, so that "
        "their order is lost; up to %g keeps it",
        local_shift,
        _KEEPS_ORDER,
    )


def _centred(numbers: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
    """Subtract from each row of ``(batch, length)`` the mean over its real tokens."""
    if padding_mask is None:
        return numbers - numbers.mean(dim=1, keepdim=True)
    real = (~padding_mask).to(numbers.dtype)
    total = real.sum(dim=1, keepdim=True).clamp(min=1)
    return numbers - (numbers * real).sum(dim=1, keepdim=True) / total
