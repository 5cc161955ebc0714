"""Reading what any version of ``torch.save`` has written, without running any of it."""

import argparse
import collections
import errno
import io
import os
import pickle
import sys
import zipfile
from typing import Any, BinaryIO, Callable, Dict, Tuple

import numpy as np
import torch
from torch import Tensor

from fairseq_posenc.checkpoints.folders import OWN, checkpoint_of
from fairseq_posenc.checkpoints.unpickler import Maker, Refused, Unpickler
from fairseq_posenc.errors import DamagedCheckpoint, UsageError, first_line

# first and second pickle of files by torch before 1.6
_LEGACY_HEADER = (0x1950A86A20F9469CFC6C, 1001)
_DEEPEST = 100
# values of a file without weights; the more it holds, the more it may have
_MOST_VALUES = 50_000
_CONTAINERS = (dict, collections.OrderedDict, list, tuple, set, torch.Size, argparse.Namespace)
_PLAIN = (type(None), bool, int, float, str, bytes, np.ndarray, np.dtype, torch.device)


def load_checkpoint(path: str) -> Any:
    """Return what a checkpoint holds, on the CPU; nothing in it is run.

    Of a ``posenc.safetensors``, the ``posenc.json`` beside it says the rest.

    Raises:
        DamagedCheckpoint: it is cut off, damaged or not a checkpoint.
        UsageError: it is missing or cannot be read now, or holds other objects than tensors, plain
            containers, an ``argparse.Namespace`` and arrays of numbers.
    """
    if os.path.basename(path) == OWN:
        return checkpoint_of(path)
    try:
        with open(path, "rb") as stream:
            is_pickle = stream.read(1) == pickle.PROTO
            stream.seek(0)
            length = os.fstat(stream.fileno()).st_size
            most = _MOST_VALUES + length // 4
            value = (_read_legacy if is_pickle else _read_zip)(stream, most)
        count_values(value, _MOST_VALUES + length)
        return value
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
        earlier = os.path.join(os.path.dirname(os.path.abspath(path)), "checkpoint_best.pt")
        raise DamagedCheckpoint(
            f"checkpoint {path} is damaged or not a checkpoint ({type(error).__name__}); move it "
            f"aside and continue from an earlier one, as with --restore-file {earlier}"
        ) from None


def count_values(value: Any, most: int) -> int:
    """Return how many values there are, shared ones counted at each place.

    Raises:
        Refused: they are too many, too deep or cyclic, or one is of an unexpected type.
    """
    found: Dict[int, Tuple[int, int]] = {}

    def measure(value: Any, depth: int) -> Tuple[int, int]:
        """Return how many values there are, and how deep below this one they go."""
        kind = type(value)
        if kind not in _CONTAINERS:
            if kind not in _PLAIN and not isinstance(value, (Tensor, np.generic)):
                raise Refused(value.name if kind is Maker else kind.__name__)
            return 1, 0
        if id(value) not in found and depth <= _DEEPEST:
            found[id(value)] = most + 1, 0  # for what contains itself
            items = vars(value) if kind is argparse.Namespace else value
            parts = [*items, *items.values()] if isinstance(items, dict) else items
            inside = [measure(inner, depth + 1) for inner in parts] or [(0, 0)]
            found[id(value)] = 1 + sum(n for n, _ in inside), 1 + max(n for _, n in inside)
        count, height = found.get(id(value), (0, 1))
        if depth + height > _DEEPEST:
            raise Refused("values that are nested too deeply")
        if count > most:
            raise Refused("a value that contains itself, or far too many")
        return count, height

    return measure(value, 0)[0]


class _Storages:
    """The bytes of weights, each storage made once, and in all no more than the file is long.

    ``make`` returns a storage, from its key and its size in bytes.
    """

    def __init__(
        self, stream: BinaryIO, make: Callable[[str, int], bytearray], too_many: Exception
    ):
        self.made: Dict[str, bytearray] = {}
        self._left = os.fstat(stream.fileno()).st_size
        self._make, self._too_many = make, too_many

    def get(self, key: str, size: int) -> bytearray:
        """Return a storage."""
        if key not in self.made:
            self._left -= size
            if self._left < 0:
                raise self._too_many
            self.made[key] = self._make(key, size)
        return self.made[key]


def _read_zip(stream: BinaryIO, most: int) -> Any:
    """Read the format of torch ≥ 1.6: a zip archive, whose checksums are compared."""
    with zipfile.ZipFile(stream) as archive:
        names = archive.namelist()
        roots = [name[: -len("data.pkl")] for name in names if name.endswith("/data.pkl")]
        if len(roots) != 1 or len(set(names)) != len(names):
            raise Refused("an archive of another form")
        if f"{roots[0]}constants.pkl" in names:
            raise Refused("a TorchScript program")
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise Refused("a compressed archive")
        order = f"{roots[0]}byteorder"
        if order in names and archive.read(order).decode() != sys.byteorder:
            raise ValueError("the order of bytes is that of another machine")
        storages = _Storages(
            stream,
            lambda key, _: bytearray(archive.read(f"{roots[0]}data/{key}")),
            Refused("more weights than the file is long"),
        )
        pickled = io.BytesIO(archive.read(f"{roots[0]}data.pkl"))
        return Unpickler(pickled, storages.get, most).load()


def _read_legacy(stream: BinaryIO, most: int) -> Any:
    """Read the format of torch < 1.6: pickles, and the weights behind them, without checksums."""
    storages = _Storages(
        stream, lambda _, size: bytearray(size), EOFError("more weights than the file is long")
    )

    def unpickle() -> Any:
        return Unpickler(stream, storages.get, most).load()

    if (unpickle(), unpickle()) != _LEGACY_HEADER:
        raise ValueError("not a file of torch.save")
    unpickle()  # sizes of numbers on the machine that wrote it
    value = unpickle()
    for key in unpickle():
        count, buffer = int.from_bytes(stream.read(8), "little"), storages.made[key]
        if count and len(buffer) % count:
            raise ValueError(f"storage {key} has another size than its tensors")
        if stream.readinto(memoryview(buffer)) != len(buffer):  # type: ignore[attr-defined]
            raise EOFError(f"storage {key} is cut off")
    return value
