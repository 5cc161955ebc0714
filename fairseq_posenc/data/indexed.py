"""Dictionaries, and binarised data in the mmap format, looked at before fairseq reads them.

Of a file that was cut short, or with an index that is another file's, fairseq reads what comes, or
fails hours later.
"""

import glob
import os
import struct
from typing import Any, Optional

import numpy as np
from fairseq.data import Dictionary, indexed_dataset
from fairseq.data.huffman import HuffmanMMapIndex

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.files import reading

_MAGIC = indexed_dataset.MMapIndexedDataset.Index._HDR_MAGIC
_OTHERS = (indexed_dataset.IndexedDataset._HDR_MAGIC, HuffmanMMapIndex._HDR_MAGIC[:8])
# magic, version, type of the tokens, number of items; behind it their sizes and places
_HEADER = struct.Struct(f"<{len(_MAGIC)}sQBQ")
_BYTES_OF_ITEM = 12
_COUNTED_TOGETHER = 1 << 22  # tokens


def read_dictionary(file: str) -> Dictionary:
    """Read a dictionary of fairseq.

    Raises:
        UsageError: it is missing or damaged.
    """
    try:
        return Dictionary.load(file)
    # fairseq raises bare Exception for wrong encodings
    except Exception as error:
        raise UsageError(f"cannot read the dictionary {file}: {first_line(error)}") from None


def same_types(file: str, other: str) -> bool:
    """Return whether two dictionaries have the same types in the same order, whatever their counts.

    Raises:
        UsageError: one is missing or damaged.
    """
    return read_dictionary(file).symbols == read_dictionary(other).symbols


def token_counts(path: str, types: int) -> np.ndarray:
    """Return how often each type occurs in binarised data, int64 of shape (types,).

    Args:
        path: without the endings, as :func:`check_indexed`.
        types: of the dictionary.

    Raises:
        UsageError: the data are damaged, or were made with another dictionary.
    """
    check_indexed(path, types)
    ends, kind = _ends(f"{path}.idx")
    counts = np.zeros(types, np.int64)
    if ends is not None and len(ends) and ends[-1]:
        tokens = np.memmap(f"{path}.bin", kind, "r")
        for start in range(0, len(tokens), _COUNTED_TOGETHER):
            counts += np.bincount(tokens[start : start + _COUNTED_TOGETHER], minlength=types)
    return counts


def check_split(folder: str, split: str) -> None:
    """Check the binarised files of a split in a folder, all its parts and languages.

    Raises:
        UsageError: as :func:`check_indexed`.
    """
    for index in sorted(glob.glob(os.path.join(glob.escape(folder), f"{split}*.idx"))):
        check_indexed(index[: -len(".idx")])


def check_indexed(path: str, types: Optional[int] = None) -> None:
    """Check that ``path.idx`` and ``path.bin``, if they are there, are whole and fit together.

    Args:
        path: without the endings. Data in other formats of fairseq's are left alone.
        types: of the dictionary; if given, all tokens are looked at.

    Raises:
        UsageError: they do not, or a token is none of the dictionary's.
    """
    index, data = f"{path}.idx", f"{path}.bin"
    if not (os.path.exists(index) and os.path.exists(data)):
        return
    with reading(index):
        ends, kind = _ends(index)
    if ends is None:
        return
    expected = int(ends[-1]) if len(ends) else 0
    if os.path.getsize(data) != expected:
        raise UsageError(
            f"{data} has {os.path.getsize(data)} bytes, and by its index {expected}; binarise the "
            "text again"
        )
    if types is not None and expected:
        tokens = np.fromfile(data, kind)
        if tokens.min() < 0 or tokens.max() >= types:
            raise UsageError(f"{data} has tokens that are not among the dictionary's {types} types")


def _ends(index: str) -> Any:
    """Return where items end, in bytes, and the type of tokens; None, None of other formats."""
    damaged = UsageError(f"{index} is damaged; binarise the text again")
    with open(index, "rb") as stream:
        header = stream.read(_HEADER.size)
    if header[:8] in _OTHERS:
        return None, None
    if len(header) < _HEADER.size:
        raise damaged
    magic, version, code, count = _HEADER.unpack(header)
    kind = indexed_dataset._code_to_dtype.get(code)
    whole = os.path.getsize(index) == _HEADER.size + _BYTES_OF_ITEM * count
    if (magic, version) != (_MAGIC, 1) or not kind or not whole:
        raise damaged
    sizes = np.fromfile(index, "<i4", count, offset=_HEADER.size)
    starts = np.fromfile(index, "<i8", count, offset=_HEADER.size + sizes.nbytes)
    ends = np.cumsum(sizes, dtype=np.int64) * np.dtype(kind).itemsize
    if count and (sizes.min() < 0 or starts[0] or not np.array_equal(starts[1:], ends[:-1])):
        raise damaged
    return ends, kind
