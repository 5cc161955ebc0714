import random

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.generated import read_generated

LOG = [
    "2026-01-31 10:00:00 | INFO | fairseq_cli.generate | loading model(s) from a.pt",
    "Generate test with beam=5: BLEU4 = 27.31, 60.1/33.2/20.4/12.9",
]


def lines_of(sentence, text="a b@@ c", kinds="STHDP"):
    texts = {
        "S": f"source {sentence}",
        "T": f"target {sentence}",
        "H": f"-0.5\t{text}",
        "D": f"-0.5\t{text}",
        "P": "-0.1 -0.2",
    }
    return [f"{kind}-{sentence}\t{texts[kind]}" for kind in kinds]


def test_lines_in_any_order_come_out_in_the_order_of_the_test_set(write):
    lines = LOG + [line for i in range(12) for line in lines_of(i, f"hypothesis {i}")]
    random.Random(3).shuffle(lines)
    found = read_generated(write("out", lines))
    assert found.hypotheses == [f"hypothesis {i}" for i in range(12)]
    assert found.references == [f"target {i}" for i in range(12)]
    assert found.sources == [f"source {i}" for i in range(12)]


def test_the_best_scored_of_several_hypotheses_is_taken(write):
    lines = lines_of(0) + ["H-0\t-0.1\tbest", "D-0\t-0.1\tbest", "H-0\t-2\tworse", "D-0\t-2\tworse"]
    found = read_generated(write("out", lines))
    assert (found.hypotheses, found.decoded) == (["best"], ["best"])


def test_a_hypothesis_without_a_finite_score_is_a_hypothesis(write):
    lines = ["H-0\t-inf\tx", "D-0\t-inf\tx", "H-1\tnan\ty", "D-1\tnan\ty"]
    assert read_generated(write("out", lines)).hypotheses == ["x", "y"]


def test_odd_output_is_read(write):
    found = read_generated(write("out", ["S-0\t", "T-0\t", "H-0\t-1\t", "D-0\t-1\t"]))
    assert (found.sources, found.references, found.hypotheses) == ([""], [""], [""])
    found = read_generated(write("out", lines_of(0, kinds="HD")))
    assert (found.references, found.sources) == (None, None)
    # separators that do not end a line
    text = "a \u2028 b \x0b c \x85 d"
    assert read_generated(write("out", lines_of(0, text)), expected=1).hypotheses == [text]


def test_missing_sentences_are_named_with_the_remedy(write):
    lines = [line for i in range(20) if i % 2 for line in lines_of(i)]
    with pytest.raises(UsageError) as error:
        read_generated(write("out", lines))
    message = str(error.value)
    assert "10 of 20 sentences (ids 0, 2, 4, 6, 8, ...)" in message
    assert "--required-batch-size-multiple 1" in message
    assert "--max-source-positions/--max-target-positions" in message


@pytest.mark.parametrize(
    ("lines", "expected", "message"),
    [
        # a missing last sentence is noticed when the number is known
        (lines_of(0) + lines_of(1), 3, r"1 of 3 sentences \(ids 2\)"),
        (lines_of(0) + lines_of(1), 1, "do not belong together"),
        (lines_of(0) + lines_of(1, kinds="SHD"), None, "no T-line for 1 of 2"),
        (["some text"], None, "no H-lines"),
        (lines_of(0, kinds="STH"), None, "no D-lines"),
        (lines_of(0) + lines_of(0), None, "second time"),
        ([*lines_of(0), "H-1\t-0.3"], None, "line 6.*cut short"),
        ([*lines_of(0), "H-1"], None, "line 6.*cut short"),
        ([*lines_of(0), "H-1\tno number\ttext"], None, "line 6.*score"),
        (lines_of(0, "a b2026 | INFO | fairseq.logging | 100"), None, "2>&1"),
        (
            ["| INFO | fairseq_cli.generate | {'score_reference': True}", *lines_of(0)],
            None,
            "made with --score-reference: its hypotheses are the references",
        ),
        (lines_of(0, "a bINFO:fairseq.logging.progress_bar:100"), None, "2>&1"),
    ],
)
def test_output_that_is_broken_or_incomplete_is_refused(write, lines, expected, message):
    with pytest.raises(UsageError, match=message):
        read_generated(write("out", lines), expected)
