"""Import: what was exported comes back bit for bit, strangers' models with the same scores."""

import json
import string

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.folders import DESCRIPTION
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface, to_safetensors
from fairseq_posenc.tools.convert.huggingface.load import import_model

PRE_NORM = dict(
    encoder_normalize_before=True, decoder_normalize_before=True, share_all_embeddings=True
)
TIED = {"share_decoder_input_output_embed": True}
TINY = dict(
    vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=24, max_position_embeddings=34,
)  # fmt: skip


@pytest.mark.parametrize(
    "kind, write, encoding, options",
    [
        ("checkpoint", to_huggingface, "cape", {}),
        ("checkpoint", to_huggingface, "learned", PRE_NORM),
        ("bert_checkpoint", to_huggingface, "t5", {}),
        ("bert_checkpoint", to_huggingface, "learned", {"position_segments": "input"}),
        ("checkpoint", to_safetensors, "shaw", {}),
        ("lm_checkpoint", to_safetensors, "transformer_xl", {}),
        ("lm_checkpoint", to_huggingface, "sinusoidal", {}),
        ("lm_checkpoint", to_huggingface, "rotary", TIED),
        ("bert_checkpoint", to_safetensors, "tupe", {"position_segments": "per_head"}),
    ],
)
def test_what_was_exported_comes_back_bit_for_bit(
    request, data, tmp_path, kind, write, encoding, options
):
    path, _ = request.getfixturevalue(kind)(encoding, **options)
    write(str(path), str(tmp_path / "out"), str(data))
    import_model(str(tmp_path / "out"), str(tmp_path / "back" / "model.pt"))
    before, after = load_checkpoint(path), load_checkpoint(tmp_path / "back" / "model.pt")
    assert set(before["model"]) == set(after["model"])
    for name, weight in before["model"].items():
        assert weight.dtype == after["model"][name].dtype
        assert torch.equal(weight, after["model"][name]), name
    again = read_checkpoint(str(tmp_path / "back" / "model.pt"), ALL)
    assert again.options.position_signature == before["cfg"]["model"].position_signature
    for file in (tmp_path / "back").glob("dict.*"):
        assert file.read_bytes() == (data / file.name).read_bytes()


def test_a_folder_of_posenc_export_is_compared_by_posenc_export(bert_checkpoint, data, tmp_path):
    path, _ = bert_checkpoint("learned")
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    text = tmp_path / "lines.txt"
    text.write_text("w1 w2\n")
    back = str(tmp_path / "back" / "model.pt")
    for _ in range(2):
        with pytest.raises(UsageError, match=f"without --check; then posenc export --path {back} "):
            import_model(str(tmp_path / "hf"), back, text=str(text))
        # without which it is as save_pretrained writes it
        (tmp_path / "hf" / DESCRIPTION).unlink(missing_ok=True)


def test_a_safetensors_file_is_read_in_a_checkpoints_place(lm_checkpoint, data, tmp_path):
    path, model = lm_checkpoint("rotary")
    to_safetensors(str(path), str(tmp_path / "plain"), str(data))
    source = read_checkpoint(str(tmp_path / "plain" / "posenc.safetensors"), ALL)
    tokens = torch.randint(4, 40, (2, 9))
    assert torch.allclose(source.model(tokens)[0], model(tokens)[0], atol=1e-5)
    # its options are checked as those of a checkpoint
    file = tmp_path / "plain" / "posenc.json"
    text = file.read_text(encoding="utf-8").replace(
        '"decoder_embed_dim": 32', '"decoder_embed_dim": 99999'
    )
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="its weights do not fit its own options"):
        read_checkpoint(str(tmp_path / "plain" / "posenc.safetensors"), ALL)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    with pytest.raises(UsageError, match="part of the weights; posenc import --from .*hf has all"):
        read_checkpoint(str(tmp_path / "hf" / "posenc.safetensors"), ALL)


def test_a_folder_that_was_changed_is_refused(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    file = tmp_path / "hf" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(UsageError, match="not the one that posenc export wrote"):
        import_model(str(tmp_path / "hf"), str(tmp_path / "back" / "model.pt"))
    file.write_bytes(content[:100])
    with pytest.raises(UsageError, match="is damaged"):
        import_model(str(tmp_path / "hf"), str(tmp_path / "back" / "model.pt"))
    assert not list((tmp_path / "back").glob("*"))


def write_vocabulary(folder, roberta=False):
    """A vocabulary of 60; in the order of bert-base-uncased, special types are not the first."""
    pieces = list(string.ascii_lowercase) + [f"##{c}" for c in string.ascii_lowercase]
    symbols = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
    symbols = [*symbols, "the", "dog"]
    if roberta:
        symbols = ["<s>", "<pad>", "</s>", "<unk>", *symbols[6:], "[unused0]", "<mask>"]
    (folder / "vocab.txt").write_text("\n".join(symbols) + "\n", encoding="utf-8")
    return symbols


def strengthen(model):
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:  # sinusoids
            parameter.data += 0.3 * torch.randn(parameter.shape)
    return model.eval()


@pytest.mark.parametrize("name", ["Bert", "RoFormer", "Roberta"])
@pytest.mark.parametrize("old", [False, True])
def test_a_bert_of_transformers_has_the_same_scores(tmp_path, name, old):
    transformers = pytest.importorskip("transformers")
    more = {"embedding_size": 16, "type_vocab_size": 2} if name == "RoFormer" else {}
    config = getattr(transformers, f"{name}Config")(**TINY, **more)
    theirs = strengthen(getattr(transformers, f"{name}ForMaskedLM")(config))
    folder = tmp_path / "theirs"
    theirs.save_pretrained(folder)
    if old:  # a pickle, with the names of LayerNorms that bert-base-uncased has
        names = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
        state = {}
        for key, weight in theirs.state_dict().items():
            for new, gamma in names.items():
                key = key.replace(new, gamma) if name == "Bert" else key
            state[key] = weight
        torch.save(state, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    symbols = write_vocabulary(folder, name == "Roberta")
    import_model(str(folder), str(tmp_path / "ours" / "model.pt"))
    source = read_checkpoint(str(tmp_path / "ours" / "model.pt"), ALL)
    lines = (tmp_path / "ours" / "dict.txt").read_text(encoding="utf-8").splitlines()
    special = symbols[:4] if name == "Roberta" else ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]
    mask = "<mask>" if name == "Roberta" else "[MASK]"
    ours = [*special, *(line.rsplit(" ", 1)[0] for line in lines), mask]
    to_theirs = torch.tensor([symbols.index(symbol) for symbol in ours])
    tokens = torch.randint(4, 60, (3, 20))
    numbers = (torch.arange(20) > 9).long().expand(3, -1)
    with torch.no_grad():
        segments = {} if name == "Roberta" else {"segments": numbers}
        types = {} if name == "Roberta" else {"token_type_ids": numbers}
        found = source.model(tokens, **segments)[0]
        expected = theirs(to_theirs[tokens], **types).logits[..., to_theirs]
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()))


def test_a_wmt19_model_of_transformers_has_the_same_scores(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.FSMTConfig(
        langs=["en", "de"], src_vocab_size=30, tgt_vocab_size=26, d_model=16, encoder_layers=2,
        decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
        decoder_attention_heads=2, max_position_embeddings=30,
    )  # fmt: skip
    theirs = strengthen(transformers.FSMTForConditionalGeneration(config))
    folder = tmp_path / "theirs"
    theirs.save_pretrained(folder)
    letters = [*string.ascii_lowercase]
    for side, types in (("src", 30), ("tgt", 26)):
        symbols = ["<s>", "<pad>", "</s>", "<unk>", "a</w>", *letters][:types]
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        (folder / f"vocab-{side}.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "merges.txt").write_text("a b 12\nab c</w> 7\n", encoding="utf-8")
    import_model(str(folder), str(tmp_path / "ours" / "model.pt"))
    source = read_checkpoint(str(tmp_path / "ours" / "model.pt"), ALL)
    assert source.options.position_encoding == "sinusoidal"
    assert (tmp_path / "ours" / "codes").read_text() == "#version: 0.2\na b\nab c</w>\n"
    assert (tmp_path / "ours" / "dict.de.txt").read_text().split("\n")[:2] == ["a 1", "a@@ 1"]
    sources, targets = torch.randint(4, 30, (3, 12)), torch.randint(4, 26, (3, 9))
    with torch.no_grad():
        found = source.model(sources, None, targets)[0]
        expected = theirs(sources, decoder_input_ids=targets, use_cache=False).logits
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()))


def test_others_are_refused_with_the_reason(tmp_path, write_config):
    for kind, reason in (("marian", "its output has a bias"), ("t5", "only fsmt, roberta")):
        write_config({"model_type": kind})
        with pytest.raises(UsageError, match=reason):
            import_model(str(tmp_path), str(tmp_path / "back" / "model.pt"))
    write_config({"model_type": "bert", "hidden_size": "16"})
    with pytest.raises(UsageError, match="hidden_size should be a whole number"):
        import_model(str(tmp_path), str(tmp_path / "back" / "model.pt"))


@pytest.fixture
def write_config(tmp_path):
    """A function that writes config.json."""
    return lambda value: (tmp_path / "config.json").write_text(json.dumps(value))
