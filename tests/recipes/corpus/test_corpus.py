"""What a generated corpus promises: the same text for ever, lengths, splits, documents, files."""

import hashlib
import os
import re

import pytest

from fairseq_posenc.errors import UsageError
from recipes.corpus import Range, Split, generate, write_corpus

# options of the command, and the beginning of the SHA-256 of its text and documents; not to be
# updated lightly: published results were made from this text
TEXTS = [
    # quickstart.sh, whose training text goes on to 20,000 lines
    (
        "--seed 1 --train 4000 --train-length 4-20 --valid 300 --test 150 "
        "--test-lengths 4-20,21-30,31-45,46-60",
        "60772fb9a4125a39",
    ),
    (
        "--seed 7 --train 2000 --train-length 3-40 --valid 100 --test 50 --test-lengths 3-9,61-90",
        "285da01ea15b0769",
    ),
]
SPLITS = [
    Split("test", 30, [Range(4, 8), Range(20, 30)]),
    Split("valid", 20, [Range(4, 8)]),
    Split("train", 300, [Range(4, 8)]),
]


def lines(folder, name):
    return (folder / name).read_text(encoding="utf-8").splitlines()


def lengths(texts):
    """Words and punctuation marks of each text."""
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


@pytest.mark.parametrize("options, checksum", TEXTS)
def test_a_command_gives_the_same_text_for_ever(run, tmp_path, options, checksum):
    run("python", "-m", "recipes.corpus", "--output", tmp_path, *options.split(), "--quiet")
    files = [path for path in sorted(tmp_path.iterdir()) if path.suffix in (".en", ".de", ".docs")]
    assert len(files) == 9
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    assert digest.hexdigest()[:16] == checksum


def test_files_are_parallel_within_their_lengths_and_in_documents(tmp_path):
    write_corpus(str(tmp_path), 1, SPLITS)
    for name, number in (("test", 60), ("valid", 20), ("train", 300)):
        for suffix in ("en", "de", "docs", "clauses"):
            assert len(lines(tmp_path, f"{name}.{suffix}")) == number
            assert all(lines(tmp_path, f"{name}.{suffix}"))
    found = lengths(lines(tmp_path, "test.en"))
    assert all(4 <= length <= 8 for length in found[:30])
    assert all(20 <= length <= 30 for length in found[30:])
    documents = [int(line) for line in lines(tmp_path, "test.docs")]
    assert documents == [first + n // 8 for first in (0, 4) for n in range(30)]
    pairs = [*generate(30, "1/test/4-8", 4, 8, unique=True)]
    assert lines(tmp_path, "test.clauses")[:30] == [str(pair.clauses) for pair in pairs]


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
    assert lines(tmp_path / "a", "train.de")[:10] == lines(tmp_path / "b", "train.de")


def test_a_failed_run_leaves_the_files_as_they_were(tmp_path):
    (tmp_path / "test.en").write_text("before\n")
    with pytest.raises(UsageError, match="different sentences of 3-3 tokens; ask for fewer"):
        write_corpus(str(tmp_path), 1, [SPLITS[0], Split("more", 100000, [Range(3, 3)])])
    assert os.listdir(tmp_path) == ["test.en"]
    assert lines(tmp_path, "test.en") == ["before"]


@pytest.mark.parametrize(
    "options, message",
    [
        ("--train-length 1-2", "lengths start at 3"),
        ("--train-length 0-20", "as short as 0 tokens"),
        ("--test-lengths 20-4", "20 is more than 4"),
        ("--test-lengths 4-20-30", "like 4-20"),
        ("--test-lengths -4-20", "like 4-20"),
        ("--train -5", "must not be negative"),
        ("--output /dev/null/in", "cannot write /dev/null/in: Not a directory"),
    ],
)
def test_bad_input_is_reported_in_one_line_and_writes_nothing(fails, tmp_path, options, message):
    if "--output" not in options:
        options += f" --output {tmp_path}"
    command = ["python", "-m", "recipes.corpus", "--quiet"]
    printed = fails(*command, *options.replace(" -4", "=-4").split())
    assert message in printed and printed.count("\n") == 1
    assert not os.listdir(tmp_path)
