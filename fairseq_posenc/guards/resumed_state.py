"""Checks of the state that a resumed training takes over: optimizer, progress, place in epoch.

A wrong value here would end the training later, in the middle of an update, or worse: torch's fused
optimizers write beyond a state that is smaller than its parameter.
"""

import logging
import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.groups import as_dict
from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.guards.save_folder import first_checkpoint
from fairseq_posenc.patching import replaces

logger = logging.getLogger(__name__)

_MOST = 2**31  # of epochs and updates, from which seeds are made
# Adafactor's means over rows and columns; no other optimizer reads them
_FACTORS = ("exp_avg_sq_row", "exp_avg_sq_col")
# What has a number for each of the parameter's. Other tensors may be single numbers, as "step" is.
_OF_EACH_WEIGHT = (
    "exp_avg exp_avg_sq max_exp_avg_sq exp_inf sum momentum_buffer square_avg acc_delta".split()
)
# errors of an optimizer's step; fairseq has answers to those of numbers that overflow
_OF_A_STATE = (
    AttributeError, LookupError, RuntimeError, TypeError, ValueError, ZeroDivisionError
)  # fmt: skip
# with its checkpoint_last.pt in the folder, fairseq would ignore --finetune-from-model
_ADVICE = (
    "take another checkpoint, or its weights alone: --finetune-from-model and another --save-dir"
)


@contextmanager
def average_of_weights(trainer: Any) -> Iterator[None]:
    """Let a moving average (``--store-ema``) begin with the weights of a checkpoint that has none.

    fairseq has deleted these when it looks for them. So it does not look, and the average is built
    of the model that has read them.
    """
    cfg = trainer.cfg
    first = first_checkpoint(cfg.checkpoint, trainer.checkpoint_suffix or "")
    stores_average = cfg.ema.store_ema
    if stores_average and first and os.path.isfile(first.path):
        extra_state = as_dict(as_dict(load_checkpoint(first.path, mmap=True)).get("extra_state"))
        cfg.ema.store_ema = "ema" in extra_state
    try:
        yield
    finally:
        begins, cfg.ema.store_ema = stores_average and not cfg.ema.store_ema, stores_average
    if begins:
        trainer._build_ema()


def warn_of_lost_average(extra_state: Any, trainer: Any) -> None:
    """Warn where a run that has a moving average goes on without ``--store-ema``."""
    if "ema" in (extra_state or {}) and not trainer.cfg.ema.store_ema:
        logger.warning(
            "the checkpoint has a moving average of the weights, which ends here: give "
            "--store-ema, as before, to go on with it"
        )


@replaces(EpochBatchIterator, "state_dict")
def _epoch_state(write: Callable, batches: EpochBatchIterator) -> Dict[str, Any]:
    """Let a checkpoint record how many batches an epoch has, and workers."""
    return {**write(batches), "batches": len(batches.frozen_batches), "workers": batches.num_shards}


@replaces(EpochBatchIterator, "load_state_dict")
def _load_epoch_state(read: Callable, batches: EpochBatchIterator, state: Dict[str, Any]) -> None:
    """Let a training with other batches go on at the same place of its epoch.

    fairseq counts batches of a worker: with batches of half the size, half of what was trained on
    would be trained on again.
    """
    counts: List[Any] = [state.get(name) for name in ("iterations_in_epoch", "batches", "workers")]
    if all(_is_count(count) and count for count in counts):
        batch, before, workers = counts
        batches.epoch = state["epoch"]  # some tasks make batches by it
        # batch · workers / before is the share of the epoch that is done
        passed = batch * workers * len(batches.frozen_batches) // before // batches.num_shards
        state = {**state, "iterations_in_epoch": min(passed, len(batches) - 1)}
    try:
        read(batches, state)
    except RuntimeError:
        raise UsageError(
            f"the epoch has {len(batches)} batches now, fewer than the checkpoint has trained on, "
            "and it does not record how many there were: continue with the --max-tokens, "
            "--batch-size and number of workers of its training, or give --reset-dataloader to "
            "begin the epoch again"
        ) from None


@replaces(FairseqTask, "get_batch_iterator")
def _get_batch_iterator(
    iterate: Callable, task: FairseqTask, dataset: Any, *args: Any, epoch: int = 1, **kwargs: Any
) -> EpochBatchIterator:
    """Let a run that is resumed have the batches of an unbroken one.

    fairseq's fork groups sentences of equal lengths by the epoch in which a run starts, where it
    keeps the batches for all epochs.
    """
    made_anew = kwargs.get("update_epoch_batch_itr") or kwargs.get("disable_iterator_cache")
    if made_anew or not task.can_reuse_epoch_itr(dataset):
        return iterate(task, dataset, *args, epoch=epoch, **kwargs)
    cached = task.dataset_to_epoch_iter.get(dataset)
    iterator = iterate(task, dataset, *args, epoch=1, **kwargs)
    if iterator is not cached:
        iterator.epoch = epoch
        dataset.set_epoch(epoch)
    return iterator


def check_progress(extra_state: Any, trainer: Any) -> None:
    """Check how far a training had come, after fairseq has put it back.

    Args:
        extra_state: fairseq's; None if no training is resumed.
        trainer: fairseq's, with the state that it has loaded.

    Raises:
        UsageError: a value is of another type than fairseq writes.
    """
    if extra_state is None:
        return
    iterator, meters = extra_state["train_iterator"], extra_state.get("metrics", {})
    checks = {
        "epoch": _is_count(iterator["epoch"]),
        "iterations_in_epoch": _is_count(iterator.get("iterations_in_epoch", 0)),
        "shuffle": isinstance(iterator.get("shuffle", True), bool),
        "num_updates": _is_count(trainer.get_num_updates()),
        "best": _is_number(extra_state.get("best", 0)),
        "previous_training_time": _is_number(extra_state.get("previous_training_time", 0)),
        "lr_scheduler_state": _has_numbers_alone(trainer.lr_scheduler.state_dict()),
        "metrics": meters.get("default", True)
        and _has_numbers_alone([meter[3] for group in meters.values() for meter in group]),
    }
    for name, is_right in checks.items():
        if not is_right:
            raise UsageError(f"the checkpoint's {name} is not what a training has; {_ADVICE}")


def end_if_complete(extra_state: Any, trainer: Any) -> None:
    """Train nothing where the updates of ``--max-update`` are done.

    fairseq looks after an update, and so each start of a run that has ended would train one more.
    """
    updates, last = trainer.get_num_updates(), trainer.cfg.optimization.max_update
    if extra_state is not None and 0 < last <= updates:
        logger.info("%d updates are done, and --max-update is %d: nothing is left", updates, last)
        trainer.cfg.optimization.max_epoch = -1  # 0 would be no end


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < _MOST


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float, np.number))
    return is_number or (isinstance(value, Tensor) and value.numel() == 1)


def _has_numbers_alone(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return all(_has_numbers_alone(inner) for inner in value)
    if isinstance(value, np.ndarray):  # the counts of --eval-bleu
        return value.dtype.kind in "iuf"
    return value is None or _is_number(value) or isinstance(value, Tensor)


def checked_optimizer_state(own: List[Dict[str, Any]], state: Any) -> Dict[str, Any]:
    """Return the state that an optimizer may take from a checkpoint.

    Numbers such as the learning rate are the checkpoint's. What is on or off in the run stays so:
    ``fused``, ``foreach``, ``capturable`` and others choose among torch's implementations.

    Args:
        own: the parameter groups of the optimizer.
        state: of the optimizer, as in the checkpoint.

    Raises:
        UsageError: it is the state of other parameters.
    """
    try:
        groups, states = list(state["param_groups"]), dict(state["state"])
        sizes = [len(group["params"]) for group in groups]
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"the checkpoint has no state of an optimizer; {_ADVICE}") from None
    if sizes != [len(group["params"]) for group in own]:
        raise UsageError(f"the optimizer's state is that of another model; {_ADVICE}")
    parameters: Dict[Any, Tensor] = {}
    checked = []
    for group, saved in zip(own, groups):
        numbers = {name: saved[name] for name in group if _are_alike(group[name], saved.get(name))}
        checked.append({**group, **numbers, "params": saved["params"]})
        parameters.update(zip(saved["params"], group["params"]))
    for key in parameters.keys() & states.keys():
        for name, value in states[key].items() if isinstance(states[key], dict) else ():
            if not isinstance(value, Tensor) or name in _FACTORS:
                continue  # an optimizer itself refuses a wrong one
            is_single = value.dim() == 0 and name not in _OF_EACH_WEIGHT
            if not is_single and value.shape != parameters[key].shape:
                raise UsageError(f"the optimizer's {name} does not fit its parameter; {_ADVICE}")
    of_parameters = {key: states[key] for key in parameters if key in states}
    return {**state, "state": of_parameters, "param_groups": checked}


def _are_alike(value: Any, saved: Any) -> bool:
    """Return whether both are a number, or lists of as many."""
    if isinstance(value, (list, tuple)):
        is_list = isinstance(saved, (list, tuple)) and len(saved) == len(value)
        return is_list and all(map(_are_alike, value, saved))
    return all(type(number) in (int, float) for number in (value, saved))


def check_first_step(optimizer: Any) -> None:
    """Let an optimizer say in one line that the loaded state is not one of its own.

    Only an optimizer itself knows its state.
    """
    step = optimizer.step

    def first_step(*args: Any, **kwargs: Any) -> Any:
        del optimizer.step  # the class's own from now on
        try:
            return step(*args, **kwargs)
        except _OF_A_STATE as error:
            if "out of memory" in str(error):
                raise  # fairseq has an answer to it
            reason = f"{type(error).__name__}: {first_line(error):.200}"
            raise UsageError(
                f"the optimizer cannot go on with the checkpoint's state ({reason}); {_ADVICE}"
            ) from error

    optimizer.step = first_step
