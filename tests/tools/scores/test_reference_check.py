"""References of other sentences are refused, the same sentences in another form are not."""

import random

import pytest

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.inputs import read_texts
from tests.tools.scores.conftest import output_of

DICE = random.Random(1)
WORDS = [
    "".join(DICE.choice("bcdfgklmnprstvz") + DICE.choice("aeiouäüß") for _ in range(n % 4 + 1))
    for n in range(300)
]
LINES = [" ".join(DICE.choices(WORDS, k=DICE.randint(3, 14))).capitalize() + "." for _ in range(60)]
SOURCES = [" ".join(DICE.choices(WORDS, k=8)) for _ in LINES]
OTHERS = [" ".join(DICE.choices(WORDS, k=8)) for _ in LINES]


def score(write, references, targets=None, sources=SOURCES, hypotheses=LINES, **options):
    """Read an output with T-lines ``targets`` and raw references."""
    lines = output_of(hypotheses, targets, sources)
    options = {"language": "de", "source_language": "en", "remove_bpe": "none", **options}
    return read_texts(
        generated=write("out", lines), reference=write("raw", references), **options
    ).remarks


def tokenised(lines, language="de"):
    moses = Moses(language, normalise=True, aggressive=True, lowercase=True)
    return tokenise_lines(lines, moses)


def unknown(lines, share):
    dice = random.Random(1)
    return [
        " ".join("<<unk>>" if dice.random() < share else word for word in line.split())
        for line in lines
    ]


FORMS = {
    "as it is": LINES,
    "tokenised": tokenised(LINES),
    "in capitals": [line.upper() for line in LINES],
    "unknown words": unknown(tokenised(LINES), 0.3),
    "sentencepieces": [" ".join("▁" + line.replace(" ", "▁")) for line in LINES],
    "another order": [" ".join(reversed(line.split())) for line in LINES],
    "without accents": [line.translate(str.maketrans("äüß", "aus")) for line in LINES],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_sentences_in_another_form_are_taken(write, form):
    assert not any("differs from" in line for line in score(write, LINES, FORMS[form]))


WRONG = {
    "of another test set": (OTHERS, "60 of 60 lines|5. of 60 lines"),
    "one line down": (["X", *LINES[:-1]], "the first is line 1:"),
    "a line too much in the middle": ([*LINES[:50], "X", *LINES[50:-1]], "the first is line 51:"),
    "two lines exchanged": ([*LINES[:7], LINES[8], LINES[7], *LINES[9:]], "line 8:"),
    "the sources": (SOURCES, "holds the sources of the output, from line 1"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("form", ["as it is", "tokenised", "unknown words", "sentencepieces"])
def test_references_of_other_sentences_are_refused(write, what, form):
    references, message = WRONG[what]
    with pytest.raises(UsageError, match=f"raw .*({message})"):
        score(write, references, FORMS[form])


def test_lines_of_two_letters_are_compared_too(write):
    lines = [first + second for first in "bcdfgk" for second in "aeiouäüxyz"]
    assert not any("differs from" in line for line in score(write, lines, lines, hypotheses=lines))
    with pytest.raises(UsageError, match="raw .*60 of 60 lines"):
        score(write, lines[::-1], lines, hypotheses=lines)


def test_a_line_that_someone_has_mended_is_named(write):
    mended = [*LINES[:9], "Etwas ganz anderes", *LINES[10:]]
    remark = "differs from the references in the output: 1 of 60 lines, the first is line 10"
    assert any(line.endswith(remark) for line in score(write, mended, LINES))


def test_without_anything_to_compare_a_shift_shows_in_the_hypotheses(write):
    translated = [" ".join(line.split()[1:]) for line in LINES]
    for shifted, lines in ((LINES[1:] + ["X"], "hypothesis 2 belongs to its line 1"),
                           (["X", *LINES[:-1]], "hypothesis 1 belongs to its line 2")):  # fmt: skip
        with pytest.raises(UsageError, match=f"is shifted: {lines}"):
            score(write, shifted, hypotheses=translated)
        with pytest.raises(UsageError, match="is shifted"):
            read_texts(hypothesis=write("hyp", translated), reference=write("raw", shifted),
                       language="de")  # fmt: skip
    score(write, LINES, hypotheses=translated)
    score(write, LINES, hypotheses=OTHERS)  # a model that has learned nothing
    with pytest.raises(UsageError, match="holds the sources"):
        score(write, SOURCES)
    score(write, SOURCES, source_language="de")  # to learn to copy


def test_none_of_several_references_holds_the_sources_or_is_shifted(write):
    assert score(write, [f"{line}\t{line.lower()}" for line in LINES], LINES)
    for lines, said in ((SOURCES, "holds the sources"), ([*LINES[1:], LINES[0]], "is shifted")):
        with pytest.raises(UsageError, match=f"raw, column 2 {said}"):
            score(write, ["\t".join(pair) for pair in zip(LINES, lines)], LINES)


def test_a_further_reference_is_another_translation_of_the_same_sentences(write):
    def remarks(more):
        paths = [write("a", LINES), write("b", more)]
        return read_texts(hypothesis=write("h", LINES), reference=paths, language="de").remarks

    freely = [f"{line} gestern" for line in LINES]
    assert remarks(freely) == ["2 references of each sentence"]
    assert "lines of " in remarks(OTHERS)[1] and "are they of this test set?" in remarks(OTHERS)[1]
    with pytest.raises(UsageError, match="b and .*a hold the same references: give them once"):
        remarks(LINES)
