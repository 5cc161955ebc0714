"""From files to texts: subwords, tokens, plain text, and the language: never one nobody named."""

import json

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import inputs
from fairseq_posenc.tools.scores.result import TrainedLengths
from fairseq_posenc.tools.scores.score import evaluate, render
from tests.tiny import binarise, dictionary_of
from tests.tools.scores.conftest import output_of

HYPOTHESES = ["ein H@@ aus , rot .", "der H@@ und l@@ äu@@ ft ."]
REFERENCES = ["ein H@@ aus , blau .", "die K@@ atze l@@ äu@@ ft ."]
SOURCES = ["a hou@@ se , red .", "the d@@ og ru@@ n@@ s ."]
# French has a space before a question mark, and an apostrophe that joins the next word
GERMAN = ["w@@ o ist der Hund ?", "das ist das Haus ."]
FRENCH = ["où est l&apos; animal ?", "c&apos; est la m@@ aison ."]
LOG = "2026-11-21 03:59:51 | INFO | fairseq.tasks.translation | [{}] dictionary: 48 types"


def read(generated=None, **options):
    options = {"language": "de", "source_language": "en", **options}
    return inputs.read_texts(generated=generated, **options)


@pytest.fixture
def generated(write):
    """A function that writes an output of fairseq-generate and returns its path."""

    def generated(hypotheses, references, sources=SOURCES, decoded=None, log=()):
        lines = output_of(hypotheses, references, sources, decoded)
        return write("generate-test.txt", [*log, *lines])

    return generated


def joined(lines):
    return [line.replace("@@ ", "") for line in lines]


def test_subwords_are_joined_and_text_is_detokenised(generated):
    texts = read(generated(HYPOTHESES, REFERENCES))
    assert texts.hypothesis_tokens == ["ein Haus , rot .", "der Hund läuft ."]
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]
    assert texts.source_tokens == ["a house , red .", "the dog runs ."]
    assert texts.hypothesis == ["ein Haus, rot.", "der Hund läuft."]
    assert texts.reference == ["ein Haus, blau.", "die Katze läuft."]
    assert texts.subwords == {"source": [6, 7], "reference": [6, 7]}
    assert texts.remarks == []
    [remark] = read(generated(REFERENCES, REFERENCES)).remarks
    assert "as fairseq-generate --score-reference prints them" in remark
    # as where fairseq has joined them already
    others = read(generated(joined(HYPOTHESES), joined(REFERENCES), joined(SOURCES)))
    assert others.subwords == {}
    others.subwords = texts.subwords
    assert others == texts


def test_escaped_tokens_are_unescaped_by_detokenisation(generated):
    texts = read(generated(["Tom &amp; Jerry"], ["x &#91; y"], ["x"]))
    assert texts.hypothesis == ["Tom & Jerry"]
    assert (texts.hypothesis_tokens, texts.reference_tokens) == (["Tom &amp; Jerry"], ["x &#91; y"])


def test_raw_references_replace_those_of_the_output(generated, write):
    raw = ["Ein Haus , blau.", "Die Katze läuft!"]
    texts = read(generated(HYPOTHESES, REFERENCES), reference=write("raw.de", raw))
    assert texts.reference == raw
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]
    with pytest.raises(UsageError, match="1 of 3 sentences"):
        read(generated(HYPOTHESES, REFERENCES), reference=write("raw.de", [*raw, "Mehr."]))
    path = generated(HYPOTHESES, None)
    with pytest.raises(UsageError, match="no T-lines: .*--reference"):
        read(path)
    texts = read(path, reference=write("raw.de", ["Ein Haus, blau.", "Die Katze."]))
    assert texts.reference_tokens == ["Ein Haus , blau .", "Die Katze ."]


def test_decoded_output_is_taken_as_plain_text(generated):
    """With --bpe and --tokenizer, fairseq prints H as tokens but S, T and D as plain text."""
    sources, references = (
        ["a house, red.", "the dog runs."],
        ["ein Haus, blau.", "die Katze läuft."],
    )
    path = generated(HYPOTHESES, references, sources, decoded=["ein Haus, rot.", "der Hund läuft."])
    texts = read(path)
    assert texts.hypothesis == ["ein Haus, rot.", "der Hund läuft."]
    assert texts.hypothesis_tokens == ["ein Haus , rot .", "der Hund läuft ."]
    assert texts.reference_tokens == ["ein Haus , blau .", "die Katze läuft ."]
    assert texts.source_tokens == ["a house , red .", "the dog runs ."]
    assert texts.subwords == {} and "detokenised" in texts.remarks[0]
    assert read(path, source_language=None).source_tokens is None


def test_kinds_of_subwords_are_those_that_are_there(generated):
    pieces = (["\u2581der \u2581H und"], ["\u2581die \u2581K atze"], ["\u2581the \u2581d og"])
    path = generated(*pieces)
    with pytest.raises(UsageError, match="--remove-bpe sentencepiece"):
        read(path)
    texts = read(path, remove_bpe="sentencepiece")
    assert texts.hypothesis_tokens == ["der Hund"]
    assert texts.subwords == {"source": [3], "reference": [3]}
    with pytest.raises(UsageError, match="--remove-bpe sentencepiece: no"):
        read(generated(HYPOTHESES, REFERENCES), remove_bpe="sentencepiece")


def test_empty_hypotheses_count_0_with_every_kind_of_subwords(generated):
    pieces = (["\u2581die \u2581K atze", "\u2581a"], ["\u2581the \u2581d og", "\u2581b"])
    for targets, sources, symbol in (
        (REFERENCES, SOURCES, None),
        (*pieces, "sentencepiece"),
        (joined(REFERENCES), joined(SOURCES), "none"),
    ):
        path = generated(["", ""], targets, sources)
        score = evaluate(generated=path, language="de", remove_bpe=symbol)
        # of references of two words it is not defined
        expected = None if symbol == "sentencepiece" else 0
        assert score.all.metrics["sacrebleu"] == score.all.metrics["tokenised_bleu"] == expected
        assert score.all.empty_hypotheses == [1, 2]


def test_tags_of_languages_are_no_words(french, data, write):
    raw = {
        "fr": ["Où est l'animal ?", "C'est la maison."],
        "de": ["Wo ist der Hund?", "Das ist das Haus."],
    }
    plain = read(french(), language="fr", source_language="de")
    for before, after in (("__fr__ ", ""), ("<2fr> ", ""), ("deu_Latn fra_Latn ", " [fr_XX]")):
        sources = [f"{before}{line}{after}" for line in GERMAN]
        for path in (
            french(sources=sources),
            french(sources=sources, targets=[f"{before}{line}{after}" for line in FRENCH]),
        ):
            texts = read(path, language="fr", source_language="de")
            assert "tags of languages" in texts.remarks.pop(0)
            assert texts == plain
    # lengths with a tag in the data, or without, are those of its test set
    for language, lines in raw.items():
        write(f"bin/test.raw.{language}", lines)
    path = french(sources=[f"__fr__ {line}" for line in GERMAN])
    found = read(path, language=None, source_language=None, data=str(data))
    assert found.languages == ("de", "fr") and found.reference == raw["fr"]


def test_unknown_words_in_references_are_remarked(generated, write):
    path = generated(["a <unk>"], ["a <<unk>>"], ["b"])
    remark = read(path).remarks[0]
    assert "<<unk>>" in remark and "--reference" in remark
    assert "--reference" not in read(path, reference=write("raw", ["a zebra"])).remarks[0]
    pieces = generated(["▁a <unk>"], ["▁a <<unk>>"], ["▁b"])
    of_pieces = {"remove_bpe": "sentencepiece", "reference": write("raw", ["a zebra"])}
    assert read(pieces, **of_pieces).remarks == []  # nothing is computed from T-lines


def test_plain_files_are_tokenised_without_escaping(write):
    files = {"hypothesis": "Tom & 'Jerry' [1].", "reference": "z. B. <b>, ja.", "source": "It's."}
    texts = read(**{name: write(name, [line]) for name, line in files.items()})
    assert texts.hypothesis == ["Tom & 'Jerry' [1]."]
    assert texts.hypothesis_tokens == ["Tom & ' Jerry ' [ 1 ] ."]
    assert texts.reference_tokens == ["z. B. < b > , ja ."]
    assert texts.source_tokens == ["It 's ."]


@pytest.mark.parametrize("short", ["hypothesis", "source"])
def test_files_of_different_length_are_refused(write, short):
    counts = {"hypothesis": 3, "reference": 3, "source": 3, short: 2}
    files = {name: write(name, ["x"] * count) for name, count in counts.items()}
    with pytest.raises(UsageError, match=f"{short} has 2 lines, but there are 3"):
        read(**files)


def test_a_token_is_left_out_wherever_tokenisers_put_it(generated, write):
    hypotheses = ['" ja " <sep> " Ein H@@ aus .', "a <sep> b <sep> c"]
    tokens = ["ja . <sep> Ein H@@ aus .", "<sep> a b <sep>"]
    raw = write("raw", ["Ja. <sep> Ein Haus.", "<sep> a b<sep>"])
    whole = read(generated(hypotheses, tokens), reference=raw)
    texts = whole.without("<sep>")
    assert texts.hypothesis_tokens == ['" ja " " Ein Haus .', "a b c"]
    assert texts.reference_tokens == ["ja . Ein Haus .", "a b"]
    assert texts.reference == ["Ja. Ein Haus.", "a b"]
    assert texts.hypothesis[1] == "a b c" and "sep" not in texts.hypothesis[0]
    assert whole.reference[0] == "Ja. <sep> Ein Haus."
    # the tokeniser makes `< sep >` of it in raw text
    plain = read(hypothesis=raw, reference=raw)
    assert "< sep >" in plain.reference_tokens[0]
    assert plain.without("<sep>").reference_tokens == ["Ja . Ein Haus .", "a b"]
    with pytest.raises(UsageError, match="no reference holds '<sep>'"):
        texts.without("<sep>")


@pytest.fixture
def data(tmp_path):
    """Binarised: the test set GERMAN and FRENCH, and a training set."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for side, lines, train in (("de", GERMAN, [3, 5]), ("fr", FRENCH, [7, 2])):
        dictionary = dictionary_of(dict.fromkeys(" ".join(lines).split(), 1))
        dictionary.save(str(folder / f"dict.{side}.txt"))
        test = [dictionary.encode_line(line, add_if_not_exist=False) for line in lines]
        binarise(folder / f"test.de-fr.{side}", test)
        for split, lengths in (("train", train), ("valid", [9, 9])):
            binarise(folder / f"{split}.de-fr.{side}", ([5] * length + [2] for length in lengths))
    return folder


@pytest.fixture
def french(generated):
    """A function that writes an output in French, with languages in its log."""

    def french(*log, sources=GERMAN, targets=FRENCH):
        return generated(targets, targets, sources, log=[LOG.format(name) for name in log])

    return french


def languages(**options):
    score = evaluate(**options)
    return score.source_language, score.language


def test_the_language_comes_from_the_data_the_log_or_the_user(french, write, data):
    assert languages(generated=french(), data=str(data)) == ("de", "fr")
    assert languages(generated=french("de", "fr")) == ("de", "fr")
    assert languages(generated=french(), language="fr") == (None, "fr")
    log = {"generated": french("de", "fr"), "language": "it", "data": str(data)}
    assert languages(**log) == ("de", "it")
    plain = write("plain", ["Où est l'animal ?"])
    for files in ({"generated": french()}, {"hypothesis": plain, "reference": plain}):
        with pytest.raises(UsageError, match="target language is not known.*--language"):
            evaluate(**files)


def test_french_is_detokenised_as_french_and_the_score_says_so(french, data, write):
    raw = write("raw", ["où est l'animal ?", "c'est la maison."])
    files = {"generated": french(), "reference": raw}
    right, wrong = evaluate(**files, data=str(data)), evaluate(**files, language="de")
    bleu, low = (score.all.metrics["sacrebleu"] for score in (right, wrong))
    assert bleu == pytest.approx(100) and low < 80
    assert "language: fr, source: de" in render(right)
    assert "language: de, source: unknown" in render(wrong)
    for code in ("fr_XX", "FR", "fr-CA"):
        score = evaluate(**files, language=code)
        assert score.all.metrics["sacrebleu"] == bleu and score.language == code


def test_a_model_of_the_other_direction_on_the_same_data_is_noticed(french, data):
    for form in (list, joined):
        path = french(sources=form(FRENCH), targets=form(GERMAN))
        score = evaluate(generated=path, data=str(data))
        assert (score.source_language, score.language) == ("fr", "de")
        assert score.longest_trained == TrainedLengths(7, 5)


@pytest.mark.parametrize("form", [list, joined])
@pytest.mark.parametrize(
    "log",
    [("fr", "de"), ("de", "fr", "'source_lang': 'fr', 'target_lang': 'de'")],
    ids=["dictionaries", "options"],  # a task of many languages sorts its dictionaries
)
def test_an_output_tells_its_direction(french, generated, data, write, form, log):
    for language, lines in (("de", GERMAN), ("fr", FRENCH)):
        write(f"bin/test.raw.{language}", joined(lines))
    lines = [LOG.format(name) if len(name) == 2 else name for name in log]
    path = generated(form(GERMAN), form(GERMAN), form(FRENCH), log=lines)
    score = evaluate(generated=path, data=str(data))
    assert (score.source_language, score.language) == ("fr", "de")
    assert score.longest_trained == TrainedLengths(7, 5)
    assert f"references are the raw text of {data}/test.raw.de" in score.remarks
    if len(log) > 2:
        assert languages(generated=path) == ("fr", "de")


def test_raw_references_of_the_folder_are_taken_for_its_own_test_set_alone(french, data, write):
    raw = {
        "fr": ["Où est l'animal ?", "C'est la maison."],
        "de": ["Wo ist der Hund?", "Das ist das Haus."],
    }
    for language, lines in raw.items():
        write(f"bin/test.raw.{language}", lines)
    found = read(french(), language=None, source_language=None, data=str(data))
    assert found.reference == raw["fr"] and found.languages == ("de", "fr")
    assert f"references are the raw text of {data}/test.raw.fr" in found.remarks
    back = french(sources=FRENCH, targets=GERMAN)
    found = read(back, language=None, source_language=None, data=str(data))
    assert found.reference == raw["de"]
    given = read(french(), language="fr", data=str(data), reference=write("r", FRENCH))
    assert given.reference == FRENCH
    # another set, which is not that of the folder
    other = french(sources=[GERMAN[0], GERMAN[0]], targets=[FRENCH[0], FRENCH[0]])
    assert read(other, language="fr", data=str(data)).reference == ["où est l'animal ?"] * 2


def test_plain_sources_need_their_language(french, write):
    files = {"generated": french(), "source": write("source", ["Wo ist er?", "Das ist es."])}
    with pytest.raises(UsageError, match="--source-language"):
        evaluate(**files, bins=[4], language="fr")
    assert evaluate(**files, bins=[4], language="fr", source_language="de").by_length


@pytest.mark.parametrize(
    ("language", "remark"), [("fr", None), ("xx", "no rules for 'xx'"), ("zh", "spaces")]
)
def test_languages_without_rules_or_spaces_are_remarked(generated, write, language, remark):
    plain = write("plain", ["a"])
    found = read(hypothesis=plain, reference=plain, language=language).remarks
    assert bool(found) == bool(remark) and all(remark in line for line in found)
    assert read(generated(HYPOTHESES, REFERENCES), language=language).remarks == found


def test_sentences_within_the_trained_length_are_counted_on_both_sides(french, data):
    score = evaluate(generated=french(), data=str(data), bins=[4, 5])
    # trained: 5 and 7 subwords; test: (6, 5) and (5, 6)
    assert score.longest_trained == TrainedLengths(5, 7)
    assert score.all.within == 1
    assert [part.within for part in score.by_length.bins] == [0, 1, 0]
    assert "5 subwords of the source, 7 of the target" in render(score)
    json.dumps(score.to_json(), allow_nan=False)


def test_ranges_of_the_longer_side_go_on_by_the_data(french, data):
    options = {"length_of": "longer", "length_unit": "subwords", "bins": [2, "auto"]}
    split = evaluate(generated=french(), data=str(data), **options).by_length
    assert split.of == "longer"
    assert [part.sentences for part in split.bins] == [0, 2]


def test_lengths_that_are_not_known_are_never_called_within(french, data):
    path = french(sources=joined(GERMAN), targets=joined(FRENCH))
    score = evaluate(generated=path, data=str(data))
    assert score.all.within is None and "not known" in " ".join(score.remarks)
    for path in data.glob("train*"):
        path.unlink()
    score = evaluate(generated=french(), data=str(data))
    assert score.longest_trained is None and "no training set" in " ".join(score.remarks)


def test_a_folder_without_data_is_refused(french, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="no binarised parallel data"):
            evaluate(generated=french(), data=str(folder))
