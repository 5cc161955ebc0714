"""Vocabularies of WordPiece and SentencePiece."""

import pytest

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import vocabulary

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

LINES = [f"the dog {i} learns letters {chr(97 + i % 26) * 3} . 東京" for i in range(200)]
KINDS = {"wordpiece": vocabulary.learn_wordpiece, "sentencepiece": vocabulary.learn_sentencepiece}
each_kind = pytest.mark.parametrize("learn", KINDS.values(), ids=KINDS)


@each_kind
def test_the_vocabulary_has_the_size_asked_for_and_is_the_same_every_time(tmp_path, learn):
    for name in "ab":
        learn(lambda: iter(LINES), tmp_path / name, 86)
    # the library's own order of pieces changes from call to call
    one, other = (subwords.load(tmp_path / name).dictionary() for name in "ab")
    assert one.symbols == other.symbols and one[0] == "<s>" and one[3] == "<unk>"
    assert one.add_symbol("<mask>") == 85


@each_kind
def test_a_small_corpus_gives_as_many_entries_as_there_are(tmp_path, learn):
    learn(lambda: iter(["aa bb"]), tmp_path, 120000)
    assert 2 <= len(subwords.load(tmp_path).vocabulary()) < 20


@pytest.mark.parametrize("characters, kept", [(10, 10), (1000, 29)])
def test_of_many_characters_wordpiece_keeps_the_frequent_ones(
    tmp_path, monkeypatch, characters, kept
):
    monkeypatch.setattr(vocabulary, "WORDPIECE_CHARACTERS", characters)
    vocabulary.learn_wordpiece(lambda: iter(LINES), tmp_path, 300)
    entries = set(subwords.load(tmp_path).vocabulary())
    assert len({piece for piece in entries if len(piece) == 1 and piece.islower()}) <= kept
    # punctuation and Chinese characters are words of their own
    assert {"e", "t", "##e"} <= entries and not {"##.", "##東", "t."} & entries


def test_sentencepiece_learns_from_long_lines_too(tmp_path):
    lines = [*LINES, "ξ" * 3 + "word " * 2000 + "ξ"]
    vocabulary.learn_sentencepiece(lambda: iter(lines), tmp_path, 300, 1.0)
    assert subwords.load(tmp_path).encode("ξ")[-1] != "<unk>"


@each_kind
def test_impossible_vocabularies_are_refused_in_one_line(tmp_path, learn):
    for size in (20, 0, -3):
        with pytest.raises(UsageError, match=f"a vocabulary of {size} is too small"):
            learn(lambda: iter(LINES), tmp_path, size)
    for lines in ([], [""], ["\u200b", "<unk> ."]):
        with pytest.raises(UsageError, match="there are no words"):
            learn(lambda lines=lines: iter(lines), tmp_path, 100)
    assert not list(tmp_path.iterdir())


@each_kind
def test_what_is_wrong_with_the_lines_is_what_is_told(tmp_path, learn):
    def damaged():
        yield from LINES
        raise UsageError("text, line 201: invalid UTF-8")

    with pytest.raises(UsageError, match="^text, line 201: invalid UTF-8$"):
        learn(damaged, tmp_path, 86)
