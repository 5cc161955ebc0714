"""What texts are in: scripts, tags, Unicode forms, subwords, and files of scores."""

import json
import os
from functools import partial

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import score
from fairseq_posenc.tools.scores.data_folder import check_pieces
from fairseq_posenc.tools.scores.inputs import read_texts
from tests.tools.scores.conftest import HYPOTHESES, REFERENCES, SOURCES, output_of

evaluate = partial(score.evaluate, language="de", source_language="en")


CHINESE = ["我今天很高兴见到你", "他们在公园里踢足球", "这本书是我父亲写的"] * 3
THAI = ["ฉันดีใจที่ได้พบคุณ", "เขาเล่นฟุตบอลในสวน", "หนังสือเล่มนี้พ่อเขียน"] * 3
JAPANESE = ["今日はあなたに会えてうれしいです", "彼らは公園でサッカーをしています"] * 3


@pytest.mark.parametrize(
    ("name", "lines", "language"),
    [
        ("cn", CHINESE, "zh"),
        ("tgt", THAI, "th"),
        ("jp", JAPANESE, "ja"),
        ("tgt", REFERENCES, "tgt"),
    ],
)
def test_a_target_whose_name_is_no_language_is_scored_by_its_script(write, name, lines, language):
    result = score.evaluate(
        hypothesis=write("h", [line[:-1] for line in lines]),
        reference=write("r", lines),
        language=name,
        bins=[5],
        length_of="reference",
    )
    assert result.language == language
    remark = f"the text of {name!r} has no spaces between words: scored as {language}"
    assert (remark in result.remarks) == (name != language)
    assert result.by_length.unit == ("words" if name == language else "characters")
    assert result.all.metrics["sacrebleu"] > 50


@pytest.mark.parametrize("word", ["می\u200cروم", "ශ්\u200dරී", "o\u0323\u0301de"])
def test_words_are_counted_by_blanks(write, word):
    """Moses parts words at joiners and at accents without a composed letter."""
    lines = [f"{word} {word}.", f"x{word}", f"{word} {word} {word}"] * 3
    files = {"hypothesis": write("h", lines), "reference": write("r", lines)}
    result = evaluate(**files, bins=[3], length_of="reference")
    assert result.sentences.length == [2, 1, 3] * 3
    files = {name: write(name, REFERENCES * 3) for name in files}
    result = evaluate(**files, bins=[3], source=write("s", lines))
    assert result.sentences.length == [2, 1, 3] * 3
    assert result.sentences.source == lines


@pytest.mark.parametrize(
    "tags", ["__src__en__ __tgt__hi__", "<BT>", "<formal>", ">>deu<<", "translate:"]
)
def test_tags_are_no_words_of_a_source(write, tags):
    sources = [f"{tags} {source}" for source in SOURCES * 3]
    files = {"hypothesis": write("h", HYPOTHESES * 3), "reference": write("r", REFERENCES * 3)}
    result = evaluate(**files, source=write("s", sources), bins=[3])
    assert result.sentences.length == [2, 5, 9] * 3
    assert any("not counted as words" in remark for remark in result.remarks)


def test_an_unknown_word_is_no_tag(write):
    sources = [f"<unk> {line}" for line in SOURCES * 3]
    output = output_of([f"{line} ." for line in REFERENCES * 3], REFERENCES * 3, sources)
    result = evaluate(generated=write("out", output), bins=[3])
    assert result.sentences.length == [3, 6, 10] * 3
    assert not any("not counted as words" in remark for remark in result.remarks)


METRICX = [
    {"source": s, "reference": r, "hypothesis": h, "prediction": n + 0.5}
    for n, (s, r, h) in enumerate(zip(SOURCES, REFERENCES, HYPOTHESES))
]


def test_scores_of_sentences_are_read_from_lines_of_json_of_the_same_texts(files, write):
    def scored(segments):
        path = write("m", [json.dumps(one) for one in segments])
        return evaluate(**files, segment_scores={"MetricX": path}).all.metrics["MetricX"]

    assert scored(METRICX) == 1.5
    for key, text, said in (
        ("reference", "die Katze", "scores other references: sentence 2 is 'die Katze' there"),
        ("hypothesis", "die Katze", "scores other translations: sentence 2 is 'die Katze' there"),
        ("prediction", None, "sentence 2 has no number called MetricX or COMET or prediction"),
    ):
        with pytest.raises(UsageError, match=said):
            scored([METRICX[0], {**METRICX[1], key: text}, METRICX[2]])


@pytest.mark.parametrize(
    ("hypothesis", "reference", "said"),
    [
        ("the &amp; cat", "the &quot; cat", "3 references hold entities such as &quot;"),
        ("the cat", "The cat", "the hypotheses have no capitals, the references have capitals"),
        ("The cat", "THE CAT", "the hypotheses have capitals, the references are all capitals"),
        ("caf\u00e9", "cafe\u0301", "the references are not in Unicode's form NFC"),
        ("cafe\u0301", "caf\u00e9", "the references are not in Unicode's form NFD"),
        ("The caf\u00e9", "A caf\u00e9", None),
        ("The cat", "A caf\u00e9", None),
        ("The cat", "the cat", "the hypotheses have capitals, the references have no capitals"),
        ("The cat", "A cafe\u0301", None),
        ("\u092f\u0939", "\u092f\u0939 NATO", None),  # Hindi has no capitals
        (
            "\u0627\u0644\u0628\u064a\u062a Nato",
            "\u0627\u0644\u0628\u064a\u062a NATO",
            None,
        ),  # Arabic
    ],
)
def test_forms_of_references_that_no_hypothesis_has_are_told(write, hypothesis, reference, said):
    files = {"hypothesis": write("h", [hypothesis] * 3), "reference": write("r", [reference] * 3)}
    told = evaluate(**files).remarks
    assert [line.startswith(said) for line in told] == [True] if said else not told


def test_an_output_of_other_subwords_than_the_folders_is_refused(write, tmp_path, generated):
    words = {word for line in HYPOTHESES for word in line.split()} | {"spiel@@", "en"}
    dictionary = write("dict.de.txt", [f"{word} 1" for word in sorted(words)])
    check_pieces(generated, str(tmp_path), ["spiel@@ en ein"], "de")
    with pytest.raises(UsageError, match="2 of 4 subwords that .* lacks, such as .*--data"):
        check_pieces(generated, os.path.dirname(dictionary), ["spi@@ elen ein Haus"], "de")


@pytest.mark.parametrize("pieces", ["d@@ as Haus", "\u2581das \u2581Haus", "ein Ha ##us"])
def test_hypotheses_of_subwords_are_not_compared_with_words(write, pieces):
    """As lines of fairseq-generate's output that were cut out by hand."""
    files = {"hypothesis": write("h", [pieces] * 3), "reference": write("r", REFERENCES)}
    with pytest.raises(UsageError, match="3 hypotheses hold subwords, marked .*--generated"):
        evaluate(**files)
    files = {"hypothesis": files["reference"], "reference": files["hypothesis"]}
    with pytest.raises(UsageError, match="3 references hold subwords, .* words: give raw text"):
        evaluate(**files)
    files["hypothesis"] = files["reference"]
    assert "hypotheses and references hold subwords" in evaluate(**files).remarks[-1]


def test_pieces_that_fairseq_has_joined_are_plain_text(write):
    """Its log says which kind they were; words of such text are not those between blanks."""

    def read(hypothesis, reference, language, *log):
        lines = output_of([hypothesis], [reference], ["a cat"])
        return read_texts(generated=write("out", [*log, *lines]), language=language)

    log = "'common_eval': {'post_process': 'sentencepiece'}"
    assert read("ein Haus, rot.", "das Haus.", "de", log).hypothesis_tokens == ["ein Haus , rot ."]
    texts = read("猫。", "猫 跑。", "zh")
    assert texts.hypothesis_tokens == ["猫 。"] and texts.reference_tokens == ["猫 跑 。"]


@pytest.mark.parametrize("option", ["hypothesis", "reference", "source"])
def test_lines_of_json_are_no_text(write, option):
    files = {"hypothesis": HYPOTHESES, "reference": REFERENCES, "source": SOURCES}
    paths = {name: write(name, lines * 3) for name, lines in files.items()}
    evaluate(**paths)
    write(option, [json.dumps({"text": line}) for line in files[option] * 3])
    with pytest.raises(UsageError, match=f"{option} has lines of JSON.*jq -r"):
        evaluate(**paths)
