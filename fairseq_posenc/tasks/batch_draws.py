"""What our tasks share: random positions that are the same on any number of workers."""

from importlib.util import find_spec
from typing import Any, Optional

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

from fairseq_posenc.encodings import draws
from fairseq_posenc.errors import UsageError


class BatchDraws(FairseqTask):
    """Base of tasks whose random positions are drawn by batch, not by worker.

    With ``W`` workers, worker ``r`` has batches ``r``, ``r + W``, … of an update. A training on
    another number of workers, with as many batches in an update, draws the same. Dropout is
    fairseq's, which every worker draws for itself.
    """

    _update: Optional[int] = None  # the newest, its seed, and its batches on this worker so far
    _seed, _batches = 0, 0

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model; of a checkpoint, its options say how it was trained, not what is now."""
        if not from_checkpoint:
            refuse_half_precision_on_cpu(cfg)
        return super().build_model(cfg, from_checkpoint)

    def train_step(self, sample, model, criterion, optimizer, update_num: int, *args, **kwargs):
        """Number the batch, and train on it as fairseq does."""
        if update_num != self._update:
            self._update, self._seed, self._batches = update_num, torch.initial_seed(), 0
        group = distributed_utils.get_data_parallel_group()
        workers = distributed_utils.get_world_size(group)
        rank = distributed_utils.get_rank(group) if workers > 1 else 0
        batch = draws.Batch(self._seed, rank + workers * self._batches)
        self._batches += 1
        with draws.positions_of(batch):
            return super().train_step(
                sample, model, criterion, optimizer, update_num, *args, **kwargs
            )


def refuse_half_precision_on_cpu(cfg: Any) -> None:
    """Refuse --fp16 and --bf16 without a GPU, where fairseq fails later and names neither.

    ``cfg`` are the options of ``fairseq-train``, or Hydra's of the model.
    """
    run: Any = cfg._get_root().get("common") if OmegaConf.is_config(cfg) else cfg
    if torch.cuda.is_available() and not getattr(run, "cpu", False) or find_spec("torch_xla"):
        return
    # --memory-efficient-fp16 works on a CPU; fairseq sets fp16 with it
    fp16 = getattr(run, "fp16", False) and not getattr(run, "memory_efficient_fp16", False)
    for name in ("fp16",) * fp16 + ("bf16", "memory_efficient_bf16"):
        if getattr(run, name, False):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} needs a GPU; leave it out on a CPU")
