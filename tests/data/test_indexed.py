"""Binarised data: what fairseq would read wrongly is refused."""

import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_posenc.data.indexed import check_indexed, check_split, read_dictionary
from fairseq_posenc.errors import UsageError


@pytest.fixture
def write(tmp_path):
    """A function that binarises sentences of some lengths; returns the path without endings."""

    def write(name, *lengths, impl="mmap"):
        path = str(tmp_path / name)
        builder = indexed_dataset.make_builder(f"{path}.bin", impl, vocab_size=50)
        for length in lengths:
            builder.add_item(torch.arange(length, dtype=torch.int32))
        builder.finalize(f"{path}.idx")
        return path

    return write


def change(path, function):
    with open(path, "rb") as stream:
        content = stream.read()
    with open(path, "wb") as stream:
        stream.write(function(content))


@pytest.mark.parametrize("impl", ["mmap", "lazy"])
@pytest.mark.parametrize("lengths", [(), (3,), (3, 0, 9)])
def test_whole_data_pass(write, tmp_path, impl, lengths):
    if impl == "mmap" or lengths:
        write("train.en-de.en", *lengths, impl=impl)
    check_split(str(tmp_path), "train")
    check_split(str(tmp_path), "valid")


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
def test_damage_is_told(write, ending, function, words):
    path = write("train", 3, 4)
    change(f"{path}.{ending}", function)
    with pytest.raises(UsageError, match=words):
        check_indexed(path)


def test_an_index_of_other_data_is_told(write):
    path, other = write("train", 3, 4), write("valid", 3, 5)
    with open(f"{other}.idx", "rb") as stream:
        index = stream.read()
    change(f"{path}.idx", lambda _: index)
    with pytest.raises(UsageError, match="train.bin has 14 bytes, and by its index 16"):
        check_indexed(path)


def test_tokens_beyond_the_dictionary_are_told(write):
    path = write("train", 3, 9)
    check_indexed(path, types=9)
    with pytest.raises(UsageError, match="not among the dictionary's 8 types"):
        check_indexed(path, types=8)


def test_a_dictionary_is_read_or_told(tmp_path):
    (tmp_path / "dict.txt").write_text("a 3\nb\n")
    with pytest.raises(UsageError, match="cannot read the dictionary .*dict.txt") as error:
        read_dictionary(str(tmp_path / "dict.txt"))
    assert "\n" not in str(error.value)
    (tmp_path / "dict.txt").write_text("a 3\nb 1\n")
    assert read_dictionary(str(tmp_path / "dict.txt")).symbols[-2:] == ["a", "b"]
