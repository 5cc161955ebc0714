"""Base of our tasks: random positions that are the same on any number of workers."""

from typing import Optional

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.encodings import batch_rng


class BatchDraws(FairseqTask):
    """Base of tasks whose random positions are drawn by batch, not by worker.

    With ``W`` workers, worker ``r`` has batches ``r``, ``r + W``, … of an update. A training on
    another number of workers, with as many batches in an update, draws the same. Dropout is
    fairseq's, which every worker draws for itself.
    """

    _update: Optional[int] = None  # the newest, its seed, and its batches on this worker so far
    _seed, _batches = 0, 0

    def train_step(self, sample, model, criterion, optimizer, update_num: int, *args, **kwargs):
        """Number the batch, and train on it as fairseq does."""
        if update_num != self._update:
            self._update, self._seed, self._batches = update_num, torch.initial_seed(), 0
        group = distributed_utils.get_data_parallel_group()
        workers = distributed_utils.get_world_size(group)
        rank = distributed_utils.get_rank(group) if workers > 1 else 0
        batch = batch_rng.Batch(self._seed, rank + workers * self._batches)
        self._batches += 1
        with batch_rng.positions_of(batch):
            return super().train_step(
                sample, model, criterion, optimizer, update_num, *args, **kwargs
            )
