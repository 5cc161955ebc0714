"""fairseq's own loading made safe: by our reader, with checked options, errors in one line."""

import functools
import os
import shlex
from contextlib import contextmanager
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.optim import FairseqOptimizer
from fairseq.tasks import FairseqTask

from fairseq_posenc.checkpoints.reader import load_checkpoint
from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.guards import same_run, save_folder, scoring, source_bos, starting
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.guards.resuming import (
    check_first_step,
    check_progress,
    checked_optimizer_state,
    keep_place_in_epoch,
)

# those that look at each checkpoint that is read now
_Comparison = Union[same_run.SameRun, same_run.SameLanguages]
_comparisons: List[_Comparison] = []


class _TorchWith:
    """torch with another ``load``, for a module of fairseq to use."""

    def __init__(self, load: Callable):
        self.load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _use_checked_load(named: Mapping[str, Any]) -> None:
    """Let fairseq read checkpoints by our reader; ``named`` are options that the caller gives."""

    def load(stream: BinaryIO, **_: Any) -> Dict[str, Any]:
        state = load_checkpoint(stream.name)
        whole = dict(state) if isinstance(state, dict) else state
        of_training = any(getattr(one, "of_training", False) for one in _comparisons)
        check_options(state, stream.name, named, builds=not of_training)
        for comparison in _comparisons:
            comparison.check(whole, stream.name)
        source_bos.record(state)
        return state

    checkpoint_utils.torch = _TorchWith(load)


@contextmanager
def _comparing(*comparisons: _Comparison) -> Iterator[None]:
    """Compare what is read meanwhile."""
    _comparisons.extend(comparisons)
    try:
        yield
    finally:
        for comparison in comparisons:
            _comparisons.remove(comparison)


def make_loading_safe() -> None:
    """Let fairseq's programs load as :func:`load_checkpoint`, with checked options, in one line."""
    if hasattr(checkpoint_utils.load_checkpoint, "__wrapped__"):
        return
    _check_what_is_used()
    _check_what_is_resumed()
    keep_place_in_epoch()
    starting.check_what_starts()
    scoring.check_what_is_scored()
    # what one worker sends the others when a run is resumed holds options, which torch ≥ 2.6
    # takes for a stranger's
    distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


def _check_what_is_used() -> None:
    """Check checkpoints and folders that models are loaded from."""
    read = checkpoint_utils.load_checkpoint_to_cpu
    build = checkpoint_utils.load_model_ensemble_and_task

    @functools.wraps(read)
    def load_checkpoint_to_cpu(
        path: str, arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any
    ) -> Dict[str, Any]:
        _use_checked_load(arg_overrides or {})
        try:
            return read(path, arg_overrides, *args, **kwargs)
        except UsageError:
            raise
        except OSError as error:
            raise UsageError(f"cannot read checkpoint {path}: {error.strerror or error}") from None
        # what fairseq makes of odd content ends in any error
        except Exception as error:
            raise UsageError(
                f"{path} is not a fairseq checkpoint ({type(error).__name__}: "
                f"{first_line(error):.200})"
            ) from None
        finally:
            _use_checked_load({})

    @functools.wraps(build)
    def load_model_ensemble_and_task(
        filenames: Sequence[str],
        arg_overrides: Optional[Dict[str, Any]] = None,
        task: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if task is None and not (arg_overrides or {}).get("data"):
            raise UsageError(
                "give the folder of the data, which is not taken from a checkpoint: "
                'arg_overrides={"data": "bin"}'
            )
        for name in filenames:
            _check_no_shard(name)
        if task is None:
            scoring.check_dictionary(filenames[0], str((arg_overrides or {})["data"]))
        compared: List[_Comparison] = [same_run.SameLanguages(task, arg_overrides or {})]
        compared += [same_run.SameRun(same_run.ENSEMBLE)] if len(filenames) > 1 else []
        cannot = f"{os.pathsep.join(filenames)} cannot be loaded"
        with one_line(cannot), _comparing(*compared):
            models, cfg, task = build(filenames, arg_overrides, task, *args, **kwargs)
            source_bos.check_task(cfg.model, task)
            if isinstance(task, FairseqTask):
                scoring.read_whole(task)
            return models, cfg, task

    _use_checked_load({})
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    checkpoint_utils.load_model_ensemble_and_task = load_model_ensemble_and_task
    file_utils.load_archive_file = check_folder


def _check_what_is_resumed() -> None:
    """Check where a training begins, what it writes over, and the state that it takes over."""
    begin, take_state = checkpoint_utils.load_checkpoint, FairseqOptimizer.load_state_dict

    @functools.wraps(begin)
    def load_checkpoint_to_train(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        with one_line("cannot begin or continue the training"):
            starting.check_workers(trainer.cfg.distributed_training)
            resumed = save_folder.check_start(cfg, trainer.checkpoint_suffix or "")
            if distributed_utils.is_master(trainer.cfg.distributed_training) and not cfg.no_save:
                save_folder.lock(cfg.save_dir)
            own = same_run.of_training(trainer)
            way = same_run.way_of(cfg, resumed, hasattr(trainer.get_model(), "begun"))
            compared: List[_Comparison] = [same_run.SameRun(way, "this run", same_run.told(own))]
            if not resumed:
                compared.append(same_run.SameLanguages(trainer.task, fine_tuning=True))
            with _comparing(*compared):
                extra_state, batches = begin(cfg, trainer, **kwargs)
            check_progress(extra_state, trainer)
            same_run.record(trainer, own)
            starting.warn_of_short_training(trainer.cfg)
            return extra_state, batches

    @functools.wraps(take_state)
    def load_optimizer_state(
        self: FairseqOptimizer, state_dict: Any, optimizer_overrides: Any = None
    ) -> None:
        checked = checked_optimizer_state(self.optimizer.param_groups, state_dict)
        take_state(self, checked, optimizer_overrides)
        check_first_step(self)

    checkpoint_utils.load_checkpoint = load_checkpoint_to_train
    FairseqOptimizer.load_state_dict = load_optimizer_state  # all others end there


def _check_no_shard(path: str) -> None:
    """Refuse a checkpoint with a first shard beside it, which fairseq would load in its place."""
    shard = f"{path[: -len('.pt')]}-shard0.pt"
    if os.path.exists(path) and os.path.exists(shard):
        raise UsageError(
            f"there are both {path} and {shard}, and fairseq would load the second; move the one "
            "that is not meant to another folder"
        )


def check_folder(name: str, content: str = "a model") -> str:
    """Return the name of a folder, which must be there.

    It stands in for a function of fairseq that fetches addresses, unpacks archives to wherever
    their names lead, and deletes them.

    Raises:
        UsageError: it is an address, an archive or another file, or missing.
    """
    if os.path.isdir(name):
        return name
    quoted = shlex.quote(name)
    if "://" in name:
        raise UsageError(
            f"{name} is an address; download and unpack it first, and give the folder: "
            f"posenc prepare download --output model.archive --unpack model {quoted}"
        )
    if os.path.exists(name):
        raise UsageError(
            f"{name} is not a folder; if it is an archive, unpack it first, and give the folder: "
            f"mkdir model && tar -xf {quoted} -C model"
        )
    raise UsageError(f"there is no folder {name} with {content}")


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Turn any error into one line.

    Raises:
        UsageError: ``what`` cannot be done, and why.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if isinstance(error.__context__, UsageError):
            # what a model says of a checkpoint; fairseq says less
            raise error.__context__ from None
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise UsageError(f"{what}: {reason}") from error
