"""fairseq's own loading made safe: by our reader, with checked options, errors in one line."""

import functools
import os
from contextlib import contextmanager
from typing import Any, BinaryIO, Callable, Dict, Iterator, Mapping, Optional, Sequence

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils

from fairseq_posenc.checkpoints.option_checks import check_options, no_larger_than
from fairseq_posenc.checkpoints.reader import load_checkpoint
from fairseq_posenc.errors import UsageError, first_line


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
        check_options(state, stream.name, named)
        return state

    checkpoint_utils.torch = _TorchWith(load)


def make_loading_safe() -> None:
    """Let fairseq's programs load as :func:`load_checkpoint`, with checked options, in one line."""
    read = checkpoint_utils.load_checkpoint_to_cpu
    build = checkpoint_utils.load_model_ensemble_and_task
    begin = checkpoint_utils.load_checkpoint
    if hasattr(read, "__wrapped__"):
        return

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
                f"checkpoint {path} is none of fairseq's ({type(error).__name__}: "
                f"{first_line(error):.200})"
            ) from None
        finally:
            _use_checked_load({})

    @functools.wraps(build)
    def load_model_ensemble_and_task(filenames: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        with one_line(f"{os.pathsep.join(filenames)} cannot be loaded"), no_larger_than(filenames):
            return build(filenames, *args, **kwargs)

    @functools.wraps(begin)
    def load_checkpoint_to_train(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        with one_line("cannot begin or continue the training"):
            return begin(cfg, *args, **kwargs)

    _use_checked_load({})
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    checkpoint_utils.load_model_ensemble_and_task = load_model_ensemble_and_task
    checkpoint_utils.load_checkpoint = load_checkpoint_to_train
    # what one worker sends the others when a run is resumed holds options, which torch ≥ 2.6
    # takes for a stranger's
    distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


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
