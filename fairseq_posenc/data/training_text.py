"""A checksum of the text that a run trains on, taken in seconds whatever its size."""

import hashlib
import os
import re
from typing import Iterator, Optional, Tuple

from fairseq import utils

from fairseq_posenc.files import reading

_READ_IN_ALL = 1 << 30  # bytes
_BLOCK = 1 << 16


def checksum(data: str, subset: str) -> Optional[str]:
    """Return 16 hexadecimal digits that stand for a binarised training set, None if there is none.

    Files count by name, size and content, wherever their folder lies. Text of more than a gigabyte
    is read in part: of each file its beginning, its end and blocks at equal distances between.

    Args:
        data: its folders, separated by ``:``; files may be in folders below, as those of GLUE.
        subset: its name, such as ``train``.

    Raises:
        UsageError: a file cannot be read.
    """
    folders = filter(os.path.isdir, utils.split_paths(data))
    files = [file for folder in folders for file in _files(folder, subset)]
    digest = hashlib.sha256()
    for name, path in files:
        with reading(path), open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            digest.update(f"{name}\n{size}\n".encode())
            blocks = -(-size // _BLOCK)
            taken = min(blocks, max(2, _READ_IN_ALL // len(files) // _BLOCK))
            for number in range(taken):
                # the first block, the last one, and those between them
                stream.seek(number * (blocks - 1) // max(1, taken - 1) * _BLOCK)
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()[:16] if files else None


def _files(folder: str, subset: str) -> Iterator[Tuple[str, str]]:
    """Yield name and path of each file of a set, parts (``train1``) and languages included."""
    of_set = re.compile(rf"{re.escape(subset)}\d*(\..+)?\.(idx|bin|label)")
    below = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
    for directory in [folder, *sorted(below)]:
        for name in sorted(filter(of_set.fullmatch, os.listdir(directory))):
            path = os.path.join(directory, name)
            yield os.path.relpath(path, folder), path
