"""The files of a corpus, and the command line that writes them."""

import os

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus import Range, Split, count_tokens, write_corpus

SPLITS = [
    Split("test", 30, [Range(4, 8), Range(20, 30)]),
    Split("valid", 20, [Range(4, 8)]),
    Split("train", 300, [Range(4, 8)]),
]


def lines(folder, name):
    return (folder / name).read_text(encoding="utf-8").splitlines()


def test_files_are_parallel_and_within_their_lengths(tmp_path):
    write_corpus(str(tmp_path / "new"), 1, SPLITS)
    folder = tmp_path / "new"
    assert len(os.listdir(folder)) == 9
    for name, number in (("test", 60), ("valid", 20), ("train", 300)):
        for suffix in ("en", "de", "docs"):
            assert len(lines(folder, f"{name}.{suffix}")) == number
            assert all(lines(folder, f"{name}.{suffix}"))
    lengths = [count_tokens(line) for line in lines(folder, "test.en")]
    assert all(4 <= length <= 8 for length in lengths[:30])
    assert all(20 <= length <= 30 for length in lengths[30:])


def test_documents_are_counted_through_all_ranges(tmp_path):
    write_corpus(str(tmp_path), 1, SPLITS)
    numbers = [int(line) for line in lines(tmp_path, "test.docs")]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(8))
    assert numbers[29] != numbers[30]


def test_no_sentence_is_in_two_splits_nor_twice_in_test(tmp_path):
    small = Range(4, 5)
    splits = [Split("test", 60, [small, small]), Split("valid", 60, [small])]
    write_corpus(str(tmp_path), 1, [*splits, Split("train", 1000, [small])])
    test, valid, train = (lines(tmp_path, f"{name}.en") for name in ("test", "valid", "train"))
    assert len(set(test)) == 120 and len(set(valid)) == 60
    assert not set(test) & set(valid) and not (set(test) | set(valid)) & set(train)
    assert len(set(train)) < 1000


def test_test_text_is_the_same_whatever_the_size_of_training(tmp_path):
    write_corpus(str(tmp_path / "a"), 1, SPLITS)
    write_corpus(str(tmp_path / "b"), 1, [*SPLITS[:2], Split("train", 10, [Range(4, 8)])])
    assert lines(tmp_path / "a", "test.de") == lines(tmp_path / "b", "test.de")
    assert lines(tmp_path / "a", "train.de")[0] == lines(tmp_path / "b", "train.de")[0]


@pytest.mark.parametrize("join", [2, 3, 10])
def test_joined_lines_hold_neighbours_of_one_document(tmp_path, join):
    write_corpus(str(tmp_path / "joined"), 1, [Split("test", 24, [Range(4, 8)])], join=join)
    joined = lines(tmp_path / "joined", "test.en")
    assert len(joined) == 24 == len(lines(tmp_path / "joined", "test.docs"))
    for english, german in zip(joined, lines(tmp_path / "joined", "test.de")):
        assert len(english.split(". <sep> ")) == join == len(german.split(". <sep> "))
    size = max(1, 8 // join)
    documents = [int(line) for line in lines(tmp_path / "joined", "test.docs")]
    assert documents == [number // size for number in range(24)]


def test_the_separator_can_be_chosen(tmp_path):
    write_corpus(str(tmp_path), 1, [Split("test", 2, [Range(4, 8)])], join=2, separator="|||")
    assert all(line.count(" ||| ") == 1 for line in lines(tmp_path, "test.en"))


def test_a_failed_run_leaves_the_files_as_they_were(tmp_path):
    (tmp_path / "test.en").write_text("before\n")
    impossible = Split("train", 100000, [Range(3, 3)])._replace(name="more")
    with pytest.raises(UsageError):
        write_corpus(str(tmp_path), 1, [SPLITS[0], impossible])
    assert os.listdir(tmp_path) == ["test.en"]
    assert lines(tmp_path, "test.en") == ["before"]


def test_bad_input_is_told_in_one_line(tmp_path):
    for options in ({"join": 0}, {"separator": "a b"}, {"separator": ""}):
        with pytest.raises(UsageError, match="not"):
            write_corpus(str(tmp_path), 1, SPLITS, **options)
    for text in ("4", "4-", "-4-20", "4-20-30", "a-b"):
        with pytest.raises(UsageError, match="like 4-20"):
            Range.parse(text)
    assert Range.parse("4-20") == (4, 20)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        write_corpus(str(tmp_path / "file" / "in"), 1, SPLITS)


def test_the_command_writes_a_corpus(run, tmp_path):
    command = ["posenc", "corpus", "--output", tmp_path, "--valid", 3]
    command += ["--train", 20, "--train-length", "4-9", "--test", 5, "--test-lengths", "4-9,12-14"]
    run(*command)
    numbers = [len(lines(tmp_path, f"{name}.de")) for name in ("train", "valid", "test")]
    assert numbers == [20, 3, 10]


@pytest.mark.parametrize(
    "option, value, message",
    [("--train-length", "1-2", "lengths start at 3"), ("--train", "-5", "must not be negative")],
)
def test_the_command_tells_bad_input_in_one_line(start, tmp_path, option, value, message):
    command = ["posenc", "corpus", "--output", tmp_path, option, value]
    process = start(*command)
    printed = process.communicate()[0]
    assert process.returncode == 1
    assert message in printed and printed.count("\n") == 1
