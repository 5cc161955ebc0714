"""Random positions that are the same on any number of workers, in every task."""

import functools
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.encodings import batch_rng


def patch_train_step() -> None:
    """Let every task of fairseq draw random positions by batch, not by worker.

    With ``W`` workers, worker ``r`` has batches ``r``, ``r + W``, … of an update. A training on
    another number of workers, with as many batches in an update, draws the same. Dropout is
    fairseq's, which every worker draws for itself.
    """
    step = FairseqTask.train_step

    @functools.wraps(step)
    def train_step(
        self: Any, sample, model, criterion, optimizer, update_num: int, *args: Any, **kwargs: Any
    ) -> Any:
        update, seed, batches = getattr(self, "_update_batches", (None, 0, 0))
        # the first batch of an update: fairseq's trainer has just seeded torch, by seed and update
        if update_num != update:
            seed, batches = torch.initial_seed(), 0
        self._update_batches = update_num, seed, batches + 1
        group = distributed_utils.get_data_parallel_group()
        workers = distributed_utils.get_world_size(group)
        rank = distributed_utils.get_rank(group) if workers > 1 else 0
        with batch_rng.positions_of(batch_rng.Batch(seed, rank + workers * batches)):
            return step(self, sample, model, criterion, optimizer, update_num, *args, **kwargs)

    FairseqTask.train_step = train_step
