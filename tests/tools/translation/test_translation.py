"""From raw parallel text to a binarised folder in one call."""

import bz2
import gzip
import itertools
import lzma
import os
import random
import shutil
from dataclasses import replace

import pytest
from fairseq.data import Dictionary, data_utils

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation import preparation as translation
from fairseq_posenc.tools.translation.preparation import TranslationOptions, prepare

WORDS = {"en": "the cat , dog sleeps runs here . two isn't", "fr": "le chat , chien dort court"}
PAIRS = {"train": 80, "valid": 10, "test": 12}


@pytest.fixture
def text(tmp_path):
    """A folder of English-French text; two training pairs are for cleaning to drop."""
    dice = random.Random(1)
    for split, count in PAIRS.items():
        for language, words in WORDS.items():
            lines = [" ".join(dice.choices(words.split(), k=6)) + "." for _ in range(count)]
            if split == "train":
                lines[30] = "" if language == "en" else "vide"
                lines[40] = "the" if language == "en" else "le chat " * 20
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    return tmp_path


def options(text, **changes):
    files = {split: str(text / split) for split in PAIRS}
    changes = {"output": str(text / "bin"), "bpe": 20, **files, **changes}
    if changes["train"]:
        changes = {"ratio": 9, **changes}
    return TranslationOptions("en", "fr", **changes)


def sentences(folder, split, language="en"):
    """What the binary data say, as text."""
    dictionary = Dictionary.load(str(folder / f"dict.{language}.txt"))
    path = str(folder / f"{split}.en-fr.{language}")
    return [dictionary.string(item) for item in data_utils.load_indexed_dataset(path, dictionary)]


def lines(path):
    return path.read_text().splitlines()


def contents(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def test_a_folder_holds_the_text_the_codes_and_the_tokeniser(text):
    said = []
    prepare(options(text), said.append)
    assert (
        "train: 78 of 80 pairs kept; 2 (2.5%) left out: 1 with an empty side, 1 one side more than "
        "--ratio 9 times as long as the other"
    ) in said
    assert "test: unknown tokens: 0.00 % of en, 0.00 % of fr" in said
    folder = text / "bin"
    assert set(os.listdir(folder)) == {
        "codes", "tokeniser.json", "prepare.json", "dict.en.txt", "dict.fr.txt",
            "test.raw.en", "test.raw.fr",
        *(f"{split}.en-fr.{language}.{end}" for split in PAIRS for language in WORDS
          for end in ("bin", "idx")),
    }  # fmt: skip
    assert len(lines(folder / "codes")) == 21
    assert lines(folder / "dict.en.txt") == lines(folder / "dict.fr.txt")
    assert [len(sentences(folder, split)) for split in PAIRS] == [78, 10, 12]
    found = [line.replace("@@ ", "").replace(" ", "") for line in sentences(folder, "test")]
    expected = [line.replace(" ", "") for line in lines(text / "test.en")]
    assert found == expected and "@@" in "".join(sentences(folder, "test"))


def test_sentencepieces_are_of_the_text_as_it_is(text):
    prepare(options(text, bpe=None, sentencepiece=40), lambda line: None)
    folder = text / "bin"
    assert (folder / "sentencepiece.model").exists() and not (folder / "codes").exists()
    for language in WORDS:
        found = sentences(folder, "test", language)
        joined = ["".join(line.split()).replace("▁", " ").strip() for line in found]
        assert joined == lines(text / f"test.{language}")


@pytest.mark.parametrize("kind", [{"bpe": 20}, {"bpe": None, "sentencepiece": 40}])
def test_subwords_of_another_folder_are_taken(text, kind):
    prepare(options(text, **kind), lambda line: None)
    other = {"output": str(text / "new"), "bpe": None, "subwords": str(text / "bin")}
    prepare(options(text, train=None, valid=None, **other), lambda line: None)
    first, second = contents(text / "bin"), contents(text / "new")
    del second["prepare.json"]
    assert {"test.en-fr.en.bin", "dict.fr.txt"} < set(second)
    assert all(first[name] == second[name] for name in second)
    again = options(text, **{**other, "output": str(text / "tuned"), "valid_lines": 8,
                             "valid": None})  # fmt: skip
    prepare(again, lambda line: None)
    assert len(sentences(text / "tuned", "train")) == 70


def test_pairs_of_languages_share_a_folder_if_they_share_subwords_and_tests(text):
    """Other subwords would leave numbers of other tokens in the data of the first pair."""
    shared = {"bpe": None, "subwords": str(text / "bin"), "output": str(text / "both")}
    prepare(options(text), lambda line: None)
    prepare(options(text, **shared), lambda line: None)
    before = contents(text / "both")
    for split in PAIRS:
        (text / f"{split}.fr").rename(text / f"{split}.oc")
    with pytest.raises(UsageError, match="no .*/dict.oc.txt; if .*: cp .*dict.en.txt .*/dict.txt"):
        prepare(replace(options(text, **shared), target_lang="oc"), lambda line: None)
    (text / "bin/dict.txt").write_bytes(before["dict.en.txt"])
    (text / "test.en").write_text("another\n" * 12)
    for changes, name in (
        ({**shared, "bpe": 30, "subwords": None}, "codes"),
        (shared, "test.raw.en"),
    ):
        with pytest.raises(UsageError, match=f"both has {name} of en-fr.*give --output a folder"):
            prepare(replace(options(text, **changes), target_lang="oc"), lambda line: None)
        assert contents(text / "both") == before
    (text / "test.en").write_bytes(before["test.raw.en"])
    prepare(replace(options(text, **shared), target_lang="oc"), lambda line: None)
    after = contents(text / "both")
    assert all(after[name] == before[name] for name in before if name != "prepare.json")


@pytest.mark.parametrize("mark", ["@@ ", "\u2581"])
def test_text_of_subwords_is_told(text, mark):
    for language in WORDS:
        path = text / f"train.{language}"
        path.write_text(path.read_text().replace(" ", f" {mark}"))
    said = []
    prepare(options(text, valid=None, test=None, valid_lines=9), said.append)
    assert said[1].startswith("train: ") and "pairs are of subwords" in said[1]
    assert repr(mark) in said[1]


def test_unknown_tokens_are_told_and_many_are_a_warning(text):
    prepare(options(text, bpe=None, sentencepiece=40), lambda line: None)
    (text / "test.fr").write_text("le chat dort .\n" * 11 + "猫 在 跑 。\n")
    said = []
    cut = {"train": None, "valid": None, "bpe": None, "subwords": str(text / "bin")}
    prepare(options(text, **cut, output=str(text / "new")), said.append)
    [line] = [line for line in said if line.startswith("test: unknown tokens: 0.00 % of en")]
    [warning] = [line for line in said if line.startswith("warning: ")]
    assert line.endswith(" % of fr") and ", 0.00 % of fr" not in line
    assert " % of the tokens of test.fr are not in the dictionary" in warning
    assert (
        "a model can neither tell them apart nor write them" in warning
    )  # nor is it trained on it


def test_pairs_to_validate_on_are_taken_evenly_out_of_the_training_text(text):
    prepare(options(text, valid=None, valid_lines=8, ratio=99), lambda line: None)
    train, valid = (sentences(text / "bin", split) for split in ("train", "valid"))
    assert (len(train), len(valid)) == (71, 8)  # one pair is empty
    plain = [line.replace("@@ ", "").replace(" ", "") for line in valid]
    assert plain == [line.replace(" ", "") for line in lines(text / "train.en")[9::10]]


def test_pairs_to_validate_on_are_cleaned_where_that_is_asked(text):
    for language in WORDS:
        (text / f"valid.{language}").write_text(("the le\n" + "the le " * 30 + "\n") * 8)
    for clean, kept in (False, 16), (True, 8):
        prepare(options(text, clean_valid=clean, output=str(text / f"{clean}"), max_length=50),
                lambda line: None)  # fmt: skip
        assert len(sentences(text / f"{clean}", "valid")) == kept


def test_text_may_be_compressed_and_processes_several(text):
    prepare(options(text), lambda line: None)
    kinds = itertools.cycle([(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
    for path, (ending, library) in zip(sorted(text.glob("*.fr")) + [text / "train.en"], kinds):
        (text / f"{path.name}{ending}").write_bytes(library.compress(path.read_bytes()))
        path.unlink()
    prepare(options(text, workers=2, output=str(text / "other")), lambda line: None)
    first, second = contents(text / "bin"), contents(text / "other")
    del first["prepare.json"], second["prepare.json"]
    assert first == second


def killed(*arguments, **named):
    raise KeyboardInterrupt


killed.cache_clear = lambda: None


@pytest.mark.parametrize("step", ["bpe.learn", "_encoder_of", "keep", "read_dictionary"])
def test_a_run_that_was_broken_off_goes_on_to_the_same_result(text, monkeypatch, step):
    prepare(options(text, output=str(text / "whole")), lambda line: None)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"{translation.__name__}.{step}", killed)
        prepare(options(text), lambda line: None)
    said = []
    prepare(options(text), said.append)
    assert contents(text / "bin") == contents(text / "whole")
    assert not any(line.startswith("test: 12") for line in said)  # tokenised before
    prepare(options(text), said.append)
    assert said[-1] == f"{text / 'bin'} is complete"
    with pytest.raises(UsageError, match=r"made with other options or texts \(bpe\)"):
        prepare(options(text, bpe=10))


def test_a_run_that_was_broken_off_may_be_begun_anew_with_other_options(text, monkeypatch):
    prepare(options(text, bpe=10, output=str(text / "whole")), lambda line: None)
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr(translation, "preprocess", None)
        prepare(options(text), lambda line: None)
    # nor is what was made before taken over by a third run, if the second ends while it removes it
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        prepare(options(text, bpe=10), lambda line: None)
    prepare(options(text, bpe=10), lambda line: None)
    assert contents(text / "bin") == contents(text / "whole")


def swap_ends(path):
    """Change a file and keep its size."""
    content = path.read_bytes()
    path.write_bytes(content[-1:] + content[1:-1] + content[:1])


def test_other_contents_of_the_same_name_and_size_are_refused_or_made_anew(text, monkeypatch):
    prepare(options(text), lambda line: None)
    cut = {"output": str(text / "new"), "bpe": None, "subwords": str(text / "bin")}
    cut.update(train=None, valid=None)
    prepare(options(text, **cut), lambda line: None)
    before = contents(text / "new")
    for path, what, changes in (
        (text / "train.fr", "train", {}),
        (text / "test.en", "test", cut),
        (text / "bin" / "codes", "subwords", cut),
        (text / "bin" / "dict.fr.txt", "subwords", cut),
    ):
        original = path.read_bytes()
        swap_ends(path)
        with pytest.raises(UsageError, match=rf"other options or texts \({what}\)"):
            prepare(options(text, **changes))
        path.write_bytes(original)
    assert contents(text / "new") == before
    # of a folder that was broken off nothing is taken over
    said, broken = [], {**cut, "output": str(text / "broken")}
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr(translation, "preprocess", None)
        prepare(options(text, **broken), lambda line: None)
    words = lines(text / "test.en")
    (text / "test.en").write_text("\n".join([words[1], words[0], *words[2:]]) + "\n")
    prepare(options(text, **broken), said.append)
    assert f"{text / 'broken'} was begun with other options or texts: it is made anew" in said
    found = sentences(text / "broken", "test")[0]
    assert found.replace("@@ ", "").replace(" ", "") == words[1].replace(" ", "")


ONLY_TEST = {"bpe": None, "subwords": "bin", "train": None, "valid": None}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"train": "none"}, "cannot read none.en: No such file"),
        ({"target_lang": "de"}, r"cannot read .*train.de: No such file"),
        ({"target_lang": "../x"}, "is not the name of a language"),
        ({"target_lang": "en"}, "are the same"),
        ({"train": None}, "give --train, or --subwords"),
        ({"valid": None}, "give --valid or --valid-lines"),
        ({"valid_lines": 8}, "leave out --valid"),
        ({"valid": None, "valid_lines": 3}, "--valid-lines must be at least 8"),
        ({"valid": None, "valid_lines": 80}, "--valid-lines 80 leaves nothing of 80 pairs"),
        ({"sentencepiece": 40}, "only one of --bpe, --sentencepiece and --subwords"),
        ({"bpe": None, "sentencepiece": 7}, "7 sentencepieces are too few for the 22 characters"),
        ({"bpe": None, "normalise_punctuation": True}, "leave out --normalise-punctuation"),
        ({"bpe": None, "subwords": "none"}, "there is no none/dict.en.txt"),
        ({**ONLY_TEST, "ratio": 9}, "--ratio is for training pairs"),
        ({**ONLY_TEST, "valid": "valid", "max_length": 9}, "--max-length is for training pairs"),
        ({**ONLY_TEST, "clean_valid": True}, "--clean-valid cleans --valid"),
        ({"ratio": 0.5}, "--ratio must be at least 1, not 0.5"),
        (
            {"max_length": 1},
            "0 of 80 pairs kept; .* 79 longer than --max-length 1 subwords",
        ),
        ({"output": "/dev/null/out"}, "cannot write /dev/null/out"),
    ],
)
def test_mistakes_are_reported_in_one_line(text, changes, message):
    with pytest.raises(UsageError, match=message):
        prepare(TranslationOptions(**{**vars(options(text)), **changes}), lambda line: None)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("train.fr", b"un\n", "train.fr has 1 lines, and .*train.en has more"),
        ("valid.en", b"", "valid.en is empty"),
        ("valid.fr", b"un\n", "valid.fr has 1 lines"),
        ("test.fr", b"un\n\xff\n", "test.fr, line 2: invalid UTF-8"),
    ],
)
def test_bad_text_is_reported_and_can_be_mended(text, name, content, message):
    good = (text / name).read_bytes()
    (text / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        prepare(options(text), lambda line: None)
    (text / name).write_bytes(good)
    prepare(options(text), lambda line: None)
    prepare(options(text, output=str(text / "other")), lambda line: None)
    assert contents(text / "bin") == contents(text / "other")


@pytest.mark.parametrize("mine", ["text/novel.txt", "codes", "dict.en.txt", "prepare.json"])
def test_a_folder_of_something_else_is_left_as_it_is(text, mine):
    path = text / "mine" / mine
    path.parent.mkdir(parents=True)
    path.write_text('{"train": "years of work"}', encoding="utf-8")
    with pytest.raises(UsageError, match="holds other files; give --output a folder of its own"):
        prepare(options(text, output=str(text / "mine")), lambda line: None)
    assert [found for found in (text / "mine").rglob("*") if found.is_file()] == [path]
