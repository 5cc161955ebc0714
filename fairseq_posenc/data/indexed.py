"""Dictionaries and binarised data, checked before fairseq reads them.

Of a file that was cut short, or with an index that is another file's, fairseq reads what comes, or
fails hours later.
"""

import glob
import os
import struct
from typing import Any, List, NamedTuple, Optional

import numpy as np
from fairseq import utils
from fairseq.data import Dictionary, indexed_dataset
from fairseq.data.huffman import HuffmanMMapIndex

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.files import reading

_MMAP_MAGIC = indexed_dataset.MMapIndexedDataset.Index._HDR_MAGIC
_HUFFMAN_MAGIC = HuffmanMMapIndex._HDR_MAGIC[:8]
# magic, version, type of the tokens, number of items; behind it their sizes and places
_MMAP_HEADER = struct.Struct(f"<{len(_MMAP_MAGIC)}sQBQ")
_LARGEST_COUNT = 1 << 62


class Index(NamedTuple):
    """Content of an index file: ends of items, in bytes, and the type of the tokens."""

    ends: np.ndarray
    dtype: type


class SafeDictionary(Dictionary):
    """A dictionary whose special symbols keep their names.

    A file may hold ``<unk> 1 #fairseq:overwrite``, as CamemBERT's does and those made of
    SentencePiece's vocabularies. To fairseq the name then stands for that row, which no model was
    trained on, while ``unk()`` is number 3 as ever. Here it stands for ``unk()``.
    """

    def add_from_file(self, f: Any) -> None:
        """Read the rows of a file."""
        super().add_from_file(f)
        self.indices.update(zip(self.symbols[: self.nspecial], range(self.nspecial)))

    def save(self, f: Any) -> None:
        """Write the rows; fairseq leaves out the flag, without which it cannot read them again."""
        seen, rows = set(self.symbols[: self.nspecial]), []
        for symbol, count in zip(self.symbols[self.nspecial :], self.count[self.nspecial :]):
            rows.append((symbol, f"{count} #fairseq:overwrite" if symbol in seen else count))
            seen.add(symbol)
        self._save(f, rows)


def repeated_types(dictionary: Dictionary) -> List[int]:
    """Return the numbers of the types whose name stands for another type of the dictionary.

    A name stands for the special symbol that has it, or else for the last type.
    """
    special = dictionary.symbols[: dictionary.nspecial]
    owners = {symbol: number for number, symbol in enumerate(dictionary.symbols)}
    owners.update(zip(special, range(len(special))))
    return [n for n, symbol in enumerate(dictionary.symbols) if owners[symbol] != n]


def read_dictionary(file: str) -> Dictionary:
    """Read a dictionary of fairseq, whose special symbols keep their names.

    Raises:
        UsageError: it is missing or damaged, or has counts that make no sense.
    """
    try:
        dictionary = SafeDictionary.load(file)
    # fairseq raises bare Exception for wrong encodings
    except Exception as error:
        raise UsageError(f"cannot read the dictionary {file}: {first_line(error)}") from None
    for symbol, count in zip(dictionary.symbols, dictionary.count):
        if not 0 <= count < _LARGEST_COUNT:
            raise UsageError(f"cannot read the dictionary {file}: the count of {symbol!r} is wrong")
    return dictionary


def check_folders(data: str) -> None:
    """Check that the folders of ``data``, separated by ``:``, are there: an epoch reads one.

    Raises:
        UsageError: one is missing.
    """
    for folder in utils.split_paths(data):
        if not os.path.isdir(folder):
            raise UsageError(f"there is no folder {folder}, which the data should be in")


def check_sides(folder: str, split: str, cfg: Any, with_targets: bool = True) -> None:
    """Check that a folder has a split's sources and, if they are needed, its targets.

    ``cfg`` is that of a translation task.

    Raises:
        UsageError: it has not.
    """
    source, target = cfg.source_lang, cfg.target_lang
    languages = [source, target] if with_targets else [source]

    def is_there(pair: str) -> bool:
        paths = (os.path.join(folder, f"{split}.{pair}.{language}") for language in languages)
        return all(indexed_dataset.dataset_exists(path, cfg.dataset_impl) for path in paths)

    if not (is_there(f"{source}-{target}") or is_there(f"{target}-{source}")):
        raise UsageError(
            f"there is no binarised '{split}' set of {' and '.join(languages)} in {folder}; run "
            "posenc prepare translation"
        )


def check_split(folder: str, split: str) -> None:
    """Check the binarised files of a split, all its parts and languages: :func:`check_indexed`."""
    if "," in split:
        raise UsageError(f"{split}: fairseq-generate takes one set; call it for each --gen-subset")
    for index in sorted(glob.glob(os.path.join(glob.escape(folder), f"{split}*.idx"))):
        check_indexed(index[: -len(".idx")])


def check_indexed(path: str, entries: Optional[int] = None) -> Optional[Index]:
    """Check that ``path.idx`` and ``path.bin``, if they are there, are whole and fit together.

    Args:
        path: without the endings. Data in fairseq's Huffman format are left alone.
        entries: of the dictionary; if given, all tokens are checked.

    Returns:
        What the index says; None if a file is missing, or of Huffman's format.

    Raises:
        UsageError: they do not fit, or a token is not in the dictionary.
    """
    file, data = f"{path}.idx", f"{path}.bin"
    if not (os.path.exists(file) and os.path.exists(data)):
        return None
    with reading(file), open(file, "rb") as stream:
        header = stream.read(_MMAP_HEADER.size)
        if header[:8] == _HUFFMAN_MAGIC:
            return None
        index = _mmap_index(file, header)
    if index is None:
        raise UsageError(
            f"{file} is damaged, or not of fairseq's format mmap; binarise the text again"
        )
    expected = int(index.ends[-1]) if len(index.ends) else 0
    if os.path.getsize(data) != expected:
        raise UsageError(
            f"{data} has {os.path.getsize(data)} bytes, and by its index {expected}; binarise the "
            "text again"
        )
    if entries is not None and expected:
        tokens = np.memmap(data, index.dtype, "r")
        if tokens.min() < 0 or tokens.max() >= entries:
            raise UsageError(
                f"{data} has tokens that are not among the dictionary's {entries} types"
            )
    return index


def _mmap_index(file: str, header: bytes) -> Optional[Index]:
    """Read an index of fairseq's format ``mmap``; None if it is damaged."""
    size = _MMAP_HEADER.size
    if len(header) < size:
        return None
    magic, version, code, count = _MMAP_HEADER.unpack(header[:size])
    dtype = _integer_type(code)
    # for each item 4 bytes of its size and 8 of its place
    is_complete = os.path.getsize(file) == size + 12 * count
    if (magic, version) != (_MMAP_MAGIC, 1) or not dtype or not is_complete:
        return None
    sizes = np.fromfile(file, "<i4", count, offset=size)
    starts = np.fromfile(file, "<i8", count, offset=size + sizes.nbytes)
    ends = np.cumsum(sizes, dtype=np.int64) * np.dtype(dtype).itemsize
    # items must lie one behind the other: fairseq reads from any place that the index names
    if count and (sizes.min() < 0 or starts[0] or not np.array_equal(starts[1:], ends[:-1])):
        return None
    return Index(ends, dtype)


def _integer_type(code: int) -> Optional[type]:
    """Return the type of tokens that a header names, None unless it is of whole numbers."""
    dtype = indexed_dataset._code_to_dtype.get(code)
    return dtype if dtype and np.issubdtype(dtype, np.integer) else None
