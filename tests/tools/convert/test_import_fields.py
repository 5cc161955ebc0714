"""Import reads all of a stranger's folder that matters, or refuses it by the name of the matter."""

import json

import pytest

from fairseq_posenc.data.subwords import WordPiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.huggingface import adapters, bert
from fairseq_posenc.tools.convert.huggingface.families import FAMILIES
from fairseq_posenc.tools.convert.huggingface.load import import_model
from tests.tools.convert.conftest import TINY, TYPES, change, imported

transformers = pytest.importorskip("transformers")

TEXT = ["Möchte er die Bäume?", "が ガ 東京です", "我爱北京 dog", "ABC élève DOG"]
CASED = {"lowercase": False, "strip_accents": None, "chinese": True}


@pytest.mark.parametrize(
    "name, field, value",
    [
        ("Bert", "is_decoder", True),
        ("Bert", "add_cross_attention", True),
        ("Bert", "position_embedding_type", "relative_key"),
        ("Bert", "quantization_config", {"quant_method": "bitsandbytes"}),
        ("Bert", "of_a_later_version", 3),
        ("Bert", "architectures", ["BertForSequenceClassification"]),
        ("Bert", "architectures", ["BertModel"]),
        ("Bert", "num_attention_heads", 3),
        ("Bert", "num_attention_heads", 0),
        ("Bert", "hidden_size", 17),
        ("Bert", "num_hidden_layers", 10**6),
        ("Bert", "vocab_size", 10**12),
        ("Roberta", "hidden_act", "relu"),
        ("XLMRoberta", "hidden_act", "gelu_new"),
        ("Roberta", "pad_token_id", 0),
        ("RoFormer", "rotary_value", True),
        ("RoFormer", "num_attention_heads", 8),
        ("FSMT", "decoder_start_token_id", 0),
        ("FSMT", "normalize_before", True),
        ("FSMT", "langs", ["en", "en"]),
        ("FSMT", "langs", ["en", "../de"]),
    ],
)
def test_a_field_that_changes_what_is_computed_is_refused_by_name(save, name, field, value):
    folder, _ = save(name, **({"embedding_size": 16} if name == "RoFormer" else {}))
    change(folder / "config.json", **{field: value})
    wanted = {"architectures": "is not imported, only", "langs": "language"}
    wanted = wanted.get(field, f"heads do not divide|angles .* of 2 channels|no 10* lay|{field}")
    with pytest.raises(UsageError, match=wanted):
        imported(folder)
    assert not (folder.parent / "ours" / "model.pt").exists()


def test_fields_that_matter_to_no_score_are_left_out_with_a_note(save):
    folder, _ = save(id2label={0: "a", 1: "b"}, initializer_range=0.5)
    _, notes = imported(folder)
    [note] = [note for note in notes if note.startswith("left out, as no score")]
    assert "id2label" in note and "initializer_range" in note


FLAGS = [
    {},
    {"do_lower_case": False},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "strip_accents": False},
    {"do_lower_case": False, "tokenize_chinese_chars": False},
]


@pytest.mark.parametrize("whole", [False, True], ids=["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_text_is_cut_as_transformers_cuts_it(save, flags, whole):
    folder, _ = save()
    vocabulary = {symbol: number for number, symbol in enumerate(TYPES)}
    theirs = transformers.BertTokenizer(vocab=vocabulary, **flags)
    if whole:
        theirs.save_pretrained(folder)
        (folder / "vocab.txt").unlink()
    else:
        change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer", **flags)
    imported(folder)
    ours = WordPiece(str(folder.parent / "ours" / WordPiece.name))
    for line in TEXT:
        expected = [piece.replace("[UNK]", "<unk>") for piece in theirs.tokenize(line)]
        assert ours.encode(line) == expected, line


@pytest.mark.parametrize("known", [[], ["dog"]])
def test_tokens_that_were_added_to_the_tokenizer_are_named(save, known):
    """Of known words, too: transformers cuts others around them."""
    folder, _ = save()
    tokenizer = transformers.BertTokenizer(vocab={symbol: n for n, symbol in enumerate(TYPES)})
    tokenizer.add_tokens(known)
    tokenizer.save_pretrained(folder)
    (folder / "vocab.txt").unlink()
    notes = [note for note in imported(folder)[1] if " adds " in note]
    assert len(notes) == len(known) and all(" adds dog: " in note for note in notes)


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "lines").write_text("\n\n".join(TEXT) + "\n", "utf-8")
    return str(tmp_path / "lines")


@pytest.mark.parametrize(
    "name, cut",
    [
        ("Bert", "4 of 4 sentences are cut as by transformers"),
        ("FSMT", "4 of 4 sentences are cut as by transformers"),
        ("RoFormer", "0 sentences tokenised by both; scores are compared on random tokens"),
    ],
)
def test_check_compares_pieces_and_scores_with_transformers(save, lines, name, cut):
    folder, _ = save(name, **({"embedding_size": 16} if name == "RoFormer" else {}))
    notes = import_model(str(folder), str(folder.parent / "ours" / "model.pt"), text=lines)
    assert notes[-2] == cut and notes[-1].startswith("largest difference of scores ")
    assert " on 4 sentences, transformers " in notes[-1]


def test_check_refuses_what_transformers_does_otherwise(save, lines, monkeypatch):
    """Were import to read an activation or the case of text wrongly, nothing would be written."""
    folder, _ = save()
    for values, name, wrong, reason in (
        (adapters.FAIRSEQ_ACTIVATIONS, "gelu", "relu", "the scores of transformers differ"),
        (vars(bert), "wordpiece_case", lambda *_, **__: CASED, "its tokenizer in"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(values, name, wrong)
            with pytest.raises(UsageError, match=reason):
                import_model(str(folder), str(folder.parent / "ours" / "model.pt"), text=lines)
    change(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="tokenizer.json is not from tokenizers, or damaged"):
        import_model(str(folder), str(folder.parent / "ours" / "model.pt"), text=lines)
    assert not list((folder.parent / "ours").iterdir())


@pytest.mark.parametrize(
    "name, values",
    [
        ("Bert", {"tokenizer_class": "BertJapaneseTokenizer"}),
        ("Bert", {"do_basic_tokenize": False}),
        ("RoFormer", {}),
    ],
)
def test_text_that_others_cut_is_said_to_be(save, name, values):
    folder, _ = save(name, **({"embedding_size": 16} if name == "RoFormer" else {}))
    change(folder / "tokenizer_config.json", **values)
    output, notes = imported(folder)
    assert any("which posenc lacks" in note for note in notes)
    assert not (output.parent / WordPiece.name).exists()


def test_fsmt_in_lower_case_says_so(save):
    folder, _ = save("FSMT")
    change(folder / "config.json", langs=["en", "pt_BR"])
    change(folder / "tokenizer_config.json", langs=["en", "pt_BR"], do_lower_case=True)
    output, _ = imported(folder)
    assert (output.parent / "dict.pt_BR.txt").exists()
    assert json.loads((output.parent / "tokeniser.json").read_text())["lowercase"] is True


def test_a_unigram_vocabulary_is_read(save):
    folder, _ = save("XLMRoberta")
    types = (folder / "vocab.txt").read_text("utf-8").split()
    (folder / "vocab.txt").unlink()
    content = {"model": {"type": "Unigram", "vocab": [[t, -1.5] for t in types]}}
    content["added_tokens"] = [{"id": len(types) - 1, "content": "<mask>"}]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    change(folder / "config.json", vocab_size=len(types) + 1)
    with pytest.raises(UsageError, match=r"has \d+ types, its"):
        imported(folder)
    change(folder / "config.json", vocab_size=TINY["vocab_size"])
    output, _ = imported(folder)
    assert (output.parent / "dict.txt").read_text("utf-8").startswith("a 1\n##a 1\n")
    output.unlink()
    content["model"]["vocab"][3] = []
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="is not from tokenizers, or damaged"):
        imported(folder)


@pytest.mark.parametrize("model_type", [name for name, one in FAMILIES.items() if one.read])
def test_defaults_are_those_of_transformers(model_type):
    """Of a file that leaves a field out, save_pretrained's among them."""
    config = transformers.AutoConfig.for_model(model_type)
    for field in FAMILIES[model_type].config_fields:
        if field.default is not None:
            assert getattr(config, field.name) == field.default, field.name
