"""Dictionaries and binarised data, looked at before fairseq reads them.

Of a file that was cut short, or with an index that is another file's, fairseq reads what comes
(in the format of old, what happens to lie in memory), or fails hours later.
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
_OLD_MAGIC = indexed_dataset.IndexedDataset._HDR_MAGIC
_HUFFMAN_MAGIC = HuffmanMMapIndex._HDR_MAGIC[:8]
# magic, version, type of the tokens, number of items; behind it their sizes and places
_HEADER = struct.Struct(f"<{len(_MAGIC)}sQBQ")
_BYTES_OF_ITEM = 12
_COUNTED_TOGETHER = 1 << 22  # tokens
# magic, version, type of the tokens, their bytes, numbers of items and of sizes; behind it where
# the sizes of each item begin, where its tokens do, and the sizes
_OLD_HEADER = struct.Struct("<8s5Q")
_LARGEST_COUNT = 1 << 62


def read_dictionary(file: str) -> Dictionary:
    """Read a dictionary of fairseq.

    Raises:
        UsageError: it is missing or damaged, or has counts that are none.
    """
    try:
        dictionary = Dictionary.load(file)
    # fairseq raises bare Exception for wrong encodings
    except Exception as error:
        raise UsageError(f"cannot read the dictionary {file}: {first_line(error)}") from None
    for symbol, count in zip(dictionary.symbols, dictionary.count):
        if not 0 <= count < _LARGEST_COUNT:
            raise UsageError(f"cannot read the dictionary {file}: the count of {symbol!r} is none")
    return dictionary


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
        path: without the endings. Data in fairseq's Huffman format are left alone.
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
        tokens = np.memmap(data, kind, "r")
        with open(index, "rb") as stream:
            # the old format counts tokens from 1
            first = int(stream.read(8) == _OLD_MAGIC)
        if tokens.min() < first or tokens.max() - first >= types:
            raise UsageError(f"{data} has tokens that are not among the dictionary's {types} types")


def _ends(index: str) -> Any:
    """Return where items end, in bytes, and the type of tokens; None, None of Huffman's format."""
    damaged = UsageError(f"{index} is damaged; binarise the text again")
    with open(index, "rb") as stream:
        header = stream.read(_OLD_HEADER.size)
    if header[:8] == _HUFFMAN_MAGIC:
        return None, None
    if header[:8] == _OLD_MAGIC:
        found = _old_ends(index, header)
        if not found:
            raise damaged
        return found
    header = header[: _HEADER.size]
    if len(header) < _HEADER.size:
        raise damaged
    magic, version, code, count = _HEADER.unpack(header)
    kind = _integers(code)
    whole = os.path.getsize(index) == _HEADER.size + _BYTES_OF_ITEM * count
    if (magic, version) != (_MAGIC, 1) or not kind or not whole:
        raise damaged
    sizes = np.fromfile(index, "<i4", count, offset=_HEADER.size)
    starts = np.fromfile(index, "<i8", count, offset=_HEADER.size + sizes.nbytes)
    ends = np.cumsum(sizes, dtype=np.int64) * np.dtype(kind).itemsize
    if count and (sizes.min() < 0 or starts[0] or not np.array_equal(starts[1:], ends[:-1])):
        raise damaged
    return ends, kind


def _integers(code: int) -> Any:
    """Return the type of tokens that a header names, None if that is none of whole numbers."""
    kind = indexed_dataset._code_to_dtype.get(code)
    return kind if kind and np.issubdtype(kind, np.integer) else None


def _old_ends(index: str, header: bytes) -> Any:
    """Return as :func:`_ends` for fairseq's formats ``lazy`` and ``cached``, None if damaged."""
    if len(header) < _OLD_HEADER.size:
        return None
    _, version, code, width, count, dimensions = _OLD_HEADER.unpack(header)
    kind = _integers(code)
    size = _OLD_HEADER.size + 8 * (2 * (count + 1) + dimensions)
    if version != 1 or not kind or np.dtype(kind).itemsize != width:
        return None
    # items of text have one dimension
    if dimensions != count or os.path.getsize(index) != size:
        return None
    numbers = np.fromfile(index, "<i8", offset=_OLD_HEADER.size)
    places, starts, sizes = np.split(numbers, [count + 1, 2 * count + 2])
    if not np.array_equal(places, np.arange(count + 1)) or (sizes < 0).any():
        return None
    if starts[0] or starts.min() < 0 or starts[-1] > _LARGEST_COUNT // width:
        return None
    if not np.array_equal(np.diff(starts), sizes):
        return None
    return starts[1:] * width, kind
