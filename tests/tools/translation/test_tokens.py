"""Fast normalising and tokenising: what sacremoses does line by line, to the letter."""

import gzip

import pytest

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.tools.translation.tokens import tokenise_file
from tests.tools.translation.conftest import tokenise_slowly

OPTIONS = [
    {},
    {"normalise": False},
    {"printable": True, "aggressive": True},
    {"normalise": False, "aggressive": True, "escape": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "xx"])
def test_hard_lines_are_tokenised_as_line_by_line(hard_lines, language, options):
    moses = Moses(language, **options)
    assert tokenise_lines(hard_lines, moses) == list(tokenise_slowly(hard_lines, moses))


@pytest.mark.parametrize("workers", [1, 3])
def test_files_are_tokenised_in_order(tmp_path, workers):
    lines = [f"Line {number}." for number in range(15000)]
    with gzip.open(tmp_path / "text.gz", "wt") as stream:
        stream.write("\n".join(lines))
    tokenise_file(str(tmp_path / "text.gz"), str(tmp_path / "out"), Moses("en"), workers)
    expected = "".join(f"Line {number} .\n" for number in range(15000))
    assert (tmp_path / "out").read_text() == expected


@pytest.mark.parametrize("normalise", [True, False])
def test_the_command_normalises_punctuation_where_it_is_asked_to(
    tmp_path, run, hard_lines, normalise
):
    text = "".join(f"{line}\n" for line in hard_lines)
    (tmp_path / "in").write_bytes(text.encode())
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    files += ("--normalise-punctuation",) * normalise
    run("posenc", "prepare", "tokenise", "--language", "de", *files)
    lines = [line.rstrip("\r") for line in hard_lines]
    expected = tokenise_slowly(lines, Moses("de", normalise, escape=False))
    assert (tmp_path / "out").read_bytes().decode() == "".join(f"{line}\n" for line in expected)
