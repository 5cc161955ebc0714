"""Weights that are loaded into a model of fewer layers, or with shorter tables."""

import pytest
import torch

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError

MODELS = ["posenc_transformer", "posenc_bert"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("encoding", names())
@torch.no_grad()
def test_layers_are_pruned_with_their_positions(build, tiny_task, model, encoding):
    """A layer between residual connections that adds nothing can be left out."""
    options = dict(position_encoding=encoding, encoder_normalize_before=True, encoder_layers=3)
    if encoding == "t5":
        options["position_sharing"] = "none"
    if model == "posenc_bert":
        options["position_segments"] = "per_head"
    whole = build(model, **options).eval()
    for key, weights in whole.encoder.named_parameters():
        if "embed_positions" in key or ".segments." in key:
            weights += torch.randn_like(weights)
        if "layers.1." in key and ("out_proj" in key or "fc2" in key):
            weights.zero_()
    pruned = build(model, **options, encoder_layers_to_keep="0,2").eval()
    pruned.load_state_dict(whole.state_dict(), model_cfg=pruned.options)
    source = torch.randint(4, 40, (3, 9))
    key = "encoder_out" if model == "posenc_transformer" else 0
    expected, found = (one.encoder(source)[key] for one in (whole, pruned))
    assert torch.allclose(found[0], expected[0], atol=1e-5)


def test_the_advice_for_a_table_of_another_length_names_its_option(build):
    for limit in ("max_source_positions", "max_target_positions", "max_positions"):
        model = "posenc_bert" if limit == "max_positions" else "posenc_transformer"
        state, other = (
            build(model, position_encoding="learned", **{limit: size}) for size in (32, 20)
        )
        with pytest.raises(UsageError, match=f"give the .*--{limit.replace('_', '-')} and"):
            other.load_state_dict(state.state_dict())


@torch.no_grad()
def test_checkpoints_before_fairseq_0_9_load(build_model):
    """They have one projection of queries, keys and values, with three times the rows."""
    stock, model = build_model(None, seed=1), build_model("sinusoidal", seed=2)
    old = stock.state_dict()
    for key in [key for key in old if ".q_proj." in key]:
        names = [key.replace(".q_proj.", f".{projection}_proj.") for projection in "qkv"]
        joined = key.replace(".q_proj.", ".in_proj_")
        old[joined] = torch.cat([old.pop(name) for name in names])
    model.load_state_dict(old)
    source, target = torch.randint(4, 40, (2, 7)), torch.randint(4, 40, (2, 5))
    lengths = torch.tensor([7, 7])
    expected, found = (one(source, lengths, target)[0] for one in (stock, model))
    assert torch.allclose(found, expected, atol=1e-5)
