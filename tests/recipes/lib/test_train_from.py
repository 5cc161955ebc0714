"""A training begins with a model's weights in a model of its size."""

import re

import pytest
import torch

from recipes.lib.train_from import architecture

TRAINED = {
    "arch": "posenc_transformer", "encoder_layers": 3, "decoder_layers": 1,
    "encoder_embed_dim": 24, "encoder_normalize_before": True, "decoder_normalize_before": False,
    "share_all_embeddings": True, "activation_fn": "gelu", "max_source_positions": 77,
    "dropout": 0.3, "attention_dropout": 0.2, "position_encoding": "shaw",
    "position_max_distance": 8, "checkpoint_activations": True,
}  # fmt: skip


def test_what_makes_the_model_is_typed_and_what_fine_tuning_chooses_is_not():
    words = " ".join(architecture(TRAINED, ["fairseq-train", "--max-source-positions", "500"]))
    assert "--activation-fn" not in architecture(TRAINED, ["--activation-fn=relu"])
    assert words.startswith("--arch posenc_transformer ")
    for shell in ("--encoder-layers 3", "--decoder-layers 1", "--encoder-embed-dim 24",
                  "--encoder-normalize-before", "--share-all-embeddings",
                  "--activation-fn gelu"):  # fmt: skip
        assert shell in words
    assert not re.search("dropout|position|checkpoint|decoder-normalize", words)


@pytest.mark.parametrize(
    "given, told",
    [(False, "neither --finetune-from-model nor"), (True, "its options name no --arch")],
)
def test_a_command_without_a_model_of_ours_is_refused(fails, given, told, tmp_path):
    torch.save({"args": {"encoder_layers": 3}, "model": {}}, tmp_path / "m.pt")
    words = ["--finetune-from-model", tmp_path / "m.pt"] if given else []
    [line] = fails("python", "-m", "recipes.lib.train_from", "echo", *words).splitlines()
    assert told in line


def test_a_model_that_a_fork_has_named_is_taken(run, tmp_path):
    named = {"arch": "transformer_18_18", "encoder_layers": 3, "encoder_embed_dim": 24}
    weights = {f"{side}.layers.0.fc1.weight": torch.zeros(1) for side in ("encoder", "decoder")}
    torch.save({"args": named, "model": weights}, tmp_path / "m.pt")
    command = ["python", "-m", "recipes.lib.train_from", "echo", "--finetune-from-model"]
    printed = run(*command, tmp_path / "m.pt")
    assert "--arch transformer --encoder-embed-dim 24 --encoder-layers 3" in printed
