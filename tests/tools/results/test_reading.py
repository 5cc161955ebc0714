"""Which language is scored: never one that nobody named."""

import json

import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results.languages import remarks
from fairseq_posenc.tools.results.score import evaluate, render

# French has a space before a question mark, and an apostrophe that joins the next word
SOURCES = ["w@@ o ist der Hund ?", "das ist das Haus ."]
TARGETS = ["où est l&apos; animal ?", "c&apos; est la m@@ aison ."]
PLAIN = {"fr": "Où est l'animal ?", "de": "Où est l' animal?"}
LOG = "2026-11-21 03:59:51 | INFO | fairseq.tasks.translation | [{}] dictionary: 48 types\n"


def binarise(path, lengths):
    builder = indexed_dataset.make_builder(f"{path}.bin", impl="mmap", vocab_size=100)
    for length in lengths:
        builder.add_item(torch.tensor([5] * length + [2], dtype=torch.int32))
    builder.finalize(f"{path}.idx")


@pytest.fixture
def data(tmp_path):
    """Binarised: a test set as long as SOURCES and TARGETS, and a training set."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for side, test, train in (("de", [6, 5], [3, 5]), ("fr", [5, 6], [7, 2])):
        binarise(folder / f"test.de-fr.{side}", test)
        binarise(folder / f"train.de-fr.{side}", train)
        binarise(folder / f"valid.de-fr.{side}", [9, 9])
    return folder


@pytest.fixture
def generated(tmp_path):
    """A function that writes an output with a log before it, and returns its path."""

    def generated(log="", sources=SOURCES, targets=TARGETS, decoded=None):
        lines = []
        for i, (source, target) in enumerate(zip(sources, targets)):
            lines += [f"S-{i}\t{source}", f"T-{i}\t{target}", f"H-{i}\t-1\t{target}"]
            lines += [f"D-{i}\t-1\t{(decoded or targets)[i]}"]
        path = tmp_path / "out"
        path.write_text(log + "\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return generated


def languages(**options):
    score = evaluate(**options)
    return score["source_language"], score["language"]


def test_a_language_that_nobody_named_is_refused(generated, tmp_path):
    path = tmp_path / "plain"
    path.write_text("Où est l'animal ?\n")
    for files in (
        {"generated": generated()},
        dict.fromkeys(("hypothesis", "reference"), str(path)),
    ):
        with pytest.raises(UsageError, match="target language is not known.*--language"):
            evaluate(**files)


def test_the_language_comes_from_the_data_the_log_or_the_user(generated, data):
    assert languages(generated=generated(), data=str(data)) == ("de", "fr")
    log = LOG.format("de") + LOG.format("fr")
    assert languages(generated=generated(log)) == ("de", "fr")
    assert languages(generated=generated(), language="fr") == (None, "fr")
    assert languages(generated=generated(log), language="it", data=str(data)) == ("de", "it")


def test_french_is_detokenised_as_french_and_the_score_says_so(generated, data, tmp_path):
    raw = tmp_path / "raw"
    raw.write_text("Où est l'animal ?\nC'est la maison.\n".lower())
    files = {"generated": generated(), "reference": str(raw)}
    right, wrong = evaluate(**files, data=str(data)), evaluate(**files, language="de")
    assert right["all"]["sacrebleu"] == pytest.approx(100) and wrong["all"]["sacrebleu"] < 80
    assert "language: fr, source: de" in render(right)
    assert "language: de, source: unknown" in render(wrong)


def test_a_model_of_the_other_direction_on_the_same_data_is_noticed(generated, data):
    back = {"generated": generated(sources=TARGETS, targets=SOURCES)}
    score = evaluate(**back, data=str(data))
    assert (score["source_language"], score["language"]) == ("fr", "de")
    assert score["longest_trained"] == {"source": 7, "reference": 5}
    joined = [[line.replace("@@ ", "") for line in side] for side in (TARGETS, SOURCES)]
    back["generated"] = generated(sources=joined[0], targets=joined[1])
    score = evaluate(**back, data=str(data), language="de")
    assert score["longest_trained"] == {"source": 7, "reference": 5}


def test_variants_of_a_language_are_that_language(generated):
    for code in ("fr_XX", "FR", "fr-CA"):
        score = evaluate(generated=generated(), language=code)
        assert score["all"] == evaluate(generated=generated(), language="fr")["all"]
        assert score["language"] == code


def test_plain_sources_need_their_language(generated, tmp_path):
    (tmp_path / "source").write_text("Wo ist der Hund?\nDas ist das Haus.\n")
    files = {"generated": generated(), "source": str(tmp_path / "source"), "bins": [4]}
    with pytest.raises(UsageError, match="--source-language"):
        evaluate(**files, language="fr")
    assert evaluate(**files, language="fr", source_language="de")["by_length"]
    decoded = {"targets": ["où est ?"] * 2, "decoded": ["Où est?"] * 2}
    with pytest.raises(UsageError, match="--source-language"):
        evaluate(generated=generated(**decoded), bins=[4], language="fr")


@pytest.mark.parametrize(
    ("language", "remark"), [("fr", None), ("xx", "no rules for 'xx'"), ("zh", "spaces")]
)
def test_languages_without_rules_or_spaces_are_remarked(language, remark):
    found = remarks(language)
    assert bool(found) == bool(remark) and all(remark in line for line in found)


def test_a_language_that_sacrebleu_cannot_tokenise_is_refused(generated, monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UsageError, match=r"sacrebleu\[ja\]"):
        evaluate(generated=generated(), language="ja")


def test_sentences_within_the_trained_length_are_counted_on_both_sides(generated, data):
    score = evaluate(generated=generated(), data=str(data), bins=[4, 5])
    # trained: 5 and 7 subwords; test: (6, 5) and (5, 6)
    assert score["longest_trained"] == {"source": 5, "reference": 7}
    assert score["all"]["within"] == 1
    assert [part["within"] for part in score["by_length"]["bins"]] == [0, 1, 0]
    assert "5 subwords of the source, 7 of the target" in render(score)
    json.dumps(score, allow_nan=False)


def test_lengths_that_are_not_known_are_never_called_within(generated, data):
    joined = [[line.replace("@@ ", "") for line in side] for side in (SOURCES, TARGETS)]
    score = evaluate(generated=generated("", *joined), data=str(data))
    assert score["all"]["within"] is None and "not known" in score["remarks"][-1]
    for path in data.glob("train*"):
        path.unlink()
    score = evaluate(generated=generated(), data=str(data))
    assert score["longest_trained"] is None and "no training set" in score["remarks"][-1]


def test_a_folder_without_data_is_refused(generated, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="no binarised parallel data"):
            evaluate(generated=generated(), data=str(folder))
