"""What random positions are drawn from, on one data-parallel worker and on many."""

from typing import Optional

import torch

_batch_seed: Optional[int] = None  # of the newest batch, if its task seeds batches
# Odd: seeds of all batches differ, though CPU generators read 32 bits of them.
_FACTOR = 0x9E3779B1


def worker_rank() -> int:
    """Return the number of this data-parallel worker, 0 if it is the only one."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if distributed else 0


def seed_batch(seed: int, number: int) -> None:
    """Seed torch for a batch, so that what is drawn does not depend on the worker that has it.

    Args:
        seed: of the update; fairseq has seeded torch with it, on all workers alike.
        number: of the batch within the update; the first keeps fairseq's seed.
    """
    global _batch_seed
    if number:
        _batch_seed = (seed + number * _FACTOR) % 2**32
        torch.manual_seed(_batch_seed)


def worker_generator(device: torch.device) -> torch.Generator:
    """Return a random generator that no other data-parallel worker shares.

    Its seed comes from torch's generator, so that a resumed run draws what an unbroken one draws,
    and, unless :func:`seed_batch` has done so, from the worker's rank.
    """
    seed = int(torch.randint(2**31, ()))
    rank = 0 if torch.initial_seed() == _batch_seed else worker_rank()
    return torch.Generator(device=device).manual_seed((seed + rank * _FACTOR) % 2**32)
