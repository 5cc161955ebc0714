"""Checks before a training's first update: a folder to write to, samples, workers, schedule."""

import logging
import os
import sys
from typing import Any, Callable

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error
from fairseq_posenc.patching import replace, replaces

logger = logging.getLogger(__name__)
BLEU = "bleu"  # the metric of --eval-bleu


@replaces(checkpoint_utils, "verify_checkpoint_directory")
def _verify_directory(verify: Callable, save_dir: str) -> None:
    """Let fairseq say in one line that it cannot write."""
    try:
        verify(save_dir)
    except OSError as error:
        raise file_error("write to --save-dir", save_dir, error) from None


@replaces(FairseqTask, "filter_indices_by_size")
def _filter_indices(
    filter_indices: Callable,
    task: FairseqTask,
    indices: Any,
    dataset: Any,
    max_positions: Any = None,
    ignore_invalid_inputs: bool = False,
) -> Any:
    """Let fairseq say in one line which samples are too long, and that nothing is left."""
    try:
        remaining = filter_indices(task, indices, dataset, max_positions, ignore_invalid_inputs)
    # bare, of sizes, with advice for data sets
    except Exception as error:
        if not str(error).startswith("Size of sample #"):
            raise
        longest = max(np.max(dataset.size(index)) for index in indices)
        raise UsageError(
            f"a sample has {longest} tokens, more than the {max_positions} that task and model "
            "take: raise --max-source-positions (in Python max_source_positions=) and the like if "
            "the model may, or leave such samples out with --skip-invalid-size-inputs-valid-test"
        ) from None
    if not len(remaining):
        raise UsageError(
            f"nothing is left of {len(dataset)} samples: all are longer than {max_positions} "
            "tokens; raise --max-…-positions, --tokens-per-sample or --max-tokens"
            if len(dataset)
            else "a set of the data has no samples; binarise text that is not empty"
        )
    return remaining


@replaces(data_utils, "batch_by_size")
def _batch_by_size(make_batches: Callable, *args: Any, **limits: Any) -> Any:
    """Let fairseq say in one line that a sample has more tokens than a batch may have."""
    try:
        return make_batches(*args, **limits)
    except AssertionError as error:
        if "max_tokens" not in str(error):
            raise
        raise UsageError(
            f"a sample has more tokens than a batch may have, {limits.get('max_tokens')}: raise "
            "--max-tokens, for validation --max-tokens-valid"
        ) from None


def _first_batch(batches: EpochBatchIterator) -> Any:
    """Say why a small set has no batch; fairseq's own advice is about long samples."""
    if not len(batches.frozen_batches):
        raise UsageError(
            "a set has no batch: fairseq leaves out samples that are too long, and what is then "
            "less than --required-batch-size-multiple, 8 samples by default; raise --max-tokens "
            "and the like, or give --required-batch-size-multiple 1"
        )
    return _FIRST_BATCH.fget(batches)


_FIRST_BATCH: Any = EpochBatchIterator.first_batch
replace(EpochBatchIterator, "first_batch", property(_first_batch))


def patch_valid_stats() -> None:
    """Let the program that trains name a metric that its validation lacks.

    That program is taken from ``sys.modules``: importing it would set up a log, and
    ``fairseq-generate`` has its own.
    """
    program: Any = sys.modules.get("fairseq_cli.train", sys.modules["__main__"])
    valid_stats = getattr(program, "get_valid_stats", None)
    if valid_stats is None or hasattr(valid_stats, "__wrapped__"):
        return

    @replaces(program, "get_valid_stats")
    def get_valid_stats(compute: Callable, cfg: Any, trainer: Any, stats: Any, *args: Any) -> Any:
        if getattr(cfg.task, "eval_bleu", False):
            stats.setdefault(BLEU, 0.0)  # fairseq has none where all translations are empty
        metric = cfg.checkpoint.best_checkpoint_metric
        if metric not in stats:
            raise UsageError(
                f"--best-checkpoint-metric {metric}: the validation has {', '.join(stats)}"
            )
        return compute(cfg, trainer, stats, *args)


@replaces(distributed_utils, "infer_init_method")
def _infer_init_method(infer: Callable, cfg: Any, *args: Any, **kwargs: Any) -> None:
    """Check that fairseq can start the workers that were asked for.

    It starts workers, or finds its place among torchrun's, by counting GPUs. ``cfg`` is fairseq's
    ``DistributedTraining``.

    Raises:
        UsageError: there is no GPU.
    """
    count = cfg.distributed_world_size
    automatic = cfg.distributed_init_method is None and not cfg.tpu and cfg.distributed_port <= 0
    if count > 1 and automatic and not torch.cuda.is_available():
        raise UsageError(f"--distributed-world-size {count}: {_without_gpus(count)}")
    infer(cfg, *args, **kwargs)


def _without_gpus(count: int) -> str:
    return (
        "fairseq sees no GPU, without which it starts no workers and takes none of torchrun; start "
        f"{count} yourself, each with --cpu --ddp-backend legacy_ddp --distributed-backend gloo "
        "--distributed-no-spawn --distributed-init-method tcp://localhost:29500 "
        f"--distributed-world-size {count} and its own --distributed-rank, 0 to {count - 1}"
    )


def check_workers(cfg: Any) -> None:
    """Check that the workers of torchrun train one model.

    fairseq counts the GPUs that a worker sees. Of one that sees its own alone it takes no notice of
    the others, and as many models are trained apart. ``cfg`` is fairseq's ``DistributedTraining``.

    Raises:
        UsageError: torchrun has started several workers, and each is alone.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if "TORCHELASTIC_RUN_ID" in os.environ and cfg.distributed_world_size == 1 < count:
        raise UsageError(
            f"torchrun has started {count} workers, and each would train a model of its own, as it "
            f"sees one GPU; give --distributed-world-size {count}"
            if torch.cuda.is_available()
            else f"torchrun has started {count} workers, and each would train a model of its own: "
            + _without_gpus(count)
        )


def check_metric(cfg: Any) -> None:
    """Check that the metric by which checkpoints are chosen is computed; ``cfg`` is the whole.

    Raises:
        UsageError: it is BLEU, without ``--eval-bleu``.
    """
    is_bleu = cfg.checkpoint.best_checkpoint_metric == BLEU and not cfg.dataset.disable_validation
    if is_bleu and getattr(cfg.task, "eval_bleu", None) is False:
        raise UsageError(
            "--best-checkpoint-metric bleu: give --eval-bleu, by which a validation computes it"
        )


def warn_of_short_training(cfg: Any) -> None:
    """Warn if a training ends before its learning rate has reached its peak, or goes on at 0.

    ``cfg`` is fairseq's whole configuration.
    """
    warm_up = getattr(cfg.lr_scheduler, "warmup_updates", None) or 0
    updates = cfg.optimization.max_update
    if isinstance(warm_up, int) and 0 < updates <= warm_up:
        logger.warning(
            "--max-update %d ends the training within its warm-up (--warmup-updates %d): the "
            "learning rate never reaches its peak; give a shorter warm-up",
            updates,
            warm_up,
        )
    last = getattr(cfg.lr_scheduler, "total_num_update", None) or 0
    is_zero = getattr(cfg.lr_scheduler, "end_learning_rate", None) == 0
    if is_zero and isinstance(last, (int, float)) and 0 < last < updates:
        logger.warning(
            "--max-update %d goes on beyond --total-num-update %d, where the learning rate is 0: "
            "nothing is learned from there on; give both the same number",
            updates,
            last,
        )
