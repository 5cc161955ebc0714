"""WordPiece and SentencePiece: vocabularies, pieces and offsets."""

import random

import pytest
from fairseq.data import Dictionary

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus import documents
from fairseq_posenc.tools.prepare.text import vocabulary

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

LINES = [
    "The café opened in 1999 , and the <unk> called it a naïve idea .",
    "Whoever learns to read letters learns that words are made of letters .",
    "Die Straße führt über die Brücke nach Süden .",
    "東京都は日本の首都である。 北京是中国的首都。",
    "ที่นี่อากาศดีมาก ทุกคนมีความสุข",
    "اللغة العربية جميلة والكتاب مفيد",
    "हिन्दी में लिखा हुआ वाक्य यहाँ है ।",
] * 3 + [pair.english for pair in documents.generate(150, 1, 4, 12)]
TRICKY = [
    "abc THE Letters ",
    "éÉüß e\u0301 a\u0308\u0301 İıﬁ",
    "ที่นี่สุด้ๆ",
    "عَرَبِيّ لغةٌ",
    "東京。、「」㍿㌔",
    "½Ⅷ…",
    "😀👨\u200d👩\u200d👧\ufe0f🏽",
    " \t\u3000\xa0\u200b\ufeff\u200c\xad\x00\x07▁",
    "हिन्दी क्षत्रिय",
    "##.,!?'-_",
]
KINDS = ("wordpiece", "cased", "sentencepiece")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The three models learnt from LINES, by name."""
    folder = tmp_path_factory.mktemp("models")
    learn(folder)
    return {name: subwords.load(folder / name) for name in KINDS}


def learn(folder):
    vocabulary.learn_wordpiece(lambda: iter(LINES), folder / "wordpiece", 260)
    vocabulary.learn_wordpiece(lambda: iter(LINES), folder / "cased", 260, cased=True)
    vocabulary.learn_sentencepiece(lambda: iter(LINES), folder / "sentencepiece", 260, 1.0)


def tricky_texts(count):
    dice = random.Random(1)
    for _ in range(count):
        pool = [dice.choice(TRICKY) for _ in range(dice.randint(0, 20))]
        yield "".join("<unk>" if dice.random() < 0.05 else dice.choice(part) for part in pool)


@pytest.mark.parametrize("name", KINDS)
def test_offsets_are_characters_of_the_original_text_in_every_script(models, name):
    for text in tricky_texts(1500):
        pieces, spans = models[name].pieces_with_offsets(text)
        assert pieces == models[name].pieces(text)
        assert all(0 <= start < end <= len(text) for start, end in spans), (text, spans)
        for part in (text[start:end] for start, end in spans):
            assert part.strip() in (part, ""), (text, spans)
        for (start, end), (next_start, next_end) in zip(spans, spans[1:]):
            assert start <= next_start and end <= next_end, (text, spans)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("line", [*LINES[:7], "  Two  spaces\tand cafe\u0301s ½ of it  "])
def test_the_offsets_of_every_word_cover_that_word_and_no_space(models, name, line):
    _, spans = models[name].pieces_with_offsets(line)
    for start, end in spans:
        assert line[start:end] == line[start:end].strip()
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == {place for place, letter in enumerate(line) if not letter.isspace()}


@pytest.mark.parametrize("name", ["cased", "sentencepiece"])
@pytest.mark.parametrize("line", LINES[:7])
def test_where_normalisation_changes_nothing_offsets_give_the_piece(models, name, line):
    pieces, spans = models[name].pieces_with_offsets(line)
    for piece, (start, end) in zip(pieces, spans):
        if piece not in ("▁", "<unk>"):
            assert line[start:end] == piece.lstrip("#▁")


def test_offsets_where_normalisation_changes_the_length(models):
    text = "x  cafe\u0301 ½ ㍿"
    pieces, spans = models["wordpiece"].pieces_with_offsets(text)
    assert [text[start:end] for start, end in spans][-2:] == ["½", "㍿"]
    assert "e\u0301" in [text[start:end][-2:] for start, end in spans]
    pieces, spans = models["sentencepiece"].pieces_with_offsets(text)
    halves = [text[start:end] for start, end in spans].count("½")
    assert halves >= 2
    assert text[slice(*spans[-1])] == "㍿"


@pytest.mark.parametrize("name", KINDS)
def test_a_literal_unknown_token_is_one_piece_with_its_own_offsets(models, name):
    text = "the <unk>idea<unk>"
    pieces, spans = models[name].pieces_with_offsets(text)
    assert pieces == models[name].pieces(text)
    assert pieces.count("<unk>") == 2
    assert [spans[place] for place, piece in enumerate(pieces) if piece == "<unk>"] == [
        (4, 9),
        (13, 18),
    ]
    assert not {"<", ">"} & set(pieces)
    assert "unk" not in "".join(models[name].vocabulary())


@pytest.mark.parametrize("name", KINDS)
def test_no_text_yields_another_special_token(models, name):
    for text in ("<s> the </s>", "<pad>", "<mask> <mask>"):
        assert not {"<s>", "</s>", "<pad>", "<mask>"} & set(models[name].pieces(text))


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
    assert "<mask>" not in model.pieces("the <mask>") and "<mask>" not in model.vocabulary()


@pytest.mark.parametrize("name", KINDS)
def test_unknown_characters_are_the_unknown_token(models, name):
    assert models[name].pieces("龘")[-1] == "<unk>"


@pytest.mark.parametrize("name", KINDS)
def test_pieces_become_the_text_again(models, name):
    text = "the words are made of letters ."
    assert models[name].text(models[name].pieces(text)) == text
    with_unknown = "the <unk> words"
    assert models[name].text(models[name].pieces(with_unknown)) == with_unknown


@pytest.mark.parametrize("name", KINDS)
def test_pieces_that_begin_words(models, name):
    pieces = models[name].pieces("Whoever learns <unk> letters called whole")
    beginnings = [models[name].begins_word(piece) for piece in pieces]
    assert beginnings[0] and sum(beginnings) == 6 < len(pieces)


def test_uncased_lowers_and_drops_accents_and_cased_keeps_both(models):
    text = "The naïve café"
    assert models["wordpiece"].text(models["wordpiece"].pieces(text)) == "the naive cafe"
    assert models["cased"].text(models["cased"].pieces(text)) == text


@pytest.mark.parametrize("name", KINDS)
def test_the_vocabulary_has_the_size_asked_for_with_all_special_tokens(models, name):
    dictionary = models[name].dictionary()
    dictionary.add_symbol("<mask>")
    assert len(dictionary) == 260
    assert dictionary[0] == "<s>" and dictionary[3] == "<unk>"


@pytest.mark.parametrize("name", KINDS)
def test_every_piece_has_an_index_that_survives_the_file(models, name, tmp_path):
    models[name].copy_to(tmp_path)
    dictionary = subwords.load_dictionary(tmp_path)
    assert dictionary.symbols == models[name].dictionary().symbols
    assert subwords.load(tmp_path).pieces("the café") == models[name].pieces("the café")
    for text in tricky_texts(200):
        for piece in models[name].pieces(text):
            assert (dictionary.index(piece) == dictionary.unk()) == (piece == "<unk>")


def test_a_dictionary_in_another_order_is_copied_as_it_is(models, tmp_path):
    models["wordpiece"].copy_to(tmp_path / "a")
    other = Dictionary()
    for symbol in reversed(models["wordpiece"].vocabulary()):
        other.add_symbol(symbol)
    other.save(str(tmp_path / "a" / "dict.txt"))
    subwords.load(tmp_path / "a").copy_to(tmp_path / "b")
    assert subwords.load_dictionary(tmp_path / "b").symbols == other.symbols


def test_the_same_text_gives_the_same_vocabulary(models, tmp_path):
    # the library's own order of pieces changes from call to call
    learn(tmp_path)
    for name in KINDS:
        assert subwords.load(tmp_path / name).vocabulary() == models[name].vocabulary()


def test_a_small_corpus_gives_as_many_entries_as_there_are(tmp_path):
    vocabulary.learn_wordpiece(lambda: iter(["aa bb"]), tmp_path / "w", 30000)
    vocabulary.learn_sentencepiece(lambda: iter(["aa bb"]), tmp_path / "s", 120000)
    for name in "ws":
        assert 2 <= len(subwords.load(tmp_path / name).vocabulary()) < 20


def test_wordpiece_has_no_entries_that_no_word_can_hold(models):
    # punctuation and Chinese characters are words of their own
    entries = set(models["wordpiece"].vocabulary())
    assert {".", "東", "##t"} <= entries and not {"##.", "##東", "t."} & entries


def test_of_many_characters_wordpiece_keeps_the_frequent_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "WORDPIECE_CHARACTERS", 10)
    vocabulary.learn_wordpiece(lambda: iter(LINES), tmp_path, 300)
    letters = {piece for piece in subwords.load(tmp_path).vocabulary() if len(piece) == 1}
    assert len(letters) == 10 and {"e", "t"} <= letters


def test_sentencepiece_learns_from_long_lines_too(tmp_path):
    lines = [*LINES, "ξ" * 3 + "word " * 2000 + "ξ"]
    vocabulary.learn_sentencepiece(lambda: iter(lines), tmp_path, 300, 1.0)
    assert subwords.load(tmp_path).pieces("ξ")[-1] != "<unk>"


@pytest.mark.parametrize("learn", [vocabulary.learn_wordpiece, vocabulary.learn_sentencepiece])
def test_impossible_vocabularies_are_refused_in_one_line(tmp_path, learn):
    for size in (20, 0, -3):
        with pytest.raises(UsageError, match=f"a vocabulary of {size} is too small"):
            learn(lambda: iter(LINES), tmp_path, size)
    for lines in ([], [""], ["\u200b", "<unk> ."]):
        with pytest.raises(UsageError, match="there are no words"):
            learn(lambda lines=lines: iter(lines), tmp_path, 100)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("learn", [vocabulary.learn_wordpiece, vocabulary.learn_sentencepiece])
def test_an_error_in_the_text_is_told_as_it_is(tmp_path, learn):
    def lines():
        yield "some words"
        raise UsageError("line 2: invalid")

    with pytest.raises(UsageError, match="line 2: invalid"):
        learn(lines, tmp_path, 100)


def test_missing_doubled_and_damaged_models_are_told_in_one_line(models, tmp_path):
    with pytest.raises(UsageError, match="holds neither"):
        subwords.load(tmp_path)
    with pytest.raises(UsageError, match=r"there is no .*dict\.txt"):
        subwords.load_dictionary(tmp_path)
    (tmp_path / "dict.txt").write_text("word\n")
    with pytest.raises(UsageError, match="cannot read the dictionary"):
        subwords.load_dictionary(tmp_path)
    for name in ("wordpiece.json", "sentencepiece.model"):
        (tmp_path / name).write_text("{")
        with pytest.raises(UsageError, match=f"cannot load the subword model .*{name}"):
            subwords.load(tmp_path)
        (tmp_path / name).unlink()
    for name in ("wordpiece", "sentencepiece"):
        models[name].copy_to(tmp_path)
    with pytest.raises(UsageError, match="holds both"):
        subwords.load(tmp_path)
