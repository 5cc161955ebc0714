"""Import reads all of a stranger's folder that matters, or refuses it by the name of the matter."""

import json
import os
import string

import pytest
import torch

from fairseq_posenc.data.subwords import WordPiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.export.hf_import import import_model
from fairseq_posenc.tools.export.source import ALL, read_checkpoint

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

TEXT = ["Möchte er die Bäume?", "が ガ 東京です", "我爱北京 dog", "ABC élève DOG"]
TYPES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TYPES += [
    start + letter
    for letter in string.ascii_letters + "öäéè我爱东京がかガ東北"
    for start in ("", "##")
]
TYPES += ["dog", "DOG", "?", "で", "す"]
TINY = dict(
    vocab_size=len(TYPES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=24, max_position_embeddings=34,
)  # fmt: skip
FSMT = dict(
    langs=["en", "de"], src_vocab_size=8, tgt_vocab_size=8, d_model=16, encoder_layers=1,
    decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
    decoder_attention_heads=2, max_position_embeddings=30,
)  # fmt: skip


@pytest.fixture
def save(tmp_path):
    """A function that saves a random model of transformers, strong enough that all matters."""

    def write(name="Bert", **chosen):
        sizes, head = (
            (FSMT, "ForConditionalGeneration") if name == "FSMT" else (TINY, "ForMaskedLM")
        )
        config = getattr(transformers, f"{name}Config")(**{**sizes, **chosen})
        torch.manual_seed(1)
        model = getattr(transformers, f"{name}{head}")(config).eval()
        for key, parameter in model.named_parameters():
            if "embed_positions" not in key:
                parameter.data += 0.3 * torch.randn(parameter.shape)
        model.save_pretrained(tmp_path / "theirs")
        if name == "FSMT":
            symbols = ["<s>", "<pad>", "</s>", "<unk>", "a</w>", "a", "b", "c"]
            for side in ("src", "tgt"):
                numbers = json.dumps({symbol: n for n, symbol in enumerate(symbols)})
                (tmp_path / "theirs" / f"vocab-{side}.json").write_text(numbers)
            (tmp_path / "theirs" / "merges.txt").write_text("a b 1\n")
        else:
            types = [*TYPES]
            if name in ("Roberta", "XLMRoberta"):
                types = ["<s>", "<pad>", "</s>", "<unk>", *TYPES[5:], "<mask>"]
            (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(types) + "\n", "utf-8")
        return tmp_path / "theirs", model

    return write


def imported(folder):
    output = folder.parent / "ours" / "model.pt"
    notes = import_model(str(folder), str(output))
    return output, notes


def change(path, **values):
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**found, **values}))


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
    wanted = wanted.get(
        field, "positions of type|heads do not divide|rotated|no 10* lay" + f"|{field}"
    )
    with pytest.raises(UsageError, match=wanted):
        imported(folder)
    assert not (folder.parent / "ours" / "model.pt").exists()


def test_fields_that_matter_to_no_score_are_left_out_with_a_note(save):
    folder, _ = save(id2label={0: "a", 1: "b"}, initializer_range=0.5)
    _, notes = imported(folder)
    [note] = [note for note in notes if note.startswith("left out, as no score")]
    assert "id2label" in note and "initializer_range" in note


@pytest.mark.parametrize("tied", [True, False])
def test_the_output_is_that_of_transformers_tied_or_not(save, tied):
    folder, theirs = save(tie_word_embeddings=tied)
    source = read_checkpoint(str(imported(folder)[0]), ALL)
    lines = (folder.parent / "ours" / "dict.txt").read_text("utf-8").splitlines()
    ours = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", *(x.rsplit(" ", 1)[0] for x in lines), "[MASK]"]
    order = torch.tensor([TYPES.index(symbol) for symbol in ours])
    tokens = torch.randint(4, len(TYPES), (3, 20))
    with torch.no_grad():
        found = source.model(tokens, segments=torch.zeros_like(tokens))[0]
        expected = theirs(order[tokens]).logits[..., order]
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()))


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
        assert ours.pieces(line) == expected, line


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
    change(folder / "tokenizer_config.json", do_lower_case=True)
    output, _ = imported(folder)
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


def split(folder, places):
    """Put the weights into two files with an index; ``places`` changes what the index says."""
    weights = safetensors.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, index = sorted(weights), {}
    for part, mine in (("one.safetensors", names[:5]), ("two.safetensors", names[5:])):
        safetensors.save_file({n: weights[n] for n in mine}, folder / part)
        index.update(dict.fromkeys(mine, part))
    index.update(places)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return weights


@pytest.mark.parametrize(
    "places, reason",
    [
        ({}, None),
        ({"bert.embeddings.word_embeddings.weight": "../two.safetensors"}, "not the name of a"),
        ({"bert.embeddings.word_embeddings.weight": "two.safetensors"}, "do not agree on bert"),
        ({"another": "two.safetensors"}, "do not agree on another"),
    ],
)
def test_each_weight_is_of_the_file_that_the_index_names(save, places, reason):
    folder, _ = save()
    split(folder, places)
    if reason is None:
        assert imported(folder)[0].exists()
        return
    with pytest.raises(UsageError, match=reason):
        imported(folder)


def test_other_sets_of_weights_are_refused(save):
    folder, _ = save()
    file = folder / "model.safetensors"
    content, weights = file.read_bytes(), split(folder, {})
    file.write_bytes(content)
    with pytest.raises(UsageError, match="two sets of weights"):
        imported(folder)
    (folder / "model.safetensors.index.json").unlink()
    name = "bert.encoder.layer.0.output.dense.weight"
    safetensors.save_file({**weights, name: weights[name].to(torch.int8)}, file)
    with pytest.raises(UsageError, match=f"{name} is quantised"):
        imported(folder)
    file.unlink()
    (folder / "pytorch_model.bin.index.json").write_text("{}")
    with pytest.raises(UsageError, match="is in parts, which are not read"):
        imported(folder)


@pytest.mark.parametrize("name", ["Bert", "FSMT"])
def test_a_weight_without_a_place_is_refused(save, name):
    folder, _ = save(name)
    weights = safetensors.load_file(folder / "model.safetensors")
    weights["model.adapter.weight"] = torch.ones(3)
    safetensors.save_file(weights, folder / "model.safetensors")
    with pytest.raises(UsageError, match="no place for model.adapter.weight"):
        imported(folder)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_are_not_followed(save, kind):
    folder, _ = save()
    (folder / "vocab.txt").unlink()
    if kind == "link":
        secret = folder.parent / "secret"
        secret.write_text("\n".join(TYPES))
        (folder / "vocab.txt").symlink_to(secret)
    else:
        os.mkfifo(folder / "vocab.txt")
    with pytest.raises(UsageError, match="is a link, a pipe or a device, which is not followed"):
        imported(folder)


def change_weights(change):
    """A function that saves a folder's weights anew, as ``change`` returns them."""

    def write(folder):
        file = folder / "model.safetensors"
        safetensors.save_file(change(safetensors.load_file(file)), file)

    return write


def as_pickle(change):
    """A function that saves what ``change`` makes of a folder's weights as a pickle."""

    def write(folder):
        file = folder / "model.safetensors"
        torch.save(change(safetensors.load_file(file)), folder / "pytorch_model.bin")
        file.unlink()

    return write


def text(name, content):
    return lambda folder: (folder / name).write_text(content, "utf-8", newline="")


DEEP = "[" * 100_000 + "]" * 100_000
NORM = "bert.embeddings.LayerNorm"


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (text("config.json", "{}"), "model_type is missing"),
        (text("config.json", DEEP), "config.json is not JSON: nested too deeply"),
        (text("tokenizer_config.json", DEEP), "tokenizer_config.json is not JSON: nested too"),
        (lambda folder: change(folder / "config.json", hidden_size=17, num_attention_heads=1),
         "its weights do not fit its config.json"),
        (change_weights(lambda found: {n.replace("bert.", ""): w for n, w in found.items()}),
         "its weights have no bert.embeddings"),
        (change_weights(lambda found: {**found, f"{NORM}.gamma": found[f"{NORM}.bias"].clone()}),
         f"have both {NORM}.gamma and {NORM}.weight"),
        (as_pickle(lambda found: {"model": found}), "does not hold weights alone"),
        (as_pickle(lambda found: list(found.values())), "does not hold weights by name"),
        (text("vocab.txt", "\n".join([*TYPES[:-1], "<s>"])), "'<s>' cannot be in fairseq's"),
        (text("vocab.txt", "\n".join([*TYPES[:-1], "dog"])), "has types of the same name"),
        (lambda folder: (folder / "dict.x").symlink_to("/dev/zero"), "dict.x is a link"),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_what_it_should_be_is_refused_in_one_line(save, spoil, reason):
    folder, _ = save()
    spoil(folder)
    with pytest.raises(UsageError, match=reason) as refused:
        imported(folder)
    assert "\n" not in str(refused.value)
    assert not [
        path for path in folder.parent.rglob("*") if "ours" in path.parts and path.is_file()
    ]
