"""Uniform SHAPE: every position is seen about equally often (Peng et al. 2024)."""

from dataclasses import replace
from typing import Optional

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import Positions, StackConfig, Terms
from fairseq_posenc.encodings.batch_rng import end_of_draws, worker_generator
from fairseq_posenc.encodings.sinusoidal import Sinusoidal


class Unifpe(Sinusoidal):
    """Sinusoids shifted so that training sees all of M positions about equally often.

    Peng, Bawden and Yvon 2024, arXiv 2412.17592.
    SHAPE (:class:`Shape`) sees the positions in the middle more often than those at the ends.
    Term: ``input[b, i] = PE(first_index + i + offset_b)``. In training, a sequence has ``l``
    tokens. M positions are cut into ``n = ⌊M / l⌋`` windows of ``l``, with a gap of ``r = M mod l``
    before window ``s``. The sequence stands in window ``k``::

        offset = k · l + r · [k ≥ s]        s, k ~ U{0 … n - 1}
        offset = 0                          if 2 l ≥ M

    In evaluation the offset is 0. Each sequence draws anew in every forward pass. Source and target
    of a pair share the source's offset, the authors' default. Where the target would then end
    beyond M it is moved back until it fits. (The authors' code moves the source with it, which
    our encoder cannot know.)

    Args:
        drawn_below: M: positions are drawn from 0 … M - 1; ``None`` (``auto``) is the longest
            sequence that is trained on, ``--max-source-positions`` or ``--max-target-positions``.
        separate_draws: source and target draw an offset each (off).
    """

    def __init__(
        self, stack: StackConfig, drawn_below: Optional[int] = None, separate_draws: bool = False
    ):
        super().__init__(stack)
        self.drawn_below = end_of_draws(stack, drawn_below)
        self.separate_draws = separate_draws

    def forward(self, positions: Positions) -> Terms:
        """Return the sinusoids of the shifted positions."""
        if not self.training:
            return self.encode(positions.numbers)
        lengths = positions.numbers.amax(dim=1, keepdim=True) + 1  # (batch, 1)
        if self.separate_draws or not positions.shared:
            offset = self.draw(lengths)
        else:
            offset = positions.shared[0].minimum((self.drawn_below - lengths).clamp(min=0))
        terms = self.encode(positions.numbers + offset)
        return terms if self.separate_draws else replace(terms, shared=[offset])

    def draw(self, lengths: Tensor) -> Tensor:
        """Return new offsets ``(batch, 1)`` for sequences of ``(batch, 1)`` tokens."""
        windows = (self.drawn_below / lengths).floor().clamp(min=1)
        generator = worker_generator(lengths.device)
        # two whole numbers of 0 … n - 1; rounding may reach n, hence the minimum
        uniform = torch.rand(len(lengths), 2, generator=generator, device=lengths.device)
        gap, window = (uniform * windows).floor().minimum(windows - 1).split(1, dim=1)
        remainder = self.drawn_below - windows * lengths  # r
        offset = window * lengths + remainder * (window >= gap)
        return offset.masked_fill(2 * lengths >= self.drawn_below, 0).to(lengths.dtype)
