"""Randomness that is the same on any number of workers."""

from typing import Optional

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.encodings.draws import seed_batch, worker_rank


class BatchSeeds(FairseqTask):
    """Base of tasks whose dropout and positions are drawn by batch, not by worker.

    fairseq seeds torch at each update, on all workers alike. With ``W`` workers, worker ``r`` has
    batches ``r``, ``r + W``, … of an update: each of them but the first gets a seed of its own, so
    that a training on another number of workers, with as many batches in an update, is the same.
    """

    _update: Optional[int] = None  # the newest, its seed, and its batches on this worker so far
    _seed, _batches = 0, 0

    def train_step(self, sample, model, criterion, optimizer, update_num: int, *args, **kwargs):
        """Seed torch for the batch, and train on it as fairseq does."""
        if update_num != self._update:
            self._update, self._seed, self._batches = update_num, torch.initial_seed(), 0
        workers = distributed_utils.get_data_parallel_world_size()
        seed_batch(self._seed, worker_rank() + workers * self._batches)
        self._batches += 1
        return super().train_step(sample, model, criterion, optimizer, update_num, *args, **kwargs)
