"""What random positions are drawn from, on one data-parallel worker and on many."""

from dataclasses import dataclass

import torch

# Odd: seeds differ by batch or worker, and by call, though CPU generators read 32 bits of them.
_BY_BATCH, _BY_CALL = 0x9E3779B1, 0x85EBCA6B


@dataclass
class Batch:
    """A batch of an update, whichever worker has it.

    Attributes:
        seed: what torch is seeded with at the update, on all workers alike; -1 for none.
        number: of the batch within the update.
        calls: how often something was drawn for it.
    """

    seed: int = -1
    number: int = 0
    calls: int = 0


current_batch = Batch()


def worker_generator(device: torch.device) -> torch.Generator:
    """Return a random generator that no other data-parallel worker shares.

    Its seed comes from torch's generator, so that a resumed run draws what an unbroken one draws,
    and from the worker's rank. Where a task tells the ``current_batch``, it follows from that
    alone, so that any number of workers draw the same; the first batch keeps torch's seed.
    """
    seed, batch = int(torch.randint(2**31, ())), current_batch
    if torch.initial_seed() != batch.seed:
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        seed += (torch.distributed.get_rank() if distributed else 0) * _BY_BATCH
    elif batch.number:
        seed = batch.seed + batch.number * _BY_BATCH + batch.calls * _BY_CALL
        batch.calls += 1
    return torch.Generator(device=device).manual_seed(seed % 2**32)
