"""What goes in comes out: text of every script, cut into sentencepieces and joined again."""

import sys
from importlib.metadata import version

import pytest
from fairseq.data import Dictionary

from fairseq_posenc.data import subwords
from fairseq_posenc.data.segmentation import SentencePieces
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import vocabulary
from fairseq_posenc.tools.translation import pieces
from fairseq_posenc.tools.translation.preparation import TranslationOptions, prepare

# made up; what Moses, NFKC or fairseq would change
SCRIPTS = {
    "de": ["Sie sagte: „Das kostet 10.000 €“ – und ging … fort.", "Maße: 5½ × 3²‚ Nr.\u00a07"],
    "fr": ["«\u00a0Où est l’œuf\u00a0?\u00a0» dit-elle\u202f!", "C'est à 10\u2009000 m² d'ici."],
    "tr": ["İstanbul'da ışıklar söndü; \"gel\" dedi.", "Iğdır’ın kayısısı ünlüdür."],
    "el": ["Πού είναι το σπίτι\u037e Εκεί· νομίζω.", "Ο γάτος κοιμάται ΐ ΰ."],
    "vi": ["Con mèo ngủ trên ghế ở Huế.", "Tiê\u0301ng Viê\u0323t tách dấu."],
    "ro": ["Șoarecele și pisica țes ţesătură.", "„Bună ziua”, spuse el."],
    "ru": ["Кошка спит — «тихо», №5.", "Ёж и й, и и\u0306."],
    "ar": ["القطة تنام، أليس كذلك؟", "كـتـاب ﻻ ١٢٣٪"],
    "hi": ["बिल्ली सो रही है।", "क़लम और क\u093cलम १२३"],
    "th": ["แมวนอนหลับอยู่บนเก้าอี้ ๕ ตัว", "น้ำและนํ้า"],
    "my": ["ကြောင်အိပ်နေသည်။", "၁၂၃ ခု"],
    "zh": ["“猫”在睡觉，真的吗？（１２３）！", "\u3000第一段：ＡＢＣ～……"],
    "ja": ["猫は寝ています。ﾊﾝｶｸとゼンカク！", "「はい」と㈱社長が①言った〜"],
    "ko": ["고양이가 잔다.", "\u1112\u1161\u11ab글 ㈜"],
    "code": ["a\u2581b \u2585\u2586 <s> x<pad>y </s> <unk> <mask>",
             "tab\there  two\x0b\x0c\x85\u2028."],
    "invisible": ["zero\u200bwidth\u200d\u200c\ufeff\u00ad!",
                  "bell\x07 esc\x1b fs\x1c \ue000\ue009\ue01d"],
    "emoji": ["👩\u200d👩\u200d👧 👍🏽 🇩🇪 x\ufe0f", "𝔘𝔫𝔦 𠮷"],
}  # fmt: skip


@pytest.mark.parametrize(
    "pairs, count",
    [(99_999, 4_000), (100_000, 10_000), (999_999, 10_000), (1_000_000, 32_000)],
)
def test_the_default_size_changes_where_the_help_says(pairs, count):
    assert pieces.default_pieces(pairs) == count


def test_without_protobuf_nothing_is_learnt(monkeypatch, tmp_path):
    (tmp_path / "text").write_text("a cat\n")
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    monkeypatch.setattr(pieces, "train_unigram", None)
    with pytest.raises(UsageError, match="the library protobuf .*: pip install protobuf"):
        pieces.learn([str(tmp_path / "text")], str(tmp_path), 20)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of all scripts, each line seen twice, and its folder."""
    folder = tmp_path_factory.mktemp("model")
    lines = [line for script in SCRIPTS.values() for line in script] * 2
    (folder / "text").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    pieces.learn([str(folder / "text")], str(folder))
    return SentencePieces(str(folder / "sentencepiece.model")), folder


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_character_comes_back(model, script):
    for line in SCRIPTS[script]:
        cut = model[0].encode(line)
        assert cut.split() == cut.split(" ")  # fairseq parts pieces at every blank
        assert model[0].decode(cut) == line.strip()
        # as fairseq joins them; what it cannot know is restored
        assert model[0].restore(cut.replace(" ", "").replace("\u2581", " ").strip()) == line.strip()


def test_bytes_of_another_model_are_characters_again(tmp_path):
    path = tmp_path / "bytes"
    subwords.library("sentencepiece").SentencePieceTrainer.train(
        sentence_iterator=iter(["a house", "the house"] * 20),
        model_prefix=str(path),
        vocab_size=300,
        hard_vocab_limit=False,
        byte_fallback=True,
        minloglevel=2,
    )
    model = SentencePieces(f"{path}.model")
    encoded = model.encode("the 猫 house")
    assert "<0xE7>" in encoded
    assert model.decode(encoded) == "the 猫 house"
    assert model.restore(encoded.replace(" ", "").replace("\u2581", " ").strip()) == "the 猫 house"


def test_the_library_alone_cuts_and_joins_alike(model):
    import sentencepiece

    library = sentencepiece.SentencePieceProcessor(model_file=str(model[1] / "sentencepiece.model"))
    for line in (line.strip() for script in SCRIPTS.values() for line in script):
        found = library.encode(line, out_type=str)
        assert " ".join(found) == model[0].encode(line) and library.decode(found) == line


def test_no_piece_is_a_special_symbol_and_all_have_a_number(model):
    cut = model[1] / "cut"
    lines = [line for script in SCRIPTS.values() for line in script]
    cut.write_text("".join(model[0].encode(line) + "\n" for line in lines), encoding="utf-8")
    dictionary = Dictionary.load(pieces.write_dictionary([str(cut)], str(model[1])))
    known = model[0].vocabulary()
    assert not {"<s>", "<pad>", "</s>", "<unk>"} & set(known)
    assert "ß" in known and len(dictionary) % 8 == 0
    assert not [piece for piece in known if dictionary.index(piece) == dictionary.unk()]


@pytest.mark.parametrize("language", [name for name in SCRIPTS if len(name) == 2])
def test_the_ceiling_of_the_default_is_100_in_every_script(tmp_path, language):
    # training sees every character, the test set has other sentences of them
    lines = [" ".join(SCRIPTS[language]), *SCRIPTS[language]] * 4
    for split in ("train", "test"):
        text = lines if split == "train" else lines[:2]
        for side in ("en", language):
            (tmp_path / f"{split}.{side}").write_text("\n".join(text) + "\n", encoding="utf-8")
    files = {"train": str(tmp_path / "train"), "test": str(tmp_path / "test")}
    said: list = []
    output = str(tmp_path / "bin")
    prepare(TranslationOptions("en", language, output, valid=files["train"], **files), said.append)
    assert said[-1].startswith("test: ceiling: sacreBLEU 100.00,"), said


def test_text_that_is_none_or_too_small_a_size_is_told(tmp_path):
    (tmp_path / "blank").write_text(" \n\n")
    with pytest.raises(UsageError, match="no text"):
        pieces.learn([str(tmp_path / "blank")], str(tmp_path))
    (tmp_path / "text").write_text("abcdef\n")
    with pytest.raises(UsageError, match="5 sentencepieces are too few for the 8 characters"):
        pieces.learn([str(tmp_path / "text")], str(tmp_path), 5)


def test_the_version_of_the_library_that_learnt_a_model_goes_with_it(tmp_path):
    """Unigram pieces of the same text differ between versions."""
    lines = [f"line {n} of a text, with some words {n % 7}" for n in range(200)]
    for name in ("pieces", "vocabulary", "copy"):
        (tmp_path / name).mkdir()
    (tmp_path / "text").write_text("\n".join(lines))
    pieces.learn([str(tmp_path / "text")], str(tmp_path / "pieces"), 60)
    vocabulary.learn_sentencepiece(lambda: lines, str(tmp_path / "vocabulary"), 60, 1.0)
    vocabulary.copy_subwords(subwords.load(str(tmp_path / "vocabulary")), str(tmp_path / "copy"))
    for name in ("pieces", "vocabulary", "copy"):
        learnt_by = (tmp_path / name / "sentencepiece.version").read_text()
        assert learnt_by == f"{version('sentencepiece')}\n"


def test_the_same_text_gives_the_same_bytes_wherever_temporary_files_are(tmp_path, monkeypatch):
    lines = [line for script in SCRIPTS.values() for line in script]
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8", newline="")
    models = []
    for name in ("a", "b" * 150):
        (tmp_path / name).mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        pieces.learn([str(tmp_path / "text")], str(tmp_path / name))
        models.append((tmp_path / name / "sentencepiece.model").read_bytes())
    assert models[0] == models[1] and b"tsv" not in models[0]
