"""Random positions that are the same on any number of workers, in every task."""

from typing import Any, Callable

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.encodings import batch_rng
from fairseq_posenc.patching import replaces


@replaces(FairseqTask, "train_step")
def _train_step(
    step: Callable, task: Any, sample, model, criterion, optimizer, update_num: int, *args, **kwargs
) -> Any:
    """Let every task of fairseq draw random positions by batch, not by worker.

    With ``W`` workers, worker ``r`` has batches ``r``, ``r + W``, … of an update. A training on
    another number of workers, with as many batches in an update, draws the same. Dropout is
    fairseq's, which every worker draws for itself.
    """
    update, seed, batches = getattr(task, "_update_batches", (None, 0, 0))
    # the first batch of an update: fairseq's trainer has just seeded torch, by seed and update
    if update_num != update:
        seed, batches = torch.initial_seed(), 0
    task._update_batches = update_num, seed, batches + 1
    group = distributed_utils.get_data_parallel_group()
    workers = distributed_utils.get_world_size(group)
    rank = distributed_utils.get_rank(group) if workers > 1 else 0
    with batch_rng.positions_of(batch_rng.Batch(seed, rank + workers * batches)):
        return step(task, sample, model, criterion, optimizer, update_num, *args, **kwargs)
