"""Text to binary data."""

import os
import random

import pytest
from fairseq.data import data_utils, indexed_dataset

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import binarise as module
from fairseq_posenc.tools.bert.binarise import Language, Totals, binarise
from tests.tiny import learn_subwords

pytest.importorskip("tokenizers")

DICE = random.Random(1)
WORDS = "he she is was here . , the dog runs".split()
LINES = [
    None if number % 8 == 7 else " ".join(DICE.choices(WORDS, k=DICE.randint(4, 12)))
    for number in range(64)
]
END = 2


@pytest.fixture
def folder(tmp_path):
    learn_subwords(tmp_path, [line for line in LINES if line], 200)
    return tmp_path


def items(folder, split="train"):
    data = indexed_dataset.make_dataset(str(folder / split), "mmap")
    return [item.tolist() for item in data]


def files(folder):
    return {kind: (folder / f"train.{kind}").read_bytes() for kind in ("bin", "idx")}


def test_unknown_pieces_are_counted_and_get_the_number_of_the_unknown_one(folder):
    path = folder / subwords.DICTIONARY
    rows = path.read_text(encoding="utf-8")
    for more in ("", "<unk> 1 #fairseq:overwrite\n"):
        path.write_text(more + rows, encoding="utf-8")
        totals = binarise(["he was \u1234 here", "the <unk>"], folder, "train")
        assert totals.unknown == 2 and [item.count(3) for item in items(folder)] == [1, 1]


def test_fairseq_reads_what_was_cut(folder):
    totals = binarise(LINES, folder, "train")
    model, dictionary = subwords.load(folder), subwords.load_dictionary(folder)
    data = data_utils.load_indexed_dataset(str(folder / "train"), dictionary)
    expected = [
        [*map(dictionary.index, model.encode(line or "")), dictionary.eos()] for line in LINES
    ]
    assert [item.tolist() for item in data] == expected
    assert totals == Totals(
        documents=8, sentences=56, tokens=sum(map(len, expected)) - len(LINES), unknown=0
    )


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_processes_does_not_change_the_files(folder, monkeypatch, workers):
    binarise(LINES, folder, "train")
    alone = files(folder)
    for size in (1, 150):
        monkeypatch.setattr(module, "_CHUNK_CHARACTERS", size)
        binarise(LINES, folder, "train", workers=workers)
        assert files(folder) == alone


@pytest.mark.parametrize("size", [1, 100000])
def test_only_the_end_of_a_document_is_an_empty_item(folder, monkeypatch, size):
    monkeypatch.setattr(module, "_CHUNK_CHARACTERS", size)
    lines = ["\u200b", None, "he", "\x07", "he", None, "\u200b", None, None, "he", None]
    totals = binarise(lines, folder, "train")
    ends = [len(item) == 1 for item in items(folder)]
    assert ends == [False, False, True, False, True]
    assert all(item[-1] == END for item in items(folder))
    assert (totals.documents, totals.sentences) == (2, 3)


def test_lines_are_split_into_sentences_if_asked_for(folder):
    lines = ["He is . She is .", None]
    assert binarise(lines, folder, "train").sentences == 1
    totals = binarise(lines, folder, "train", split_lines=True)
    assert totals.sentences == 2 and [item.count(END) for item in items(folder)] == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 100000])
def test_unknown_tokens_are_counted_by_language(folder, monkeypatch, size):
    monkeypatch.setattr(module, "_CHUNK_CHARACTERS", size)
    chinese, none = ["he 龘", "龘", None], ["he is", None]
    labelled = [Language("en"), *none, Language("zh"), *chinese, Language("en"), *none]
    totals = binarise(labelled, folder, "train", workers=2)
    found = files(folder)
    assert totals.unknown_by_language() == [
        "zh: 66.67 % of 3 tokens unknown", "en: 0.00 % of 4 tokens unknown",
    ]  # fmt: skip
    assert binarise([*none, *chinese, *none], folder, "train").unknown_by_language() == []
    assert files(folder) == found


def test_a_text_without_words_is_reported_and_leaves_nothing(folder):
    with pytest.raises(UsageError, match="'train' has no words"):
        binarise(["\u200b", None], folder, "train")
    assert not [name for name in os.listdir(folder) if name.startswith("train")]
