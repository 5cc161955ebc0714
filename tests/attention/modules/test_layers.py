"""Layers keep fairseq's options and weights, and get the position terms that are theirs."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy_with_alignment import (
    LabelSmoothedCrossEntropyCriterionWithAlignment,
)

from fairseq_posenc.attention.layers import layers_after_layerdrop
from fairseq_posenc.errors import UsageError

EOS = 2
SOURCE = torch.tensor([[1, 1, 5, 6, 7, EOS], [8, 9, 10, 11, 12, EOS]])
TARGET = torch.tensor([[EOS, 20, 21, 22, 23], [EOS, 24, 25, 1, 1]])
CHOICES = {
    "default": {},
    "pre-norm": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "shared": {"share_all_embeddings": True},
    "gelu": {"activation_fn": "gelu", "activation_dropout": 0.1, "layernorm_embedding": True},
    "NormFormer": {
        name: True for name in ("scale_heads", "scale_attn", "scale_fc", "scale_resids")
    },
    "widths": {"decoder_embed_dim": 32, "decoder_input_dim": 64, "decoder_output_dim": 64},
    "one attention": {"cross_self_attention": True, "no_cross_attention": True},
    "both attentions": {"cross_self_attention": True},
    "language model": {"no_cross_attention": True},
}


def pair(build_model, options):
    """A stock model with random weights, and ours with the same, which go back as well."""
    stock, ours = build_model(None, 1, **options), build_model("sinusoidal", 2, **options)
    generator = torch.Generator().manual_seed(4)
    for name, parameter in stock.named_parameters():
        if name.endswith(("c_attn", "w_resid")):
            parameter.data.normal_(generator=generator)
    ours.load_state_dict(stock.state_dict())
    stock.load_state_dict(ours.state_dict())
    return stock, ours


@pytest.mark.parametrize("options", CHOICES.values(), ids=CHOICES)
def test_fairseqs_options_mean_the_same(build_model, options):
    stock, ours = pair(build_model, options)
    expected, found = (model(SOURCE, None, TARGET)[0] for model in (stock, ours))
    assert (expected - found)[TARGET.ne(1)].abs().max() < 1e-5
    states = [{}, {}]
    for step in range(1, 5):
        expected, found = (
            model.decoder(
                TARGET[:1, :step], model.encoder(SOURCE[:1, 2:]), incremental_state=state
            )[0]
            for model, state in zip((stock, ours), states)
        )
        assert (expected - found).abs().max() < 1e-5


def test_weights_and_dropout_are_drawn_as_in_fairseq(build_model):
    losses, options = [], {"dropout": 0.3, "activation_dropout": 0.1, "encoder_layerdrop": 0.5}
    models = [build_model(name, 7, **options).train() for name in (None, "sinusoidal")]
    for model in models:
        torch.manual_seed(8)
        outputs = [model(SOURCE, None, TARGET)[0][0] for _ in range(3)]
        losses.append(torch.stack(outputs).square().mean())
    weights = models[1].state_dict()
    assert all(
        torch.equal(w, weights[n]) for n, w in models[0].state_dict().items() if n in weights
    )
    assert abs(losses[0] - losses[1]) < 1e-6


@pytest.mark.parametrize("choice", ["default", "one attention", "both attentions"])
@torch.no_grad()
def test_padding_of_the_source_alone_changes_nothing(build_model, choice):
    model = build_model("sinusoidal", **CHOICES[choice]).eval()
    padded = model(SOURCE, None, TARGET[:, :3])[0][:1]
    alone = model(SOURCE[:1, 2:], None, TARGET[:1, :3])[0]
    assert (padded - alone).abs().max() < 1e-5


def test_the_weights_of_attention_are_those_of_fairseq(build_model):
    stock, ours = pair(build_model, {})
    state, other = {}, {}
    for step in range(1, 4):
        expected = stock.decoder(TARGET[:, :step], stock.encoder(SOURCE), incremental_state=state)
        found = ours.decoder(TARGET[:, :step], ours.encoder(SOURCE), incremental_state=other)
        assert (expected[1]["attn"][0] - found[1]["attn"][0]).abs().max() < 1e-6
        whole = ours(SOURCE, None, TARGET)[1]["attn"][0][:, step - 1 : step]
        assert (whole - found[1]["attn"][0]).abs().max() < 1e-6
    heads = ours(SOURCE, None, TARGET, alignment_heads=1, alignment_layer=0)[1]["attn"][0]
    assert heads.shape == whole.expand(2, 5, 6).shape
    assert (heads.sum(dim=-1) - 1).abs().max() < 1e-5


def test_in_training_weights_of_attention_are_there_if_asked_for(build_model):
    model = build_model("sinusoidal").train()
    assert model(SOURCE, None, TARGET)[1]["attn"] == [None]
    assert model(SOURCE, None, TARGET, alignment_layer=1)[1]["attn"][0].shape == (2, 5, 6)


def test_alignments_are_trained_as_fairseq_does(build_model):
    """``--load-alignments`` with the criterion label_smoothed_cross_entropy_with_alignment."""
    criterion = LabelSmoothedCrossEntropyCriterionWithAlignment(
        SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: 1)), False, 0.1, 0.5
    )
    sample = {
        "net_input": {"src_tokens": SOURCE, "src_lengths": None, "prev_output_tokens": TARGET},
        "target": TARGET,
        "ntokens": 10,
        # pairs of places in the flattened source and target
        "alignments": torch.tensor([[3, 0], [4, 2], [2, 6]]),
        "align_weights": torch.tensor([1.0, 0.5, 1.0]),
    }
    found = []
    for model in pair(build_model, {"load_alignments": True}):
        loss, _, log = criterion(model.train(), sample)
        loss.backward()
        gradient = model.decoder.layers[-1].encoder_attn.k_proj.weight.grad
        found.append((loss.item(), log["alignment_loss"], gradient.norm().item()))
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0][1] > 1


def test_layers_that_are_left_out_keep_their_place(build_model):
    layers = build_model("none", encoder_layers=9, encoder_layerdrop=0.5).encoder.train().layers
    torch.manual_seed(1)
    kept = list(layers)
    torch.manual_seed(1)
    found = layers_after_layerdrop(layers)
    assert [layer for layer in found if layer is not None] == kept
    assert all(layer in (None, layers[place]) for place, layer in enumerate(found))
    assert len(found) == 9 and 0 < len(kept) < 9
    assert layers_after_layerdrop(layers.eval()) == list(layers)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_each_layer_gets_its_own_terms(build_model, side):
    """Under LayerDrop, too, where the third layer may be the first that is not left out."""
    model = build_model("shaw", **{f"{side}_layers": 6, f"{side}_layerdrop": 0.5}).train()
    stack, seen = getattr(model, side), []
    for place, layer in enumerate(stack.layers.eval()):
        layer.register_forward_pre_hook(
            lambda module, inputs, terms, place=place: seen.append((place, terms)),
            with_kwargs=True,
        )
    stack.layers.train()
    for _ in range(4):
        model(SOURCE, None, TARGET)
    assert 4 < len(seen) < 24
    for place, terms in seen:
        assert torch.equal(terms["relative_keys"], stack.embed_positions.keys[place])
        assert torch.equal(terms["relative_values"], stack.embed_positions.values[place])


def test_positions_after_a_layer_stay_when_the_layer_is_left_out(build_model):
    model = build_model("conditional", encoder_layerdrop=1.0).train()
    model(SOURCE, None, TARGET)[0].sum().backward()
    assert model.encoder.layers[0].fc1.weight.grad is None
    assert model.encoder.embed_positions.conv.weight.grad.abs().max() > 0


def test_terms_are_refused_where_self_attention_sees_the_source(build_model):
    model = build_model("t5", cross_self_attention=True, no_cross_attention=True)
    with pytest.raises(UsageError, match="--cross-self-attention"):
        model(SOURCE, None, TARGET)


def test_the_second_copy_of_weights_of_fairseq_0_12_2_is_dropped(build_model):
    model = build_model("sinusoidal")
    state = model.state_dict()
    assert not any("in_proj" in name or "fc1_" in name for name in state)
    old = {
        **state,
        "encoder.layers.0.in_proj_weight": torch.zeros(192, 64),
        "encoder.layers.1.fc2_bias": torch.zeros(64),
    }
    build_model("sinusoidal", 2).load_state_dict(old)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_another_kind_of_attention_is_refused(build_model, side):
    with pytest.raises(UsageError, match="xFormers"):
        build_model("none", **{f"{side}_xformers_att_config": "{'name': 'linformer'}"})
