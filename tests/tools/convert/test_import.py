"""Import: what was exported comes back bit for bit, strangers' models with the same scores."""

import json

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.folders import DESCRIPTION
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.adapters import rename
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface, to_safetensors
from fairseq_posenc.tools.convert.huggingface.families import EXPORTED, FAMILIES
from fairseq_posenc.tools.convert.huggingface.load import import_model
from fairseq_posenc.tools.translation import pieces
from tests.tools.convert.conftest import PRE_NORM, imported

TIED = {"share_decoder_input_output_embed": True}


@pytest.mark.parametrize(
    "kind, write, encoding, options",
    [
        ("checkpoint", to_huggingface, "learned", PRE_NORM),
        ("bert_checkpoint", to_huggingface, "t5", {}),
        ("checkpoint", to_safetensors, "shaw", {}),
        ("lm_checkpoint", to_safetensors, "transformer_xl", {}),
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


def test_a_sentencepiece_model_of_other_text_is_told(lm_checkpoint, data, tmp_path):
    path, _ = lm_checkpoint("rotary")
    (tmp_path / "text").write_text("some other text of other words\n" * 9)
    pieces.learn([str(tmp_path / "text")], str(data))
    to_safetensors(str(path), str(tmp_path / "plain"), str(data))
    [note] = [
        line
        for line in import_model(str(tmp_path / "plain"), str(tmp_path / "back" / "model.pt"))
        if "which may be of another model" in line
    ]
    assert "of the dictionary's types are no pieces of" in note
    (tmp_path / "plain" / "sentencepiece.model").unlink()
    notes = import_model(str(tmp_path / "plain"), str(tmp_path / "other" / "model.pt"))
    assert "another model" not in "".join(notes)


def test_weights_beside_the_description_of_another_model_are_refused(checkpoint, data, tmp_path):
    for seed, name in enumerate(("alibi", "sinusoidal")):  # neither has parameters of its own
        to_safetensors(str(checkpoint(name, seed)[0]), str(tmp_path / name), str(data))
    (tmp_path / "sinusoidal/posenc.json").replace(tmp_path / "alibi/posenc.json")
    with pytest.raises(UsageError, match="is not the one that posenc export wrote beside"):
        import_model(str(tmp_path / "alibi"), str(tmp_path / "back" / "model.pt"))


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


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "name, options",
    [
        ("Bert", {}),
        ("Bert", {"tie_word_embeddings": False}),
        ("Roberta", {}),
        ("RoFormer", {"embedding_size": 16}),
    ],
)
def test_a_bert_of_transformers_has_the_same_scores(save, name, options, old):
    folder, hf_model = save(name, num_hidden_layers=2, **options)
    if old:  # a pickle, with the names of LayerNorms that bert-base-uncased has
        names = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
        state = {}
        for key, weight in hf_model.state_dict().items():
            for new, gamma in names.items():
                key = key.replace(new, gamma) if name == "Bert" else key
            state[key] = weight
        torch.save(state, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    output, _ = imported(folder)
    source = read_checkpoint(str(output), ALL)
    symbols = (folder / "vocab.txt").read_text("utf-8").splitlines()
    lines = (output.parent / "dict.txt").read_text("utf-8").splitlines()
    special, mask = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"], "[MASK]"
    if name == "Roberta":
        special, mask = ["<s>", "<pad>", "</s>", "<unk>"], "<mask>"
    order = [*special, *(line.rsplit(" ", 1)[0] for line in lines), mask]
    hf_ids = torch.tensor([symbols.index(symbol) for symbol in order])
    tokens = torch.randint(4, len(symbols), (3, 20))
    numbers = (torch.arange(20) > 9).long().expand(3, -1)
    with torch.no_grad():
        segments = {} if name == "Roberta" else {"segments": numbers}
        types = {} if name == "Roberta" else {"token_type_ids": numbers}
        scores = source.model(tokens, **segments)[0]
        expected = hf_model(hf_ids[tokens], **types).logits[..., hf_ids]
    assert torch.allclose(scores, expected, atol=1e-5 * float(expected.abs().max()))


def test_a_wmt19_model_of_transformers_has_the_same_scores(save):
    folder, hf_model = save("FSMT", tgt_vocab_size=7, encoder_layers=2)
    (folder / "merges.txt").write_text("a b 12\nab c</w> 7\n", encoding="utf-8")
    output, _ = imported(folder)
    source = read_checkpoint(str(output), ALL)
    assert source.options.position_encoding == "sinusoidal"
    assert (output.parent / "codes").read_text() == "#version: 0.2\na b\nab c</w>\n"
    assert (output.parent / "dict.de.txt").read_text().split("\n")[:2] == ["a 1", "a@@ 1"]
    sources, targets = torch.randint(4, 8, (3, 12)), torch.randint(4, 7, (3, 9))
    with torch.no_grad():
        scores = source.model(sources, None, targets)[0]
        expected = hf_model(sources, decoder_input_ids=targets, use_cache=False).logits
    assert torch.allclose(scores, expected, atol=1e-5 * float(expected.abs().max()))


_KNOWN = "only fsmt, roberta, xlm-roberta, bert, roformer, m2m_100, mbart and what posenc export"


def test_others_are_refused_with_the_reason(tmp_path, write_config):
    for kind, reason in (("marian", "its output has a bias"), ("t5", _KNOWN), ("opt", _KNOWN)):
        write_config({"model_type": kind})
        with pytest.raises(UsageError, match=reason):
            import_model(str(tmp_path), str(tmp_path / "back" / "model.pt"))
    write_config({"model_type": "bert", "hidden_size": "16"})
    with pytest.raises(UsageError, match="hidden_size should be a whole number"):
        import_model(str(tmp_path), str(tmp_path / "back" / "model.pt"))


def test_each_model_is_exported_for_one_family_by_a_key_map_that_is_read_backwards():
    models = [model for adapter in FAMILIES.values() for model in adapter.exported]
    assert len(models) == len(set(models)) == len(EXPORTED)
    for adapter in FAMILIES.values():
        assert adapter.exported or adapter.read, adapter.model_type
        inverse = tuple((hf_name, name) for name, hf_name in adapter.key_map if hf_name)
        for name in (name for name, hf_name in adapter.key_map if hf_name):
            name = name.replace("#", "7")
            assert rename(rename(name, adapter.key_map), inverse) == name, adapter.model_type


@pytest.fixture
def write_config(tmp_path):
    """A function that writes config.json."""
    return lambda value: (tmp_path / "config.json").write_text(json.dumps(value))
