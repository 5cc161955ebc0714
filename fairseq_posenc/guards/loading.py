"""fairseq's own loading made safe: by our reader, with checked options, errors in one line."""

import functools
import os
import shlex
from contextlib import contextmanager
from contextvars import ContextVar
from typing import (
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

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
    scoring,
    source_bos,
    training_start,
)
from fairseq_posenc.guards.languages import check_languages
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.guards.resumed_state import (
    average_of_weights,
    check_first_step,
    check_progress,
    checked_optimizer_state,
    end_if_complete,
    warn_of_lost_average,
)
from fairseq_posenc.guards.run_comparison import RunComparison
from fairseq_posenc.patching import replace, replace_in_library, replaces


class _Reading(NamedTuple):
    """How the checkpoints are read that fairseq reads now.

    Attributes:
        checks: called with each, and its path.
        overrides: options of the caller.
        builds: whether a model is built from their options; a training builds its own.
    """

    checks: Tuple[Callable[[Any, str], None], ...] = ()
    overrides: Mapping[str, Any] = {}
    builds: bool = True


_reading: ContextVar[_Reading] = ContextVar("reading", default=_Reading())  # noqa: B039


@contextmanager
def _reading_with(**changes: Any) -> Iterator[None]:
    """Let the checkpoints that are read inside of this be read so."""
    token = _reading.set(_reading.get()._replace(**changes))
    try:
        yield
    finally:
        _reading.reset(token)


def _load(stream: BinaryIO, **_: Any) -> Dict[str, Any]:
    """Read a checkpoint by our reader, and check its options."""
    state, reading = load_checkpoint(stream.name), _reading.get()
    # before check_options takes out options that are not to be built from
    unsanitised = dict(state) if isinstance(state, dict) else state
    check_options(state, stream.name, reading.overrides, reading.builds)
    for check in reading.checks:
        check(unsanitised, stream.name)
    source_bos.record_option(state)
    return state


replace_in_library(checkpoint_utils, "torch", load=_load)
# the object that a worker sends the others when a run is resumed holds options, which torch ≥ 2.6
# does not load from untrusted files
_load_options = functools.partial(torch.load, weights_only=False)
replace_in_library(distributed_utils, "torch", load=_load_options)


@replaces(checkpoint_utils, "load_checkpoint_to_cpu")
def _load_checkpoint_to_cpu(
    read: Callable, path: str, arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kw: Any
) -> Dict[str, Any]:
    """Let fairseq name the checkpoint that it cannot read."""
    try:
        with _reading_with(overrides=arg_overrides or {}):
            return read(path, arg_overrides, *args, **kw)
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read checkpoint {path}: {error.strerror or error}") from None
    # odd content ends in any error in fairseq
    except Exception as error:
        raise UsageError(
            f"{path} is not a fairseq checkpoint ({type(error).__name__}: {first_line(error):.200})"
        ) from None


@replaces(checkpoint_utils, "load_model_ensemble_and_task")
def _load_model_ensemble_and_task(
    build: Callable,
    filenames: Sequence[str],
    arg_overrides: Optional[Dict[str, Any]] = None,
    task: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let fairseq check the checkpoints that it builds models from."""
    overrides = arg_overrides or {}
    if task is None and not overrides.get("data"):
        raise UsageError(
            "give the folder of the data, which is not taken from a checkpoint: "
            'arg_overrides={"data": "bin"}'
        )
    for name in filenames:
        _check_no_shard(name)
    if task is None:
        scoring.check_dictionary(filenames[0], str(overrides["data"]))
    trained_in: List[Optional[str]] = []
    checks: List[Callable] = [
        functools.partial(check_languages, task=task, overrides=overrides),
        lambda state, _: trained_in.append(precision.recorded_in_words(state)),
    ]
    if len(filenames) > 1:
        checks.append(RunComparison(run_comparison.ENSEMBLE).check)
    cannot = f"{os.pathsep.join(filenames)} cannot be loaded"
    with one_line(cannot), _reading_with(checks=tuple(checks)):
        models, cfg, task = build(filenames, arg_overrides, task, *args, **kwargs)
        source_bos.check_task(cfg.model, task)
        precision.log_training(trained_in)
        if isinstance(task, FairseqTask):
            scoring.patch_task_to_read_all(task)
        return models, cfg, task


@replaces(checkpoint_utils, "load_checkpoint")
def _load_checkpoint_to_train(load: Callable, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Let fairseq check what a training begins with and writes over."""
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
        checks: List[Callable] = [RunComparison(policy, "this run", reference).check]
        if resumed:
            checks.append(functools.partial(precision.warn_of_another, record["precision"]))
        else:
            checks.append(functools.partial(check_languages, task=trainer.task, fine_tuning=True))
        with _reading_with(checks=tuple(checks), builds=False), average_of_weights(trainer):
            extra_state, batches = load(cfg, trainer, **kwargs)
        # progress is known once fairseq has put it back
        check_progress(extra_state, trainer)
        if resumed:
            warn_of_lost_average(extra_state, trainer)
            end_if_complete(extra_state, trainer)
        run_comparison.attach_run_metadata(trainer, {**metadata, precision.KEY: record})
        training_start.warn_of_short_training(trainer.cfg)
        return extra_state, batches


@replaces(FairseqOptimizer, "load_state_dict")  # all others end there
def _load_optimizer_state(
    load: Callable, optimizer: FairseqOptimizer, state_dict: Any, optimizer_overrides: Any = None
) -> None:
    """Let an optimizer take the state of its own parameters alone."""
    checked = checked_optimizer_state(optimizer.optimizer.param_groups, state_dict)
    load(optimizer, checked, optimizer_overrides)
    check_first_step(optimizer)


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


replace(file_utils, "load_archive_file", check_folder)


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
