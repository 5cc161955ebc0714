"""Reader of checkpoints of any version of ``torch.save``; nothing in them is run.

torch's own safe loading does it, with the few names that checkpoints of fairseq have besides. From
2.10 on nothing is known that gets past it; it takes sizes on trust, so a file may waste memory.
"""

import argparse
import collections
import errno
import os
import pickle
import re
import sys
import warnings
import zipfile
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import numpy as np
import torch
from torch import Tensor

from fairseq_posenc.checkpoints.folders import OWN, checkpoint_of
from fairseq_posenc.errors import DamagedCheckpoint, UsageError, first_line

_DEEPEST = 100
_PLAIN = (type(None), bool, int, float, str, bytes, np.generic, torch.device, torch.dtype)
_NDARRAY = object()  # stands for the class numpy.ndarray, which a file names and may not call


class _Dtype:
    """Stands for NumPy's type of a number while a file is read.

    A ``numpy.dtype`` itself would take any state, also one that makes pointers of numbers.
    """

    def __init__(self, code: str, *_: Any):
        if not re.fullmatch(r"[biufc]\d{1,2}", code):
            raise _Unknown(f"numpy.dtype {code:.20}")
        self.numpy = np.dtype(code)

    def __setstate__(self, state: Tuple) -> None:
        if state[1] not in ("|", "<" if sys.byteorder == "little" else ">"):
            raise ValueError("the order of bytes is that of another machine")


class _Array:
    """Stands for an array of numbers while a file is read, until its state is checked."""

    def __init__(self, array_type: Any, shape: Any, code: Any):
        if array_type is not _NDARRAY or (shape, code) != ((0,), b"b"):
            raise _Unknown("numpy.core.multiarray._reconstruct of another class")

    def __setstate__(self, state: Tuple) -> None:
        _, shape, dtype, fortran, data = state
        self.numpy = np.empty(0, np.int8)
        self.numpy.__setstate__((1, shape, dtype.numpy, fortran, data))


class _Options:
    """Stands for an ``argparse.Namespace`` while a file is read, which sets nothing but options."""

    options: Mapping[str, Any] = {}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        if not (isinstance(state, dict) and all(isinstance(name, str) for name in state)):
            raise ValueError("options without names")
        self.options = state


def _number(dtype: _Dtype, data: bytes) -> Any:
    return np.frombuffer(data, dtype.numpy, count=1)[0]


# beside torch's own: the function to call for a name
_NAMES: List[Any] = [
    (_Options, "argparse.Namespace"),
    (_Dtype, "numpy.dtype"),
    (_NDARRAY, "numpy.ndarray"),
    *((_number, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    *((_Array, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
]


class _Unknown(Exception):
    """A file holds something of this type, which is not read."""


@contextmanager
def _our_names_alone() -> Iterator[None]:
    """Let torch's safe loading know our names, and none that the program around us has added.

    It would make and call these too, or take one that is also ours for its own.
    """
    added = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals(_NAMES):
            yield
    finally:
        torch.serialization.add_safe_globals(added)


def load_checkpoint(path: str, mmap: bool = False) -> Any:
    """Return the content of a checkpoint, on the CPU; nothing in it is run.

    Of a ``posenc.safetensors``, the ``posenc.json`` beside it says the rest.

    Args:
        path: the file.
        mmap: map the file instead of reading it, so that tensors nobody looks at, as the
            optimizer's, take no memory; the file must stay as it is meanwhile.

    Raises:
        DamagedCheckpoint: it is cut off, damaged or not a checkpoint.
        UsageError: it is missing or cannot be read now, or holds other objects than tensors, plain
            containers, an ``argparse.Namespace`` and arrays of numbers.
    """
    if os.path.basename(path) == OWN:
        return checkpoint_of(path)
    # the other end of a pipe may never write
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise UsageError(f"{path} is a pipe or a device; give the file of a checkpoint")
    try:
        can_be_mapped = _check_bytes(path)
        with _our_names_alone(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd pickles; errors are raised below
            value = torch.load(
                path, map_location="cpu", weights_only=True, mmap=mmap and can_be_mapped
            )
        return _own_types(value, {})
    except (_Unknown, pickle.UnpicklingError) as error:
        raise UsageError(_refusal(path, str(error))) from None
    except Exception as error:
        # a cut archive sends its reader to places before its beginning (EINVAL)
        environment = isinstance(error, OSError) and error.errno != errno.EINVAL
        if environment or isinstance(error, MemoryError):
            reason = getattr(error, "strerror", None) or first_line(error)
            raise UsageError(f"cannot read checkpoint {path}: {reason}") from None
        raise DamagedCheckpoint(
            f"checkpoint {path} is damaged or not a checkpoint ({type(error).__name__}); "
            f"{_advice(path)}"
        ) from None


def _check_bytes(path: str) -> bool:
    """Compare the checksums of an archive, of torch ≥ 1.6, and return whether it can be mapped.

    Older files have none and cannot, nor can an archive that was compressed.
    """
    with open(path, "rb") as stream:
        if stream.read(1) == pickle.PROTO:
            return False
        stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            if archive.testzip() is not None:
                raise ValueError("a checksum is another")
        return all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())


def _advice(path: str) -> str:
    """Return the advice for a damaged checkpoint, with the name of another one if there is."""
    folder = os.path.dirname(os.path.abspath(path))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    readable = [
        os.path.join(folder, name)
        for name in names
        if name.startswith("checkpoint") and name.endswith(".pt") and name != os.path.basename(path)
    ]
    if not readable:
        return "there is no other one beside it"
    newest = max(readable, key=os.path.getmtime)
    return f"move it aside and continue from an earlier one, as with --restore-file {newest}"


def _own_types(value: Any, converted: Dict[int, Tuple[Any, Any]], depth: int = 0) -> Any:
    """Return a value with what was stood for, in torch's, NumPy's and Python's own types alone.

    torch makes classes and functions of its own into values, too: they are refused.

    Args:
        value: as torch has read it; lists and dictionaries are changed in place.
        converted: containers and tensors by their ``id``, and what has become of them.
        depth: of the containers that it is in.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, _Array):
        return value.numpy
    if id(value) in converted:
        return converted[id(value)][1]
    if depth == _DEEPEST:
        raise _Unknown(f"{type(value).__name__} nested {_DEEPEST} deep")

    def inner(item: Any) -> Any:
        return _own_types(item, converted, depth + 1)

    def unchanged(item: Any) -> None:
        if inner(item) is not item:
            raise _Unknown(f"{type(item).__name__} as a key")

    result = argparse.Namespace() if isinstance(value, _Options) else value
    # before its items, as a list may hold itself; with the value, whose id must not be used again
    converted[id(value)] = value, result
    if isinstance(value, Tensor):
        # attributes are read along with a tensor, and hooks would be called
        inner(vars(value))
        if value._backward_hooks:
            raise _Unknown("hooks of a tensor")
    elif isinstance(value, _Options):
        vars(result).update({name: inner(option) for name, option in value.options.items()})
    elif type(value) in (dict, collections.OrderedDict):
        # an OrderedDict has attributes, as the _metadata of state_dict()
        inner(getattr(value, "__dict__", None))
        for key in value:
            unchanged(key)
            value[key] = inner(value[key])
    elif type(value) is list:
        value[:] = map(inner, value)
    elif type(value) is tuple:
        # no change in place: a new tuple, but only where an item is another now, so that keys stay
        items = tuple(map(inner, value))
        if any(item is not before for item, before in zip(items, value)):
            result = items
            converted[id(value)] = value, result
    elif type(value) in (set, torch.Size):
        for item in value:
            unchanged(item)
    else:
        named = value if isinstance(value, type) else type(value)
        raise _Unknown(f"{named.__module__}.{named.__qualname__}")
    return result


def _refusal(path: str, reason: str) -> str:
    """Return the error for content that is not read, by torch's message or our own."""
    named = re.search(r"(?:GLOBAL|<class '|<function) ?([\w.]+)", reason)
    message = (
        named.group(1) if named else " ".join(reason.split("WeightsUnpickler error:")[-1].split())
    )
    return (
        f"checkpoint {path} refused: it holds {message!r:.200}, and only weights, numbers, text, "
        "lists, dictionaries and argparse.Namespace are read, so that a stranger's file runs "
        "nothing. If it is yours, load it with torch.load(…, weights_only=False), make that a text "
        "or a number, and save it again"
    )
