"""WordPiece and SentencePiece: pieces, and where they are in the text."""

import json
import random

import pytest

from fairseq_posenc.data import subwords
from fairseq_posenc.data.subwords import AnswerAlignedSubwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import vocabulary
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from tests.tiny import dictionary_of

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

LANGUAGES = [
    "The café opened in 1999 , and the <unk> called it a naïve idea .",
    "Whoever learns to read letters learns that words are made of letters .",
    "Die Straße führt über die Brücke nach Süden .",
    "東京都は日本の首都である。 北京是中国的首都。",
    "ที่นี่อากาศดีมาก ทุกคนมีความสุข",
    "اللغة العربية جميلة والكتاب مفيد",
    "हिन्दी में लिखा हुआ वाक्य यहाँ है ।",
    "Dresden (1185–1226) had 5100,000 people in the 1990s, 9,104.5 now",
]
LINES = LANGUAGES * 3 + [f"a whole sentence of {i} words is called long" for i in range(99)]
# what normalisation shortens, lengthens, drops or takes for a space
TRICKY = [
    "abc THE Letters ",
    "éÉüß e\u0301 a\u0308\u0301 İıﬁ",
    "ที่นี่สุด้ๆ",
    "عَرَبِيّ لغةٌ",
    "東京。、「」㍿㌔",
    "½Ⅷ…1234567890,.",
    "😀👨\u200d👩\u200d👧\ufe0f🏽",
    " \t\u3000\xa0\u200b\ufeff\u200c\xad\x00\x07▁",
    "हिन्दी क्षत्रिय",
    "##.,!?'-_",
]
KINDS = ("wordpiece", "cased", "sentencepiece")
each_kind = pytest.mark.parametrize("name", KINDS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Three models learnt from LINES, by name."""
    folder = tmp_path_factory.mktemp("models")
    vocabulary.learn_wordpiece(lambda: iter(LINES), folder / "wordpiece", 320)
    vocabulary.learn_wordpiece(lambda: iter(LINES), folder / "cased", 320, cased=True)
    vocabulary.learn_sentencepiece(lambda: iter(LINES), folder / "sentencepiece", 320, 1.0)
    return {name: subwords.load(folder / name) for name in KINDS}


def tricky_texts(count):
    dice = random.Random(1)
    for _ in range(count):
        pool = [dice.choice(TRICKY) for _ in range(dice.randint(0, 20))]
        yield "".join("<unk>" if dice.random() < 0.05 else dice.choice(part) for part in pool)


def test_sentencepieces_unknown_piece_is_known_by_its_number(tmp_path):
    from sentencepiece import SentencePieceTrainer

    SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "sentencepiece"),
        vocab_size=200,
        hard_vocab_limit=False,
        unk_piece="[UNK]",
        bos_piece="[CLS]",
        minloglevel=2,
    )
    model = subwords.load(tmp_path)
    assert model.encode("the \u16a0 the").count(subwords.UNKNOWN) == 1
    assert not {"[UNK]", subwords.UNKNOWN} & {*model.vocabulary()}
    assert model.dictionary().index("[UNK]") == model.dictionary().unk()


def places(spans):
    return {place for start, end in spans for place in range(start, end)}


@each_kind
def test_offsets_are_characters_of_the_original_text_in_every_script(models, name):
    model = models[name]
    aligned, known = AnswerAlignedSubwords(model), {*model.vocabulary(), subwords.UNKNOWN}
    for text in [*tricky_texts(1000), "", "   "]:
        pieces, spans = model.encode_with_offsets(text)
        assert pieces == model.encode(text)
        parts, cuts = aligned.encode_with_offsets(text)
        assert set(pieces + parts) <= known and places(cuts) == places(spans)
        assert parts.count(subwords.UNKNOWN) == pieces.count(subwords.UNKNOWN)
        assert model.decode(parts) == model.decode(pieces)
        for found in (spans, cuts):
            assert all(0 <= start < end <= len(text) for start, end in found), (text, found)
            for part in (text[start:end] for start, end in found):
                assert part.strip() in (part, ""), (text, found)
            for one, other in zip(found, found[1:]):
                assert one[0] <= other[0] and one[1] <= other[1], (text, found)


@each_kind
@pytest.mark.parametrize("line", [*LANGUAGES, "  Two  spaces\tand cafe\u0301s ½ of it  "])
def test_the_offsets_of_every_word_cover_that_word_and_no_space(models, name, line):
    pieces, spans = models[name].encode_with_offsets(line)
    for start, end in spans:
        assert line[start:end] == line[start:end].strip()
    assert places(spans) == {place for place, letter in enumerate(line) if not letter.isspace()}
    # where normalisation changes nothing
    if line in LANGUAGES and name != "wordpiece":
        for piece, (start, end) in zip(pieces, spans):
            assert piece in ("▁", "<unk>") or line[start:end] == piece.lstrip("#▁")


def test_offsets_where_normalisation_changes_the_length(models):
    text = "x  cafe\u0301 ½ ㍿"
    spans = models["wordpiece"].encode_with_offsets(text)[1]
    assert [text[start:end] for start, end in spans][-2:] == ["½", "㍿"]
    assert "e\u0301" in [text[start:end][-2:] for start, end in spans]
    spans = models["sentencepiece"].encode_with_offsets(text)[1]
    assert [text[start:end] for start, end in spans].count("½") >= 2
    assert text[slice(*spans[-1])] == "㍿"


@each_kind
def test_a_literal_unknown_token_is_one_piece_with_its_own_offsets(models, name):
    text = "the <unk>idea<unk>"
    pieces, spans = models[name].encode_with_offsets(text)
    unknown = [span for piece, span in zip(pieces, spans) if piece == "<unk>"]
    assert unknown == [(4, 9), (13, 18)] and not {"<", ">"} & set(pieces)
    assert "unk" not in "".join(models[name].vocabulary())
    assert models[name].encode("龘")[-1] == "<unk>"


@each_kind
def test_no_text_yields_another_special_token(models, name):
    for text in ("<s> the </s>", "<pad>", "<mask> <mask>"):
        assert not {"<s>", "</s>", "<pad>", "<mask>"} & set(models[name].encode(text))


def test_special_tokens_of_a_model_from_elsewhere_stay_out(tmp_path):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "sentencepiece"),
        vocab_size=200,
        user_defined_symbols=["<mask>"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = subwords.load(tmp_path)
    assert "<mask>" not in model.encode("the <mask>") and "<mask>" not in model.vocabulary()


@each_kind
def test_pieces_become_the_text_again_and_know_where_words_begin(models, name):
    for text in ("whoever learnt <unk> letterers called wholes", "words are madeof letters . ."):
        pieces = models[name].encode(text)
        assert models[name].decode(pieces) == text
        beginnings = [models[name].begins_word(piece) for piece in pieces]
        assert beginnings[0] and sum(beginnings) == 6 and len(pieces) > 6


def test_uncased_lowers_and_drops_accents_and_cased_keeps_both(models):
    text = "The naïve café"
    assert models["wordpiece"].decode(models["wordpiece"].encode(text)) == "the naive cafe"
    assert models["cased"].decode(models["cased"].encode(text)) == text


@each_kind
def test_every_piece_has_an_index_that_survives_the_file(models, name, tmp_path):
    copy_subwords(models[name], tmp_path)
    dictionary = subwords.load_dictionary(tmp_path)
    assert dictionary.symbols == models[name].dictionary().symbols
    assert subwords.load(tmp_path).encode("the café") == models[name].encode("the café")
    for text in tricky_texts(200):
        for piece in models[name].encode(text):
            assert (dictionary.index(piece) == dictionary.unk()) == (piece == "<unk>")


def test_a_dictionary_in_another_order_is_copied_as_it_is(models, tmp_path):
    copy_subwords(models["wordpiece"], tmp_path / "a")
    other = dictionary_of([*reversed(models["wordpiece"].vocabulary())])
    other.save(str(tmp_path / "a" / "dict.txt"))
    copy_subwords(subwords.load(tmp_path / "a"), tmp_path / "b")
    assert subwords.load_dictionary(tmp_path / "b").symbols == other.symbols


def test_missing_doubled_and_damaged_models_are_reported_in_one_line(models, tmp_path):
    with pytest.raises(UsageError, match="holds neither"):
        subwords.load(tmp_path)
    with pytest.raises(UsageError, match=r"there is no .*dict\.txt"):
        subwords.load_dictionary(tmp_path)
    (tmp_path / "dict.txt").write_text("word\n")
    with pytest.raises(UsageError, match="cannot read the dictionary"):
        subwords.load_dictionary(tmp_path)
    for name in ("wordpiece.json", "sentencepiece.model"):
        (tmp_path / name).write_text("{")
        with pytest.raises(UsageError, match=name):
            subwords.load(tmp_path)
        (tmp_path / name).unlink()
    for name in ("wordpiece", "sentencepiece"):
        copy_subwords(models[name], tmp_path)
    with pytest.raises(UsageError, match="holds both"):
        subwords.load(tmp_path)


# what the library would do to a stranger's wordpiece.json: lose text, or end the process
LONG = " ".join(LANGUAGES[:3])
TRUNCATED = {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
PADDED = {"strategy": {"Fixed": 1 << 40}, "direction": "Right", "pad_to_multiple_of": None,
          "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>"}  # fmt: skip
REPLACED = {"type": "Replace", "pattern": {"Regex": "[a-z]+"}, "content": ""}
ENCLOSED = {"type": "BertProcessing", "sep": ["<unk>", 0], "cls": ["<unk>", 0]}
FOREIGN = {
    "truncation": ((), "truncation", TRUNCATED),
    "truncation of nothing": ((), "truncation", {**TRUNCATED, "max_length": 1, "stride": 1}),
    "padding without end": ((), "padding", PADDED),
    "padding by nothing": ((), "padding", {**PADDED, "pad_to_multiple_of": 0}),
    "another normaliser": ((), "normalizer", REPLACED),
    "no normaliser": ((), "normalizer", None),
    "accents": (("normalizer",), "strip_accents", "some"),
    "a word for true": (("normalizer",), "lowercase", "yes"),
    "another splitter": ((), "pre_tokenizer", {"type": "CharDelimiterSplit", "delimiter": "a"}),
    "no splitter": ((), "pre_tokenizer", None),
    "a post-processor": ((), "post_processor", ENCLOSED),
    "another decoder": ((), "decoder", {"type": "CTC"}),
    "no added token": ((), "added_tokens", []),
    "a model of characters": (("model",), "type", "WordLevel"),
    "no room for words": (("model",), "max_input_chars_per_word", 0),
    "half a character as prefix": (("model",), "continuing_subword_prefix", "é"),
    "a list of pieces": (("model",), "vocab", ["<unk>", "a"]),
    "equal numbers": (("model",), "vocab", {"<unk>": 0, "a": 1, "b": 1}),
    "a number beyond all": (("model",), "vocab", {"<unk>": 0, "a": 1 << 40}),
    "an empty piece": (("model",), "vocab", {"<unk>": 0, "": 1}),
    "two words in a piece": (("model",), "vocab", {"<unk>": 0, "a b": 1}),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_wordpiece_model_of_other_parts_than_ours_is_refused(models, tmp_path, outcome, case):
    copy_subwords(models["wordpiece"], tmp_path)
    content = part = json.loads((tmp_path / "wordpiece.json").read_text(encoding="utf-8"))
    place, name, value = FOREIGN[case]
    for key in place:
        part = part[key]
    part[name] = value
    (tmp_path / "wordpiece.json").write_text(json.dumps(content), encoding="utf-8")
    # the library ends the process where its memory does
    assert "wordpiece.json" in outcome(lambda: subwords.load(tmp_path).encode(LONG))


@each_kind
def test_letters_digits_and_punctuation_are_parted_and_grouped_numbers_cut_to_digits(models, name):
    text = LANGUAGES[-1]
    spans = AnswerAlignedSubwords(models[name]).encode_with_offsets(text)[1]
    inside = {cut for start, end in spans for cut in range(start + 1, end)}
    for part, offset in [("(1185", 1), ("1185–", 4), ("–1226", 1), ("1226)", 4), ("1990s", 4)]:
        assert text.index(part) + offset not in inside
    for number in ("5100,000", "9,104.5"):
        start = text.index(number)
        assert inside.isdisjoint(range(start, start + len(number) + 1))
    within_words = "the people of Dresden in 1999"
    aligned = AnswerAlignedSubwords(models[name])
    assert aligned.encode_with_offsets(within_words) == models[name].encode_with_offsets(
        within_words
    )


class Fixed:
    """A model that cuts in one way, with a vocabulary to choose."""

    def __init__(self, piece, span, known, continues):
        self.encode_with_offsets = lambda text: ([piece], [span])
        self.vocabulary = lambda: known.split()
        self.continues, self.begins = continues, "" if continues else "▁"


@pytest.mark.parametrize(
    "text, piece, known, pieces, stand_for",
    [
        ("(1185–1", "▁(1185–1", "▁ ( 11 8 5 118 – 1", "▁ ( 118 5 – 1", "( ( 118 5 – 1"),
        ("(1185–1", "▁(1185–1", "▁( 1185 –", "▁(1185–1", "(1185–1"),
        ("½", "▁1⁄2", "▁1 ⁄ 2", "▁1⁄2", "½"),  # normalisation changed the length
        ("12abc", "<unk>", "< u n k > ▁", "<unk>", "12abc"),
        ("a1–2", "##a1–2", "a ##a ##1 ##2 ##–", "##a ##1 ##– ##2", "a 1 – 2"),
        ("a1–2", "a1–2", "a ##a ##1 ##2 ##–", "a ##1 ##– ##2", "a 1 – 2"),
        ("##1", "##1", "## ##1 # ##", "##1", "##1"),
        ("½1,5", "½1,5", "½ ##½ ##1 ##, ##5", "½ ##1 ##, ##5", "½ 1 , 5"),
        (").", ").", ") . ##.", ") ##.", ") ."),
        ("。」…", "▁。」…", "▁。 」 …", "▁。 」 …", "。 」 …"),
        ("...", "...", ". ##. ##..", "...", "..."),
    ],
)
def test_pieces_are_cut_into_those_of_the_vocabulary_or_stay_whole(
    text, piece, known, pieces, stand_for
):
    model = Fixed(piece, (0, len(text)), known, "" if "▁" in piece else "##")
    found, spans = AnswerAlignedSubwords(model).encode_with_offsets(text)
    assert found == pieces.split()
    assert [text[slice(*span)] for span in spans] == stand_for.split()
