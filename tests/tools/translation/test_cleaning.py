"""Cleaning keeps and drops what Moses' clean-corpus-n.perl does."""

import pytest

from fairseq_posenc.tools.translation.cleaning import Cleaning, clean, reason_to_drop

CLEANING = Cleaning(2, 80, 9)


def words(count):
    return " ".join(["w"] * count)


@pytest.mark.parametrize(
    "first, second, reason",
    [
        (words(80), words(80), None),
        (words(81), words(80), "too long"),
        (words(18), words(2), None),
        (words(19), words(2), "ratio"),
        (words(2), words(2), None),
        (words(1), words(2), "too short"),
        ("", words(2), "empty"),
        (" \u00a0 ", words(2), "empty"),
        ("w " + "x" * 1000, words(2), None),
        ("w " + "x" * 1001, words(2), "long word"),
    ],
)
def test_limits_themselves_are_allowed_on_either_side(first, second, reason):
    assert reason_to_drop((first, second), CLEANING) == reason
    assert reason_to_drop((second, first), CLEANING) == reason


def test_a_broken_ratio_is_compared_exactly():
    cleaning = Cleaning(1, 250, 1.5)
    assert reason_to_drop((words(3), words(2)), cleaning) is None
    assert reason_to_drop((words(4), words(3)), cleaning) is None
    assert reason_to_drop((words(5), words(3)), cleaning) == "ratio"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.en").write_text("one two\n\nthree\n")
    (tmp_path / "a.de").write_text("eins zwei\nnichts\ndrei vier\n")
    return tmp_path


def test_files_are_cleaned_in_place(files):
    prefix, languages = str(files / "a"), ("en", "de")
    assert clean(prefix, prefix, languages, None) == (3, {})
    cleaning = Cleaning(1, 250, 1.5)
    assert clean(prefix, prefix, languages, cleaning) == (1, {"empty": 1, "ratio": 1})
    assert (files / "a.en").read_text() == "one two\n"
    assert (files / "a.de").read_text() == "eins zwei\n"
