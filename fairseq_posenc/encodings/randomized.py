"""Other encodings at random, rising positions in training (Ruoss et al. 2023)."""

from dataclasses import replace
from typing import Dict, Optional, Type

import torch
from torch import Tensor

from fairseq_posenc.encodings.alibi import Alibi
from fairseq_posenc.encodings.base import Encoding, ExportedPositions, Positions, StackConfig, Terms
from fairseq_posenc.encodings.batch_rng import end_of_draws, worker_generator
from fairseq_posenc.encodings.by_distance import ByDistance, scalars_of, to_toeplitz
from fairseq_posenc.encodings.kerple import Kerple
from fairseq_posenc.encodings.rotary import Rotary
from fairseq_posenc.encodings.sinusoidal import Sinusoidal
from fairseq_posenc.encodings.t5 import T5

INNER: Dict[str, Type[Encoding]] = {
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "alibi": Alibi,
    "t5": T5,
    "kerple": Kerple,
}


class Randomized(Encoding):
    """Another encoding, whose positions are a sorted random subset of 0 … M - 1 in training.

    Ruoss et al. 2023, section 3. In training a sequence of ``l`` tokens stands at ``l`` positions
    that are drawn from 0 … M - 1 without replacement and sorted. In this way distant positions and
    long distances are trained, though sequences are short. Every forward pass draws anew, source
    and target each for itself. In evaluation positions are 0 … l - 1, and so they are for a batch
    whose longest sequence has more than M tokens.

    With sinusoids inside, each sequence has a draw; with rotary positions, the batch has one. With
    biases by distance, *distances* are drawn, as in the authors' code
    (google-deepmind/randomized_positional_encodings): 0, and ``l - 1`` of 1 … M - 1, rising. Equal
    distances of a pass stay equal. Distances to later tokens are their mirror image: a reading.

    Args:
        inner: the encoding, with its own defaults: ``sinusoidal``, ``rotary``, ``alibi``, ``t5`` or
            ``kerple`` (sinusoidal).
        drawn_below: M (2048, as in the paper); ``None`` (``auto``) is the longest sequence that is
            trained on.
    """

    def __init__(
        self, stack: StackConfig, inner: str = "sinusoidal", drawn_below: Optional[int] = 2048
    ):
        super().__init__(stack)
        if inner not in INNER:
            raise ValueError(f"inner must be one of {', '.join(INNER)}, not {inner}")
        self.inner = INNER[inner](stack)
        self.drawn_below = end_of_draws(stack, drawn_below)

    @property
    def in_evaluation(self) -> Encoding:
        """The inner encoding."""
        return self.inner

    def forward(self, positions: Positions) -> Terms:
        """Return the inner encoding's terms, in training those of drawn positions."""
        numbers = positions.numbers
        step_by_step, longest = positions.cache is not None, numbers.size(1)
        if not self.training or step_by_step or longest > self.drawn_below:
            return self.inner(positions)
        if isinstance(self.inner, Sinusoidal):
            rows = self.draw(numbers.amax(dim=1).long() + 1)  # (batch, M)
            drawn = rows.gather(1, numbers.long())
        else:
            length = torch.full((1,), longest, device=numbers.device)
            if isinstance(self.inner, ByDistance):
                return self._biases(self.inner, self.draw(length - 1, 1)[0, : longest - 1])
            drawn = self.draw(length)[:, :longest].expand_as(numbers)
        return self.inner(replace(positions, numbers=drawn.to(numbers.dtype)))

    def draw(self, lengths: Tensor, first: int = 0) -> Tensor:
        """Return ``(rows, M - first)``: in row r ``lengths[r]`` rising numbers of first … M - 1,
        and M behind them.
        """
        generator = worker_generator(lengths.device)
        shape = (len(lengths), self.drawn_below - first)
        noise = torch.rand(shape, generator=generator, device=lengths.device)
        order = first + noise.argsort(dim=1)  # of each row's numbers, a random one
        columns = torch.arange(shape[1], device=lengths.device)
        # the first of a random order are a draw without replacement; M takes the place of the rest
        # and is sorted to the end
        left_out = columns >= lengths.unsqueeze(1)
        return order.masked_fill(left_out, self.drawn_below).sort(dim=1).values

    def _biases(self, inner: ByDistance, distances: Tensor) -> Terms:
        """Return biases of a sequence at drawn distances instead of 1, 2, …, ``(length - 1,)``."""
        most, length = self.drawn_below, len(distances) + 1
        # scalars: (layers or 1, heads or 1, 2 M - 1), by falling distance from M - 1
        scalars = inner.bias_by_distance(most, most)
        # from the farthest key before a query to the farthest after it
        falling = torch.cat([distances.flip(0), distances.new_zeros(1), -distances])
        chosen = scalars_of(scalars, most - 1 - falling)  # (…, 2 length - 1)
        biases = [to_toeplitz(layer, length, length) for layer in chosen.unbind()]
        return Terms.of_biases(self.stack, biases)

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the inner encoding's tables."""
        return self.inner.export_tables(length)
