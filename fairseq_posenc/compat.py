"""Every difference between fairseq 0.12.2, its maintained fork and versions of torch."""

import errno
import functools
import os
import re
from contextlib import contextmanager
from typing import Any, BinaryIO, Callable, Dict, Iterator, Optional, Sequence

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from torch import nn

from fairseq_posenc import checkpoint_reader
from fairseq_posenc.checkpoint_check import check_options, no_larger_than
from fairseq_posenc.errors import DamagedCheckpoint, UsageError, first_line
from fairseq_posenc.unpickler import Refused

# torch 2.0 multiplies small outputs that shall be overwritten by 0, so that NaN in them stays NaN.
BADDBMM_READS_OUT = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 1)
_FUSED_WEIGHTS = [
    f"{part}_{kind}"
    for part in ("in_proj", "out_proj", "fc1", "fc2")
    for kind in ("weight", "bias")
]


def load_checkpoint(path: str) -> Dict[str, Any]:
    """Return what a checkpoint holds, on the CPU; nothing in it is run.

    Raises:
        DamagedCheckpoint: it is cut off, damaged or no checkpoint.
        UsageError: it is missing or cannot be read now, or holds other objects than tensors, plain
            containers, an ``argparse.Namespace`` and arrays of numbers.
    """
    try:
        return checkpoint_reader.read(path)
    except Refused as error:
        raise UsageError(
            f"checkpoint {path} refused: it holds code or objects that could run on loading "
            f"({error!s:.200}), not only weights and options; get it from a source you trust"
        ) from None
    except Exception as error:
        # a cut archive sends its reader to places before its beginning (EINVAL)
        environment = isinstance(error, OSError) and error.errno != errno.EINVAL
        if environment or isinstance(error, MemoryError):
            reason = getattr(error, "strerror", None) or first_line(error)
            raise UsageError(f"cannot read checkpoint {path}: {reason}") from None
        raise DamagedCheckpoint(
            f"checkpoint {path} is damaged or no checkpoint ({type(error).__name__}); move it "
            "aside and continue from an earlier one, as with --restore-file checkpoint_best.pt"
        ) from None


class _TorchWith:
    """torch with a ``load`` of ours, for a module of fairseq's to use."""

    def __init__(self, load: Callable):
        self.load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _load_checked(named: Dict[str, Any], stream: BinaryIO, **_: Any) -> Dict[str, Any]:
    """Return the content of an open checkpoint; ``named`` are options that the caller gives."""
    state = load_checkpoint(stream.name)
    check_options(state, stream.name, named)
    return state


def make_loading_safe() -> None:
    """Let fairseq's programs load as :func:`load_checkpoint`, with checked options, in one line."""
    original = checkpoint_utils.load_checkpoint_to_cpu
    if not hasattr(original, "__wrapped__"):
        checkpoint_utils.torch = _TorchWith(functools.partial(_load_checked, {}))
        checkpoint_utils.load_checkpoint_to_cpu = _guarded(original)
        checkpoint_utils.load_model_ensemble_and_task = _building(
            checkpoint_utils.load_model_ensemble_and_task
        )
        checkpoint_utils.load_checkpoint = _continuing(checkpoint_utils.load_checkpoint)
        # what one worker sends the others when a run is resumed holds options, which torch ≥ 2.6
        # takes for a stranger's
        distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


def _guarded(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_checkpoint_to_cpu(
        path: str, arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any
    ) -> Dict[str, Any]:
        try:
            named = arg_overrides or {}
            checkpoint_utils.torch = _TorchWith(functools.partial(_load_checked, named))
            return load(path, arg_overrides, *args, **kwargs)
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
            checkpoint_utils.torch = _TorchWith(functools.partial(_load_checked, {}))

    return load_checkpoint_to_cpu


def _building(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_model_ensemble_and_task(filenames: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        # wrong options and weights end in any error
        with one_line(f"{os.pathsep.join(filenames)} cannot be loaded"), no_larger_than(filenames):
            return load(filenames, *args, **kwargs)

    return load_model_ensemble_and_task


def _continuing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_checkpoint(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        with one_line("cannot begin or continue the training"):
            return load(cfg, *args, **kwargs)

    return load_checkpoint


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


def remove_fused_weights(layer: nn.Module) -> None:
    """Remove the second copy of its weights that an encoder layer of fairseq 0.12.2 has.

    It is for a fused kernel that knows no positions, and would get no gradients.
    """
    for name in _FUSED_WEIGHTS:
        if hasattr(layer, name):
            delattr(layer, name)


def drop_fused_weights(state_dict: Dict[str, Any], prefix: str) -> None:
    """Remove that copy from a state dictionary, which is changed in place.

    Args:
        state_dict: of any fairseq model.
        prefix: name of the layer with a dot, for example ``encoder.layers.0.``.
    """
    for name in _FUSED_WEIGHTS:
        state_dict.pop(prefix + name, None)
