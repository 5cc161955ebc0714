"""Random generators of positions, on one data-parallel worker and on many."""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Iterator, Optional

import torch

from fairseq_posenc.encodings.base import StackConfig

# Odd numbers: seeds differ by batch or worker, and by call, though CPU generators read 32 bits.
_BY_BATCH, _BY_CALL = 0x9E3779B1, 0x85EBCA6B


@dataclass
class Batch:
    """A batch of an update, whichever worker has it.

    Attributes:
        seed: what torch is seeded with at the update, on all workers alike.
        number: of the batch within the update; the first is 0.
        calls: how many generators were made for it so far.
    """

    seed: int
    number: int
    calls: int = 0


_batch: ContextVar[Optional[Batch]] = ContextVar("batch", default=None)


@contextmanager
def positions_of(batch: Batch) -> Iterator[None]:
    """Inside of this, random positions depend on the batch, not on the worker that has it."""
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)


def worker_generator(device: torch.device) -> torch.Generator:
    """Return the random generator that positions are drawn from.

    Its seed comes from torch's own generator, so that a resumed run draws what an unbroken one
    draws. To this is added:

    - outside of :func:`positions_of`, the worker's rank: workers draw different positions;
    - inside, for every batch of an update but the first, the number of the batch: any number of
      workers draws the same.
    """
    seed, batch = int(torch.randint(2**31, ())), _batch.get()
    if batch is None:
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        seed += (torch.distributed.get_rank() if distributed else 0) * _BY_BATCH
    elif batch.number:
        # torch's generator depends on what this worker drew before, so start from the update's seed
        seed = batch.seed + batch.number * _BY_BATCH + batch.calls * _BY_CALL
        batch.calls += 1
    # a generator of its own: however many numbers an encoding draws, dropout goes on alike
    return torch.Generator(device=device).manual_seed(seed % 2**32)


def end_of_draws(stack: StackConfig, drawn_below: Optional[int]) -> int:
    """Return M of encodings that draw positions from 0 … M - 1; ``None`` is the stack's length.

    Raises:
        ValueError: it is no whole number above 0.
    """
    if drawn_below is None:
        return stack.max_length
    if not (isinstance(drawn_below, int) and drawn_below > 0):
        raise ValueError(f"drawn below M must be a whole number above 0, not {drawn_below}")
    return drawn_below
