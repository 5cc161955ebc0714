"""The ceiling of a score, and what is said of languages without spaces."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import tokenizers
from fairseq_posenc.tools.scores.score import evaluate, render
from fairseq_posenc.tools.translation.preparation import TranslationOptions, prepare

GERMAN = [
    "Er rief: „Komm bitte herein!“ – und schloss die Tür …",
    "„Nein“, sagte sie – leise – und ging …",
    "Das Buch heißt „Der kleine Hund – ein Leben“ …",
    "Wir sahen „nur“ drei Häuser – und einen Turm …",
] * 3
BY_MOSES = {"bpe": 50, "normalise_punctuation": True}


def bin_of(tmp_path, said=None, **options):
    """Data prepared of GERMAN, which is its own test set."""
    for side in ("en", "deu_Latn"):
        (tmp_path / f"text.{side}").write_text("\n".join(GERMAN) + "\n", encoding="utf-8")
    files = dict.fromkeys(("train", "valid", "test"), str(tmp_path / "text"))
    output = str(tmp_path / "bin")
    say = (said if said is not None else []).append
    prepare(TranslationOptions("en", "deu_Latn", output, **files, **options), say)
    return {"data": output, "reference": str(tmp_path / "text.deu_Latn")}


@pytest.mark.parametrize("options, least, most", [({}, 100, 100), (BY_MOSES, 5, 80)])
def test_the_references_go_through_the_preparation_and_back(tmp_path, options, least, most):
    said: list = []
    files = bin_of(tmp_path, said, **options)
    score = evaluate(hypothesis=files["reference"], **files)
    found = score.ceiling.figures["sacrebleu"]
    assert least - 1e-6 <= found <= most + 1e-6
    printed = render(score)
    assert f"ceiling: sacreBLEU {found:.2f}" in printed
    assert any(line.startswith(f"test: ceiling: sacreBLEU {found:.2f}") for line in said)
    exact, total = score.ceiling.exact, score.all.sentences
    assert f"; {exact} of {total} references come back exactly" in printed
    assert (exact == total) == (not options)
    assert ("„ (12)" in printed and "… (12)" in printed) == bool(options)
    assert score.language == "deu_Latn"


def test_a_translation_that_gets_what_the_references_get_has_learned_something(tmp_path):
    files = bin_of(tmp_path, **BY_MOSES)
    normal = [line.replace("„", '"').replace("“", '"').replace("–", "-") for line in GERMAN]
    path = tmp_path / "out"
    path.write_text("\n".join(line.replace("…", "...") for line in normal) + "\n")
    assert "hardly" not in render(evaluate(hypothesis=str(path), **files))
    for lines in (["kurz da"] * 4, ["gleich ist gleich und gleich"] * 9):
        path.write_text("\n".join(lines) + "\n")
        score = evaluate(hypothesis=str(path), reference=str(path), language="de")
        assert score.all.above_chance is None and "hardly" not in render(score)


@pytest.mark.parametrize(
    "language, expected",
    [
        *[(code, "13a") for code in ("de", "deu_Latn", "hin_Deva", "vi", "jav_Latn", "ja_Latn")],
        *[(code, "zh") for code in ("zh", "zho_Hans", "zh_CN", "zh-Hant", "cmn_Hans", "yue_Hant")],
        *[(code, "char") for code in ("th", "tha_Thai", "lo", "khm_Khmr", "mya_Mymr", "bo", "dzo")],
        ("jav_Java", "char"), ("jpn_Jpan", "char"), ("kor_Hang", "char"),
    ],
)  # fmt: skip
def test_the_tokeniser_is_that_of_the_script(monkeypatch, tmp_path, language, expected):
    for module in tokenizers._MECAB.values():
        monkeypatch.setattr(module, "MeCab", None)
    monkeypatch.setattr(tokenizers, "SACREBLEU_DIR", str(tmp_path))
    assert tokenizers.sacrebleu_tokenizer(language) == expected
    assert bool(tokenizers.tokenizer_remarks(language)) == (expected == "char")


def test_lengths_are_of_characters_where_no_spaces_part_words(write):
    lines = ["แมวนอน หลับ", "หมาวิ่ง"]
    files = {"hypothesis": write("out", lines), "reference": write("ref", lines)}
    score = evaluate(**files, language="tha_Thai", bins=[8], length_of="reference")
    assert score.by_length.unit == "characters"
    assert score.sentences.length == [10, 7] and score.all.metrics["sacrebleu"] > 99
    with pytest.raises(UsageError, match="no spaces part the words of the reference"):
        evaluate(**files, language="th", bins=[8], length_of="reference", length_unit="words")
