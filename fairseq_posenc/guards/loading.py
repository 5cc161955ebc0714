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
from fairseq_posenc.guards import (
    precision,
    run_comparison,
    save_folder,
    saving,
    scoring,
    source_bos,
    training_start,
)
from fairseq_posenc.guards.languages import LanguageComparison
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.guards.resumed_state import (
    average_of_weights,
    check_first_step,
    check_progress,
    checked_optimizer_state,
    end_if_complete,
    patch_batches,
    patch_epoch_position,
    warn_of_lost_average,
)
from fairseq_posenc.guards.run_comparison import RunComparison

_Comparison = Union[
    RunComparison, LanguageComparison, precision.PrecisionComparison, precision.TrainingPrecision
]
# comparisons with each checkpoint that is read now
_comparisons: List[_Comparison] = []


class _TorchWithLoad:
    """torch with another ``load``, for a module of fairseq to use."""

    def __init__(self, load: Callable):
        self.load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _use_checked_load(overrides: Mapping[str, Any]) -> None:
    """Let fairseq read checkpoints by our reader; ``overrides`` are the caller's options."""

    def load(stream: BinaryIO, **_: Any) -> Dict[str, Any]:
        state = load_checkpoint(stream.name)
        # before check_options takes out options that are not to be built from
        unsanitised = dict(state) if isinstance(state, dict) else state
        in_training = any(getattr(c, "with_training", False) for c in _comparisons)
        check_options(state, stream.name, overrides, builds=not in_training)
        for comparison in _comparisons:
            comparison.check(unsanitised, stream.name)
        source_bos.record_option(state)
        return state

    checkpoint_utils.torch = _TorchWithLoad(load)


@contextmanager
def _comparing(*comparisons: _Comparison) -> Iterator[None]:
    """Compare the checkpoints that are read inside of this."""
    _comparisons.extend(comparisons)
    try:
        yield
    finally:
        for comparison in comparisons:
            _comparisons.remove(comparison)


def install_loading_patches() -> None:
    """Let fairseq's programs load as :func:`load_checkpoint`, with errors in one line."""
    if hasattr(checkpoint_utils.load_checkpoint, "__wrapped__"):
        return
    _patch_model_loading()
    _patch_training_start()
    patch_epoch_position()
    patch_batches()
    training_start.patch_start()
    training_start.patch_first_batch()
    training_start.patch_batches_of_tokens()
    saving.patch_saving()
    scoring.patch_scoring()
    # the object that a worker sends the others when a run is resumed holds options, which torch
    # ≥ 2.6 does not load from untrusted files
    distributed_utils.torch = _TorchWithLoad(functools.partial(torch.load, weights_only=False))


def _patch_model_loading() -> None:
    """Let fairseq check the checkpoints and folders that it loads models from."""
    original_read = checkpoint_utils.load_checkpoint_to_cpu
    original_build = checkpoint_utils.load_model_ensemble_and_task

    @functools.wraps(original_read)
    def load_checkpoint_to_cpu(
        path: str, arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any
    ) -> Dict[str, Any]:
        _use_checked_load(arg_overrides or {})
        try:
            return original_read(path, arg_overrides, *args, **kwargs)
        except UsageError:
            raise
        except OSError as error:
            raise UsageError(f"cannot read checkpoint {path}: {error.strerror or error}") from None
        # odd content ends in any error in fairseq
        except Exception as error:
            raise UsageError(
                f"{path} is not a fairseq checkpoint ({type(error).__name__}: "
                f"{first_line(error):.200})"
            ) from None
        finally:
            _use_checked_load({})

    @functools.wraps(original_build)
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
        trained = precision.TrainingPrecision()
        comparisons: List[_Comparison] = [LanguageComparison(task, arg_overrides or {}), trained]
        if len(filenames) > 1:
            comparisons.append(RunComparison(run_comparison.ENSEMBLE))
        cannot = f"{os.pathsep.join(filenames)} cannot be loaded"
        with one_line(cannot), _comparing(*comparisons):
            models, cfg, task = original_build(filenames, arg_overrides, task, *args, **kwargs)
            source_bos.check_task(cfg.model, task)
            trained.log()
            if isinstance(task, FairseqTask):
                scoring.patch_task_to_read_all(task)
            return models, cfg, task

    _use_checked_load({})
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    checkpoint_utils.load_model_ensemble_and_task = load_model_ensemble_and_task
    file_utils.load_archive_file = check_folder


def _patch_training_start() -> None:
    """Let fairseq check what a training begins with and writes over, and its optimizer's state."""
    original_load = checkpoint_utils.load_checkpoint
    original_load_state = FairseqOptimizer.load_state_dict

    @functools.wraps(original_load)
    def load_checkpoint_to_train(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        with one_line("cannot begin or continue the training"):
            # what needs no checkpoint comes first: it fails at once
            training_start.patch_valid_stats()
            training_start.check_workers(trainer.cfg.distributed_training)
            training_start.check_metric(trainer.cfg)
            # whether it is resumed decides below which options may differ
            resumed = save_folder.check_start(cfg, trainer.checkpoint_suffix or "")
            if distributed_utils.is_master(trainer.cfg.distributed_training) and not cfg.no_save:
                save_folder.lock(cfg.save_dir)
            metadata = run_comparison.training_metadata(trainer)
            is_ours = hasattr(trainer.get_model(), "initial_checkpoint")
            policy = run_comparison.policy_for(cfg, resumed, is_ours)
            reference = run_comparison.run_metadata(metadata)
            record = precision.training_record(trainer)
            comparisons: List[_Comparison] = [RunComparison(policy, "this run", reference)]
            if resumed:
                comparisons.append(precision.PrecisionComparison(record["precision"]))
            else:
                comparisons.append(LanguageComparison(trainer.task, fine_tuning=True))
            with _comparing(*comparisons), average_of_weights(trainer):
                extra_state, batches = original_load(cfg, trainer, **kwargs)
            # progress is known once fairseq has put it back
            check_progress(extra_state, trainer)
            if resumed:
                warn_of_lost_average(extra_state, trainer)
                end_if_complete(extra_state, trainer)
            run_comparison.attach_run_metadata(trainer, {**metadata, precision.KEY: record})
            training_start.warn_of_short_training(trainer.cfg)
            return extra_state, batches

    @functools.wraps(original_load_state)
    def load_optimizer_state(
        self: FairseqOptimizer, state_dict: Any, optimizer_overrides: Any = None
    ) -> None:
        checked = checked_optimizer_state(self.optimizer.param_groups, state_dict)
        original_load_state(self, checked, optimizer_overrides)
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
        UsageError: it is an address, a checkpoint, an archive or another file, or missing.
    """
    if os.path.isdir(name):
        return name
    quoted = shlex.quote(name)
    if "://" in name:
        raise UsageError(
            f"{name} is an address; download and unpack it first, and give the folder: "
            f"posenc prepare download --output model.archive --unpack model {quoted}"
        )
    if name.endswith(".pt") and os.path.exists(name):
        folder, file = os.path.split(name)
        raise UsageError(
            f"{name} is a checkpoint: give its folder and its name, "
            f"from_pretrained({folder or '.'!r}, {file!r}, …)"
        )
    if os.path.exists(name):
        raise UsageError(
            f"{name} is not a folder; if it is an archive, unpack it first, and give the folder: "
            f"mkdir model && tar -xf {quoted} -C model"
        )
    raise UsageError(f"there is no folder {name} with {content}")


@contextmanager
def one_line(problem: str) -> Iterator[None]:
    """Turn any error into one line.

    Raises:
        UsageError: ``problem``, and why.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if isinstance(error.__context__, UsageError):
            # a model's message about a checkpoint; fairseq's says less
            raise error.__context__ from None
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise UsageError(f"{problem}: {reason}") from error
