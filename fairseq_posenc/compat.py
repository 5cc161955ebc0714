"""Every difference between fairseq 0.12.2, its maintained fork and versions of torch.

Loading: a checkpoint is a pickle, and a pickle may call any function. torch ≥ 2.6 loads tensors and
plain containers only, unless told otherwise; fairseq's checkpoints hold an ``argparse.Namespace``
beyond these and, from trainings with ``--eval-bleu``, arrays of NumPy. Older versions of torch load
everything, so there we look first.
"""

import argparse
import codecs
import collections
import errno
import functools
import inspect
import io
import pickle
import re
import zipfile
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import numpy as np
import torch
from fairseq import checkpoint_utils
from torch import nn

from fairseq_posenc.errors import DamagedCheckpoint, UsageError, first_line

# torch ≥ 2.4 can be told what is harmless; torch ≥ 2.6 refuses the rest without being asked.
_SERIALISATION: Any = torch.serialization
_HAS_SAFE_LOADING = hasattr(_SERIALISATION, "add_safe_globals")
_LOADS_SAFELY = inspect.signature(torch.load).parameters["weights_only"].default is None
# what arrays and numbers are rebuilt by, and types of what that makes
_REBUILD_ARRAY: Any = np.arange(1).__reduce__()[0]
_REBUILD_NUMBER: Any = np.int64(1).__reduce__()[0]
_NUMPY_TYPES: List[Any] = [
    np.ndarray,
    np.dtype,
    *{type(np.dtype(kind)) for kind in "bBhHiIlLqQefdO?"},
]
if _HAS_SAFE_LOADING:
    _SERIALISATION.add_safe_globals(
        [argparse.Namespace, _REBUILD_ARRAY, _REBUILD_NUMBER, *_NUMPY_TYPES]
    )
_HARMLESS = {
    ("_codecs", "encode"): codecs.encode,  # of bytes, in old pickles
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    **{(f"numpy.{core}.multiarray", function.__name__): function
       for core in ("core", "_core") for function in (_REBUILD_ARRAY, _REBUILD_NUMBER)},
    ("argparse", "Namespace"): argparse.Namespace,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch", "Size"): torch.Size,
    ("torch", "device"): torch.device,
    **{("torch._utils", name): getattr(torch._utils, name) for name in (
        "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter",
    )},
}  # fmt: skip
# torch 2.0 multiplies small outputs that shall be overwritten by 0, so that NaN in them stays NaN.
BADDBMM_READS_OUT = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 1)
_FUSED_WEIGHTS = [
    f"{part}_{kind}"
    for part in ("in_proj", "out_proj", "fc1", "fc2")
    for kind in ("weight", "bias")
]


class _HarmlessUnpickler(pickle.Unpickler):
    """An unpickler that builds tensors, plain containers and namespaces, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _HARMLESS:
            return _HARMLESS[module, name]
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"Unsupported global: {module}.{name}")


_HARMLESS_PICKLE = SimpleNamespace(
    Unpickler=_HarmlessUnpickler,
    load=lambda stream, **_: _HarmlessUnpickler(stream).load(),
    loads=lambda data, **_: _HarmlessUnpickler(io.BytesIO(data)).load(),
    __name__="pickle",
)


def load_checkpoint(path: str) -> Dict[str, Any]:
    """Return what a checkpoint holds, on the CPU; nothing in it is run.

    Raises:
        UsageError: missing, cut off, not a checkpoint, or holding objects other than tensors,
            plain containers, an ``argparse.Namespace`` and arrays.
    """
    how = {"weights_only": True} if _HAS_SAFE_LOADING else {"pickle_module": _HARMLESS_PICKLE}
    try:
        _check_sums(path)
        return torch.load(path, map_location="cpu", **how)
    except Exception as error:
        raise _explained(path, error) from None


def _check_sums(path: str) -> None:
    """Compare the checksums that torch writes, and does not look at when it loads."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if archive.testzip():
                raise zipfile.BadZipFile("wrong checksum")


def _explained(path: str, error: Exception) -> UsageError:
    # a cut archive sends the reader to places before its beginning (EINVAL)
    environment = isinstance(error, OSError) and error.errno != errno.EINVAL
    # torch tells a lack of memory as RuntimeError
    if environment or isinstance(error, MemoryError) or "memory" in str(error):
        reason = getattr(error, "strerror", None) or first_line(error)
        return UsageError(f"cannot read checkpoint {path}: {reason}")
    culprit = re.search(r"global: (?:GLOBAL )?([\w.]+)", str(error))
    if culprit:
        return UsageError(
            f"checkpoint {path} refused: it holds code or objects that could run on loading "
            f"({culprit.group(1)}), not only weights and options; get it from a source you trust"
        )
    return DamagedCheckpoint(
        f"checkpoint {path} is damaged or no checkpoint ({type(error).__name__}); move it aside "
        "and continue from an earlier one, for example with --restore-file checkpoint_best.pt"
    )


def make_loading_safe() -> None:
    """Make fairseq's own loading as safe as :func:`load_checkpoint`, and its errors as clear."""
    original = checkpoint_utils.load_checkpoint_to_cpu
    if not hasattr(original, "__wrapped__"):
        checkpoint_utils.load_checkpoint_to_cpu = _guarded(original)


def _guarded(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        try:
            (_check_sums if _LOADS_SAFELY else load_checkpoint)(path)
            return load(path, *args, **kwargs)
        except UsageError:
            raise
        # a damaged pickle ends in any error
        except Exception as error:
            raise _explained(path, error) from None

    return load_checkpoint_to_cpu


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
