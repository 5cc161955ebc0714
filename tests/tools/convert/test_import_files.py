"""A stranger's folder whose files are not what they should be is refused in one line."""

import json
import os

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.data.wordpiece_file import wordpiece_model
from fairseq_posenc.errors import UsageError
from tests.tools.convert.conftest import TYPES, change, imported

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")


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
OF_NO_TASK = {"kind": "posenc_bert", "model": {"arch": "posenc_bert"}, "task": 1}
NORM = "bert.embeddings.LayerNorm"


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (text("config.json", "{}"), "model_type is missing"),
        (text("config.json", DEEP), "config.json is not JSON: nested too deeply"),
        (text("tokenizer_config.json", DEEP), "tokenizer_config.json is not JSON: nested too"),
        (lambda folder: change(folder / "config.json", hidden_size=17, num_attention_heads=1),
         "its weights do not fit its own options: .* is 140 x 16 there, 140 x 17 here"),
        (lambda folder: change(folder / "config.json", posenc=OF_NO_TASK),
         "posenc.task should be an object"),
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


def of_two_models(folder, case):
    """Put a part of another model into the folder."""
    file, vocabulary = folder / "model.safetensors", folder / "vocab.txt"
    if case == "too small":
        config = json.loads((folder / "config.json").read_text())
        weights = safetensors.load_file(file)
        for name, weight in weights.items():
            if len(weight) == config["vocab_size"]:
                weights[name] = torch.cat(
                    [weight, weight[:1].repeat(100, *[1] * (weight.dim() - 1))]
                )
        safetensors.save_file(weights, file, {"format": "pt"})
        change(folder / "config.json", vocab_size=config["vocab_size"] + 100)
    elif case == "not a number":
        weights = safetensors.load_file(file)
        weights["bert.encoder.layer.0.output.dense.weight"][0, 0] = float("nan")
        safetensors.save_file(weights, file, {"format": "pt"})
    else:
        types = vocabulary.read_text("utf-8").splitlines()
        types[6], types[7] = types[7], types[6]
        numbers = {symbol: number for number, symbol in enumerate(types)}
        (folder / "vocab.json").write_text(json.dumps(numbers))


@pytest.mark.parametrize(
    "case, reason",
    [
        ("too small", "its vocabulary has .* types, its model .*; put the tokenizer that belongs"),
        ("not a number", "layers.0.fc2.weight has a number that is not finite"),
        ("two vocabularies", "type 6 is .* in vocab.txt and .* in vocab.json; .* two models"),
    ],
)
def test_parts_of_two_models_are_refused(save, case, reason):
    folder, _ = save()
    of_two_models(folder, case)
    with pytest.raises(UsageError, match=reason):
        imported(folder)
    assert not list((folder.parent / "ours").glob("*"))


def test_rows_that_fill_a_matrix_up_are_taken(save):
    folder, _ = save(vocab_size=len(TYPES) + 7)
    assert imported(folder)[0].exists()


@pytest.mark.parametrize(
    "name, left, is_refused",
    [
        ("FSMT", "sentencepiece.model", True),
        ("Bert", "sentencepiece.model", True),
        ("Bert", "codes", False),
        ("FSMT", "wordpiece.json", False),
    ],
)
def test_what_cuts_the_text_of_another_model_is_not_left_beside_one(save, name, left, is_refused):
    """Of two kinds of subwords in a folder, either might be taken for the model's."""
    folder, _ = save(name)
    (folder.parent / "ours").mkdir()
    (folder.parent / "ours" / left).write_text("")
    if not is_refused:
        imported(folder)
        return
    with pytest.raises(UsageError, match=f"{left} in .*ours.* is of another model; choose"):
        imported(folder)


def test_the_bias_of_robertas_head_may_have_either_name(save):
    folder, model = save("Roberta")
    weights = safetensors.load_file(folder / "model.safetensors")
    weights["lm_head.decoder.bias"] = weights.pop("lm_head.bias")
    safetensors.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    output, _ = imported(folder)
    bias = load_checkpoint(output)["model"]["encoder.lm_head.bias"]
    assert torch.equal(bias, model.lm_head.bias)


@pytest.mark.parametrize("part", ["pre_tokenizer", "continuing_subword_prefix", "clean_text", None])
def test_text_that_is_cut_otherwise_than_by_bert_is_told(save, part):
    folder, _ = save("Bert")
    tokenizer = wordpiece_model({symbol: n for n, symbol in enumerate(TYPES)}, lowercase=True)
    tokenizer["added_tokens"] = []
    tokenizer.update({"pre_tokenizer": {"type": "Whitespace"}} if part == "pre_tokenizer" else {})
    tokenizer["model"].update({part: "@@"} if part == "continuing_subword_prefix" else {})
    tokenizer["normalizer"].update({part: False} if part == "clean_text" else {})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    output, notes = imported(folder)
    assert any("which posenc lacks" in note for note in notes) == bool(part)
    assert (output.parent / "wordpiece.json").exists() != bool(part)
