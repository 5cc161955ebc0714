from functools import partial

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results import texts as reading

GERMAN = {"language": "de", "source_language": "en"}
from_files = partial(reading.from_files, **GERMAN)
from_generated = partial(reading.from_generated, **GERMAN)
HYPOTHESES = ["ein H@@ aus , rot .", "der H@@ und l@@ äu@@ ft ."]
REFERENCES = ["ein H@@ aus , blau .", "die K@@ atze l@@ äu@@ ft ."]
SOURCES = ["a hou@@ se , red .", "the d@@ og ru@@ n@@ s ."]


@pytest.fixture
def write(tmp_path):
    def write(name, lines):
        path = tmp_path / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def generated(write):
    def generated(hypotheses, references, sources=SOURCES, decoded=None):
        lines = []
        for i, hypothesis in enumerate(hypotheses):
            lines += [f"S-{i}\t{sources[i]}"] if sources else []
            lines += [f"T-{i}\t{references[i]}"] if references else []
            lines += [f"H-{i}\t-0.5\t{hypothesis}"]
            lines += [f"D-{i}\t-0.5\t{(decoded or hypotheses)[i]}"]
        return write("generate-test.txt", lines)

    return generated


def joined(lines):
    return [line.replace("@@ ", "") for line in lines]


def test_subwords_are_joined_and_text_is_detokenised(generated):
    texts = from_generated(generated(HYPOTHESES, REFERENCES))
    assert texts.hypothesis_tokens == ["ein Haus , rot .", "der Hund läuft ."]
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]
    assert texts.source_tokens == ["a house , red .", "the dog runs ."]
    assert texts.hypothesis == ["ein Haus, rot.", "der Hund läuft."]
    assert texts.reference == ["ein Haus, blau.", "die Katze läuft."]
    assert texts.subwords == {"source": [6, 7], "reference": [6, 7]}
    assert texts.remarks == []


def test_output_with_subwords_joined_by_fairseq_gives_the_same_texts(generated):
    with_bpe = from_generated(generated(HYPOTHESES, REFERENCES))
    without = from_generated(generated(joined(HYPOTHESES), joined(REFERENCES), joined(SOURCES)))
    assert without.subwords == {}
    without.subwords = with_bpe.subwords
    assert without == with_bpe


def test_escaped_tokens_are_unescaped_by_detokenisation(generated):
    texts = from_generated(generated(["Tom &amp; Jerry"], ["x &#91; y"], ["x"]))
    assert texts.hypothesis == ["Tom & Jerry"]
    assert texts.hypothesis_tokens == ["Tom &amp; Jerry"]
    assert texts.reference_tokens == ["x &#91; y"]


def test_raw_references_are_used_as_they_are(generated, write):
    raw = ["Ein Haus , blau.", "Die Katze läuft!"]
    texts = from_generated(generated(HYPOTHESES, REFERENCES), write("raw.de", raw))
    assert texts.reference == raw
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]


def test_references_may_come_from_the_raw_file_alone(generated, write):
    path = generated(HYPOTHESES, None)
    with pytest.raises(UsageError, match="--reference"):
        from_generated(path)
    texts = from_generated(path, write("raw.de", ["Ein Haus, blau.", "Die Katze."]))
    assert texts.reference_tokens == ["Ein Haus , blau .", "Die Katze ."]


def test_decoded_output_is_taken_as_plain_text(generated):
    """With --bpe and --tokenizer, fairseq prints H as tokens but S, T and D as plain text."""
    path = generated(
        HYPOTHESES,
        ["ein Haus, blau.", "die Katze läuft."],
        ["a house, red.", "the dog runs."],
        decoded=["ein Haus, rot.", "der Hund läuft."],
    )
    texts = from_generated(path)
    assert texts.hypothesis == ["ein Haus, rot.", "der Hund läuft."]
    assert texts.hypothesis_tokens == ["ein Haus , rot .", "der Hund läuft ."]
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]
    assert texts.source_tokens == ["a house , red .", "the dog runs ."]
    assert texts.subwords == {}
    assert "detokenised" in texts.remarks[0]


def test_sentencepieces_are_joined_when_asked_for_and_refused_otherwise(generated):
    path = generated(
        ["\u2581der \u2581H und"], ["\u2581die \u2581K atze"], ["\u2581the \u2581d og"]
    )
    with pytest.raises(UsageError, match="--remove-bpe sentencepiece"):
        from_generated(path)
    texts = from_generated(path, remove_bpe="sentencepiece")
    assert texts.hypothesis_tokens == ["der Hund"]
    assert texts.subwords == {"source": [3], "reference": [3]}


def test_a_kind_of_subwords_that_is_not_there_is_refused(generated):
    with pytest.raises(UsageError, match="--remove-bpe sentencepiece: no"):
        from_generated(generated(HYPOTHESES, REFERENCES), remove_bpe="sentencepiece")


def test_unknown_words_in_references_are_remarked(generated, write):
    path = generated(["a <unk>"], ["a <<unk>>"], ["b"])
    remark = from_generated(path).remarks[0]
    assert "<<unk>>" in remark and "--reference" in remark
    assert "--reference" not in from_generated(path, write("raw", ["a zebra"])).remarks[0]


def test_plain_files_are_tokenised_without_escaping(write):
    texts = from_files(
        write("hyp", ["Tom & 'Jerry' [1]."]),
        write("ref", ["z. B. <b>, ja."]),
        write("src", ["It's e.g. this."]),
    )
    assert texts.hypothesis == ["Tom & 'Jerry' [1]."]
    assert texts.hypothesis_tokens == ["Tom & ' Jerry ' [ 1 ] ."]
    assert texts.reference_tokens == ["z. B. < b > , ja ."]
    assert texts.source_tokens == ["It 's e.g. this ."]


@pytest.mark.parametrize("short", ["hypothesis", "source"])
def test_files_of_different_length_are_refused(write, short):
    counts = {"hypothesis": 3, "reference": 3, "source": 3, short: 2}
    files = {name: write(name, ["x"] * count) for name, count in counts.items()}
    with pytest.raises(UsageError, match=f"{short} has 2 lines, but there are 3"):
        from_files(**files)


def test_a_token_is_left_out_wherever_tokenisers_put_it(generated, write):
    hypotheses = ['" ja " <sep> " Ein H@@ aus .', "a <sep> b <sep> c"]
    tokens = ["ja . <sep> Ein H@@ aus .", "<sep> a b <sep>"]
    raw = write("raw", ["Ja. <sep> Ein Haus.", "<sep> a b<sep>"])
    whole = from_generated(generated(hypotheses, tokens), raw)
    texts = whole.without("<sep>")
    assert texts.hypothesis_tokens == ['" ja " " Ein Haus .', "a b c"]
    assert texts.reference_tokens == ["ja . Ein Haus .", "a b"]
    assert texts.reference == ["Ja. Ein Haus.", "a b"]
    assert texts.hypothesis[1] == "a b c" and "sep" not in texts.hypothesis[0]
    assert whole.reference[0] == "Ja. <sep> Ein Haus."
    # the tokeniser makes `< sep >` of it in raw text
    plain = from_files(raw, raw)
    assert "< sep >" in plain.reference_tokens[0]
    assert plain.without("<sep>").reference_tokens == ["Ja . Ein Haus .", "a b"]


def test_a_token_that_no_reference_has_is_refused(generated):
    texts = from_generated(generated(["a <sep> b"], ["a b"], ["x"]))
    with pytest.raises(UsageError, match="no reference holds '<sep>'"):
        texts.without("<sep>")
