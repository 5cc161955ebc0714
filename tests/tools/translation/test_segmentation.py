"""What is kept beside binarised data makes the same tokens of a test set as the recipe did."""

import json
from pathlib import Path

import pytest

from fairseq_posenc.data.segmentation import read_moses, tokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.corpora import CORPORA
from fairseq_posenc.tools.translation.segmentation import (
    keep,
    moses,
    moses_of_tests,
    moses_of_training,
)
from fairseq_posenc.tools.translation.text import prepare_text
from fairseq_posenc.tools.translation.tokens import tokenise_file


@pytest.fixture
def codes(tmp_path):
    """A file of merges."""
    path = tmp_path / "bpe.codes"
    path.write_text("#version: 0.2\nt h\nth e</w>\n")
    return str(path)


@pytest.fixture
def bin_folder(tmp_path):
    """An empty folder for binarised data."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def kept_tokens(folder, path):
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return tokenise_lines(lines, read_moses(str(folder / "tokeniser.json"), "en"))


@pytest.mark.parametrize("changes", [{}, {"aggressive": False}, {"plain_quotes": False}])
def test_raw_test_sets_become_the_recipes_tokens(corpus, raw, codes, bin_folder, changes):
    corpus = corpus._replace(**changes)
    text = bin_folder.parent / "text"
    prepare_text(corpus, str(raw), str(text))
    keep(codes, str(bin_folder), corpus)
    tokens = (text / "newstest2012.tok.en").read_text(encoding="utf-8").split("\n")[:-1]
    assert kept_tokens(bin_folder, text / "newstest2012.raw.en") == tokens
    assert (bin_folder / "codes").read_text() == Path(codes).read_text()


def test_without_a_corpus_text_becomes_the_tokens_of_tokenise_py(codes, bin_folder, hard_lines):
    source, tokens = bin_folder.parent / "raw.en", bin_folder.parent / "tok.en"
    lines = [line for text in hard_lines for line in text.splitlines()]
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tokenise_file(str(source), str(tokens), moses("en"))
    keep(codes, str(bin_folder))
    expected = tokens.read_text(encoding="utf-8").split("\n")[:-1]
    assert kept_tokens(bin_folder, source) == expected


@pytest.mark.parametrize("name", ["wmt16_en_de", "wmt15_en_de", "wmt18_en_cs"])
def test_training_and_test_text_are_tokenised_alike_but_for_cape(name):
    assert moses_of_training(CORPORA[name]) == moses_of_tests(CORPORA[name])


def test_a_description_of_an_earlier_version_keeps_the_case(codes, bin_folder):
    keep(codes, str(bin_folder))
    path = bin_folder / "tokeniser.json"
    how = json.loads(path.read_text())
    del how["lowercase"]
    path.write_text(json.dumps(how))
    assert not read_moses(str(path), "en").lowercase


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda how: how.pop("escape"), "escape is missing"),
        (lambda how: how.update(escape="yes"), "escape should be true or false"),
    ],
)
def test_a_damaged_description_is_refused(codes, bin_folder, change, told):
    keep(codes, str(bin_folder))
    path = bin_folder / "tokeniser.json"
    how = json.loads(path.read_text())
    change(how)
    path.write_text(json.dumps(how))
    with pytest.raises(UsageError, match=told):
        read_moses(str(path), "en")


def test_nothing_is_kept_without_codes_or_data(codes, bin_folder):
    with pytest.raises(UsageError, match="cannot read none"):
        keep("none", str(bin_folder))
    with pytest.raises(UsageError, match="run fairseq-preprocess first"):
        keep(codes, str(bin_folder / "none"))
    assert not list(bin_folder.iterdir())
