"""EXTRAPOLATE and INTERPOLATE on generated text."""

import random

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.shape_data import interpolate, write_setting

PAIRS = 123
LANGUAGES = ("en", "de")


@pytest.fixture
def text(tmp_path):
    dice = random.Random(1)
    for language in LANGUAGES:
        with open(tmp_path / f"train.{language}", "w") as stream:
            for _ in range(PAIRS):
                stream.write(" ".join(map(str, range(dice.randint(40, 60)))) + "\n")
    return str(tmp_path / "train")


def read(prefix):
    return list(zip(*(read_lines(f"{prefix}.{language}") for language in LANGUAGES)))


def test_extrapolate_drops_pairs_with_a_long_side(text, tmp_path):
    lengths = [[len(line.split()) for line in pair] for pair in read(text)]
    expected = [pair for pair, both in zip(read(text), lengths) if both[0] <= 50 and both[1] <= 50]
    output = str(tmp_path / "out")
    assert write_setting("extrapolate", text, output, LANGUAGES) == (PAIRS, len(expected))
    assert read(output) == expected
    # the test has something to show: sides of exactly 50 and 51, and long ones of one side only
    flat = [length for both in lengths for length in both]
    assert {50, 51} <= set(flat) and any((a > 50) != (b > 50) for a, b in lengths)
    assert write_setting("extrapolate", text, output, LANGUAGES, longest=45)[1] < len(expected)


@pytest.mark.parametrize("keep_rest, written", [(False, 12), (True, 13)])
def test_interpolate_joins_ten_neighbours(text, tmp_path, keep_rest, written):
    output = str(tmp_path / "out")
    options = {"keep_rest": keep_rest}
    assert write_setting("interpolate", text, output, LANGUAGES, **options) == (PAIRS, written)
    before, after = read(text), read(output)
    for number, pair in enumerate(after):
        for side, line in enumerate(pair):
            sentences = [each[side] for each in before[10 * number : 10 * number + 10]]
            assert line.split(" <sep> ") == sentences
            words = sum(len(sentence.split()) for sentence in sentences)
            assert len(line.split()) == words + len(sentences) - 1
    assert len(after[-1][0].split(" <sep> ")) == (3 if keep_rest else 10)


def test_neighbours_and_separator_can_be_chosen(text, tmp_path):
    output = str(tmp_path / "out")
    options = {"neighbours": 41, "separator": "|"}
    assert write_setting("interpolate", text, output, LANGUAGES, **options) == (PAIRS, 3)
    assert read(output)[1][1].split(" | ") == [pair[1] for pair in read(text)[41:82]]


def test_nothing_is_joined_across_a_blank_line():
    lines = ["a", "b", "c", "", " ", "d", "e"]
    pairs = [(line, line.upper()) for line in lines]
    joined = interpolate(pairs, neighbours=2, separator="", keep_rest=True)
    assert [source for source, _ in joined] == ["a b", "c", "d e"]
    # a line that one language lacks is no end of a document
    assert list(interpolate([("a", "A"), ("", "B")], 2, "<sep>")) == [("a <sep> ", "A <sep> B")]


@pytest.mark.parametrize("name", ["extrapolate", "interpolate"])
def test_sides_of_different_length_are_reported_and_write_nothing(text, tmp_path, name):
    with open(f"{text}.de", "a", encoding="utf-8") as stream:
        stream.write("mehr\n")
    told = rf"train\.en has {PAIRS} lines, and .*train\.de has more"
    with pytest.raises(UsageError, match=told):
        write_setting(name, text, str(tmp_path / "out"), LANGUAGES)
    assert not list(tmp_path.glob("out*"))
