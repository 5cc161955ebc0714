"""Binarised data: what fairseq would read wrongly is refused."""

import struct

import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_posenc.data.indexed import check_indexed, check_split, read_dictionary, repeated_types
from fairseq_posenc.data.training_text import checksum
from fairseq_posenc.errors import UsageError
from tests.tiny import binarise


@pytest.fixture
def write(tmp_path):
    """A function that binarises sentences of some lengths; returns the path without endings."""

    def write(name, *lengths, impl="mmap"):
        path = str(tmp_path / name)
        binarise(path, map(torch.arange, lengths), impl=impl)
        return path

    return write


def change(path, function):
    with open(path, "rb") as stream:
        content = stream.read()
    with open(path, "wb") as stream:
        stream.write(function(content))


@pytest.mark.parametrize("lengths", [(), (3,), (3, 0, 9)])
def test_whole_data_pass(write, tmp_path, lengths):
    write("train.en-de.en", *lengths)
    check_split(str(tmp_path), "train")
    check_split(str(tmp_path), "valid")  # which is not there: fairseq says so itself
    if lengths:
        found = indexed_dataset.make_dataset(str(tmp_path / "train.en-de.en"), "mmap")
        assert tuple(found.sizes) == lengths


@pytest.mark.parametrize(
    "ending, function, words",
    [
        ("bin", lambda content: content[:-2], "bytes, and by its index"),
        ("bin", lambda content: content + b"\0\0", "bytes, and by its index"),
        ("idx", lambda content: content[:-1], "is damaged"),
        ("idx", lambda content: b"x" + content[1:], "is damaged"),
        ("idx", lambda content: content[:17] + b"\x63" + content[18:], "is damaged"),
        ("idx", lambda content: content[:26] + b"\4" + content[27:], "is damaged"),
        ("idx", lambda content: b"", "is damaged"),
    ],
)
def test_damage_is_reported(write, ending, function, words):
    path = write("train", 3, 4)
    change(f"{path}.{ending}", function)
    with pytest.raises(UsageError, match=words):
        check_indexed(path)


def test_tokens_that_are_no_whole_numbers_are_reported(write):
    path = write("train", 4)
    # the code of float64, eight bytes each as the eight tokens of two bytes of before
    change(
        f"{path}.idx",
        lambda content: content[:17] + b"\6" + content[18:26] + struct.pack("<iq", 1, 0),
    )
    with pytest.raises(UsageError, match="train.idx is damaged"):
        check_indexed(path)


def test_formats_of_old_are_told(write):
    with pytest.raises(UsageError, match="not of fairseq's format mmap; binarise the text again"):
        check_indexed(write("train", 3, 4, impl="lazy"))


def test_tokens_beyond_the_dictionary_are_reported(write):
    path = write("train", 3, 9)
    check_indexed(path, entries=9)
    with pytest.raises(UsageError, match="not among the dictionary's 8 types"):
        check_indexed(path, entries=8)


@pytest.mark.parametrize(
    "content",
    [
        b"a 3\nb\n", b"a 3\na 4\n", b"<s> 3\n", b"a -1\n", b"a " + b"9" * 30, b"a " + b"9" * 5000,
        b"a \xb2\n", b"a \xc2\xb2\n", b"\xff 1\n", b"a 1.5\n", b"a 1 #fairseq:other\n",
        b"#fairseq:overwrite\n", b"\0",
    ],
    ids=lambda content: repr(content[:20]),
)  # fmt: skip
def test_a_dictionary_that_is_none_is_reported(tmp_path, content):
    (tmp_path / "dict.txt").write_bytes(content)
    with pytest.raises(UsageError, match="cannot read the dictionary .*dict.txt"):
        read_dictionary(str(tmp_path / "dict.txt"))


def test_a_dictionary_is_read(tmp_path):
    (tmp_path / "dict.txt").write_text("a 3\nb 1\n")
    assert read_dictionary(str(tmp_path / "dict.txt")).symbols[-2:] == ["a", "b"]


# as CamemBERT's, and those that are made of a vocabulary of SentencePiece
OVERWRITING = "<unk> 9 #fairseq:overwrite\n<s> 9 #fairseq:overwrite\n</s> 9 #fairseq:overwrite\n"
OVERWRITING += "a 9\nb 9\na 8 #fairseq:overwrite\n"


def test_special_symbols_keep_their_names(tmp_path):
    (tmp_path / "dict.txt").write_text(OVERWRITING, encoding="utf-8")
    found = read_dictionary(str(tmp_path / "dict.txt"))
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    assert [found.index(name) for name in names] == [0, 1, 2, 3]
    assert len(found) == 10 and found.index("a") == 9  # the last, as in fairseq
    assert repeated_types(found) == [4, 5, 6, 7]
    # fairseq leaves the flag out, and then cannot read what it wrote
    found.save(str(tmp_path / "again"))
    assert (tmp_path / "again").read_text(encoding="utf-8") == OVERWRITING


def test_a_folder_that_is_not_there_has_no_training_text(tmp_path):
    assert checksum(f"{tmp_path}/none", "train") is None and checksum("", "train") is None
