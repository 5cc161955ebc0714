import random
import re

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.generate_output import read_generate_output
from tests.tiny import parsed

LOG = [
    "2026-01-31 10:00:00 | INFO | fairseq_cli.generate | loading model(s) from a.pt",
    "Generate test with beam=5: BLEU4 = 27.31, 60.1/33.2/20.4/12.9",
]


def lines_of(sentence, text="a b@@ c", kinds="STHDP"):
    texts = {
        "S": f"{sentence} source",
        "T": f"target {sentence}",
        "H": f"-0.5\t{text}",
        "D": f"-0.5\t{text}",
        "P": "-0.1 -0.2",
    }
    return [f"{kind}-{sentence}\t{texts[kind]}" for kind in kinds]


def test_lines_in_any_order_come_out_in_the_order_of_the_test_set(write):
    lines = LOG + [line for i in range(12) for line in lines_of(i, f"hypothesis {i}")]
    random.Random(3).shuffle(lines)
    found = read_generate_output(write("out", lines))
    assert found.hypotheses == [f"hypothesis {i}" for i in range(12)]
    assert found.references == [f"target {i}" for i in range(12)]
    assert found.sources == [f"{i} source" for i in range(12)]


def test_the_best_scored_of_several_hypotheses_is_taken(write):
    lines = lines_of(0) + ["H-0\t-0.1\tbest", "D-0\t-0.1\tbest", "H-0\t-2\tworse", "D-0\t-2\tworse"]
    found = read_generate_output(write("out", lines))
    assert (found.hypotheses, found.decoded) == (["best"], ["best"])


def test_a_hypothesis_without_a_finite_score_is_a_hypothesis(write):
    lines = ["H-0\t-inf\tx", "D-0\t-inf\tx", "H-1\tnan\ty", "D-1\tnan\ty"]
    assert read_generate_output(write("out", lines)).hypotheses == ["x", "y"]


def test_odd_output_is_read(write):
    found = read_generate_output(write("out", ["S-0\t", "T-0\t", "H-0\t-1\t", "D-0\t-1\t"]))
    assert (found.sources, found.references, found.hypotheses) == ([""], [""], [""])
    found = read_generate_output(write("out", lines_of(0, kinds="HD")))
    assert (found.references, found.sources) == (None, None)
    # separators that do not end a line
    text = "a \u2028 b \x0b c \x85 d"
    assert read_generate_output(write("out", lines_of(0, text)), expected=1).hypotheses == [text]


def test_missing_sentences_are_named_with_the_remedy(write):
    lines = [line for i in range(14) if i % 2 for line in lines_of(i)]
    with pytest.raises(UsageError) as error:
        read_generate_output(write("out", lines))
    message = str(error.value)
    assert "7 of 14 sentences (ids 0, 2, 4, 6, 8, ...)" in message
    assert "--required-batch-size-multiple 1" in message
    assert "raise --max-source-positions and --max-target-positions" in message


@pytest.mark.parametrize(
    ("lines", "expected", "message"),
    [
        # a missing last sentence is noticed when the number is known
        (lines_of(0) + lines_of(1), 3, r"1 of 3 sentences \(ids 2\)"),
        (lines_of(0) + lines_of(1), 1, "the reference has 1 lines, and .* all 2 sentences"),
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
        read_generate_output(write("out", lines), expected)


def logged(*given):
    """How fairseq-generate logs its options."""
    cfg = parsed(["bin", "--path", "m.pt", *given], "generation")
    return f"2026-01-31 | INFO | fairseq_cli.generate | {cfg}"


MULTILINGUAL = "--task translation_multi_simple_epoch --lang-pairs en-de -s en -t de".split()


@pytest.mark.parametrize("given, said", [
    ("--score-reference", "--score-reference: its hypotheses are the references"),
    ("--prefix-size 300", "--prefix-size 300: its hypotheses begin with words of the references"),
    ("--prefix-size 1", "--prefix-size 1: "),
    ("--constraints", "--constraints ordered: its hypotheses were made to hold words"),
])  # fmt: skip
def test_hypotheses_made_with_the_references_in_sight_are_refused(write, given, said):
    for task in ([], MULTILINGUAL):
        lines = [logged(*given.split(), *task), *lines_of(0), *lines_of(1)]
        with pytest.raises(UsageError, match=f"out was made with {said}.*to translate"):
            read_generate_output(write("out", lines))
    # as Namespace, before fairseq 0.10
    namespace = f"Namespace(beam=5, {given[2:].split()[0].replace('-', '_')}=7, quiet=False)"
    with pytest.raises(UsageError, match="was made with"):
        read_generate_output(write("out", [namespace, *lines_of(0)]))


def test_a_prefix_that_is_a_tag_of_the_language_gives_nothing_away(write):
    lines = [f"{kind}-{n}\t{'-1' if kind in 'HD' else ''}\t__de__ w{n}".replace("\t\t", "\t")
             for n in range(3) for kind in "THD"]  # fmt: skip
    read_generate_output(write("out", [logged("--prefix-size", "1"), *lines]))
    with pytest.raises(UsageError, match="--prefix-size 2"):
        read_generate_output(write("out", [logged("--prefix-size", "2"), *lines]))
    forced = logged("--prefix-size", "1", *MULTILINGUAL, "--decoder-langtok")
    read_generate_output(write("out", [forced, *lines_of(0)]))


def test_constraints_of_fairseq_interactive_are_noticed(write):
    with pytest.raises(UsageError, match="--constraints"):
        read_generate_output(write("out", ["C-0\tHaus", *lines_of(0)]))


@pytest.mark.parametrize("given, said", [
    ("--lm-path lm.pt --lm-weight 0.2", "a language model took part"),
    ("--sampling --beam 1", "drawn at random"),
    ("--replace-unk --dataset-impl raw", "words of the source"),
    ("--path a.pt:b.pt", "2 models together"),
    ("--gen-subset train", "of the training set"),
    ("--retain-dropout", "dropout was on"),
    ("--model-overrides {'beam':1}", "options were changed .*beam"),
    ("--truncate-source", "sources were cut"),
    ("--match-source-len", "as long as their sources"),
    ("--lm-path lm.pt", None),
    ("--beam 7 --lenpen 0.6 --nbest 2 --max-len-b 100 --gen-subset valid", None),
])  # fmt: skip
def test_options_that_lend_the_model_a_hand_are_remarked(write, given, said):
    remarks = read_generate_output(write("out", [logged(*given.split()), *lines_of(0)])).remarks
    assert bool(remarks) == bool(said) and all(re.search(said, line) for line in remarks)


def test_without_a_log_words_that_all_hypotheses_share_with_references_are_remarked(write):
    lines = [
        line
        for n in range(30)
        for line in (f"T-{n}\tw{n} v{n} a", f"H-{n}\t-1\tw{n} v{n} b", f"D-{n}\t-1\tw{n} v{n} b")
    ]
    [remark] = read_generate_output(write("out", lines)).remarks
    assert "begins with 2 words of its reference" in remark and "--prefix-size" in remark
    assert read_generate_output(write("out", [logged(), *lines])).remarks == []
    lines[4] = "H-1\t-1\ta b"
    assert read_generate_output(write("out", lines)).remarks == []


def test_missing_sentences_have_their_true_cause_named(write):
    fifty = [line for n in range(50) for line in lines_of(n)]
    with pytest.raises(UsageError, match="150 of 200 sentences .*is of another test set"):
        read_generate_output(write("out", fifty), expected=200)
    some = [line for n in range(0, 50, 2) for line in lines_of(n)]
    skipped = "WARNING | 25 samples have invalid sizes and will be skipped, max_positions=(9, 9)"
    for log, said in (
        (skipped, "25 samples have invalid sizes and will be skipped, says its log"),
        (logged("--distributed-world-size", "2"), "of one of 2 workers"),
        (logged("--distributed-world-size", "1"), "it was cut off, or .* were skipped"),
    ):
        with pytest.raises(UsageError, match=f"24 of 49 sentences.*{said}"):
            read_generate_output(write("out", [log, *some]))


@pytest.mark.parametrize(
    ("given", "sources", "lengths", "cut"),
    [
        ("", 4, [200, 200, 7],
         r"2 of 3 translations end at the limit of length \(--max-len-a 0 .*--max-len-b 200$"),
        ("--max-len-a 1.5 --max-len-b 10", 9, [25, 24, 30],
         "2 of 3 translations end .* and may be cut: .* more, as --max-len-a 3 --max-len-b 10$"),
        ("--max-len-a 1.5 --max-len-b 10", 9, [24, 24, 24], None),
        ("--max-len-b 50 --remove-bpe", 4, [50, 3, 4], "1 of 3 translations end"),
        ("--max-len-a 1 --remove-bpe", 4, [300, 3, 4], None),
        # without a log, fairseq's default, or a pile of long ones
        (None, 4, [200, 7, 9], "1 of 3 translations end at 200 tokens"),
        (None, 4, [150, 150, 150], "3 of 3 translations end at 150 tokens"),
        (None, 4, [150, 150, 149], None),
        (None, 4, [9, 9, 9], None),
    ],
)  # fmt: skip
def test_translations_that_end_at_the_limit_are_counted(write, given, sources, lengths, cut):
    """P-lines have a number for each subword, and for the end, whatever is joined."""
    lines = [] if given is None else [logged(*given.split())]
    for n, length in enumerate(lengths):
        lines += [f"S-{n}\t{' '.join('w' * sources)}", f"T-{n}\tein Haus", f"H-{n}\t-0.5\tein w"]
        lines += [f"D-{n}\t-0.5\tein w", f"P-{n}\t{'-0.5 ' * length}-0.1"]
    remarks = read_generate_output(write("out", lines)).remarks
    told = [line for line in remarks if " end at " in line]
    assert len(told) == bool(cut) and all(re.match(cut, line) for line in told)
