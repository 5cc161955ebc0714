"""SHAPE: shifted absolute positions (Kiyono et al. 2021)."""

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import Positions, StackConfig, Terms
from fairseq_posenc.encodings.batch_rng import worker_generator
from fairseq_posenc.encodings.sinusoidal import Sinusoidal


class Shape(Sinusoidal):
    """Sinusoids shifted by one random offset per sequence (SHAPE, section 2.3, eq. 2).

    Term: ``input[b, i] = PE(first_index + α · i + k_b)``. In training ``k_b`` is drawn uniformly
    from the integers 0…K, both included, for each sequence in every forward pass, independently
    for source and target. In evaluation ``k`` is constant: 0 in the paper, K in the authors' code.

    Args:
        max_shift: K ≥ 0 (500, section 3.1).
        eval_shift: the offset in evaluation (0).
        source_scale: α, see :class:`Sinusoidal`; not in the paper.
    """

    def __init__(
        self,
        stack: StackConfig,
        max_shift: int = 500,
        eval_shift: int = 0,
        source_scale: float = 1.0,
    ):
        super().__init__(stack, source_scale)
        for name, value in (("max shift K", max_shift), ("eval shift", eval_shift)):
            if not (isinstance(value, int) and value >= 0):
                raise ValueError(f"{name} must be a whole number, 0 or more, not {value}")
        self.max_shift = max_shift
        self.eval_shift = eval_shift

    def forward(self, positions: Positions) -> Terms:
        """Return the sinusoids of the shifted positions."""
        # shift: (batch, 1), the same for all tokens of a sequence; or a number in evaluation
        shift = self.draw(positions.numbers) if self.training else self.eval_shift
        return self.encode(self.scaled(positions) + shift)

    def draw(self, numbers: Tensor) -> Tensor:
        """Return new offsets ``(batch, 1)`` for positions ``(batch, length)``."""
        generator = worker_generator(numbers.device)
        shape = (numbers.size(0), 1)
        shift = torch.randint(self.max_shift + 1, shape, generator=generator, device=numbers.device)
        return shift.to(numbers.dtype)
