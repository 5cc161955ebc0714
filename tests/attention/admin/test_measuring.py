"""The profiling pass against a reference that computes layer by layer and sums number by number."""

import math

import pytest
import torch

from fairseq_posenc.attention import admin
from fairseq_posenc.encodings import names
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.admin_profile import measure


def variance(x):
    """Mean of squared differences to the mean, one number after the other."""
    numbers = x.flatten().tolist()
    mean = sum(numbers) / len(numbers)
    return sum((number - mean) ** 2 for number in numbers) / len(numbers)


class Reference:
    """A stack whose sub-layers are called one by one, with the ω of the moment."""

    def __init__(self):
        self.omega, self.omegas, self.variances = 1.0, [], []

    def __call__(self, norm, x, y):
        self.omegas.append(self.omega)
        scaled = x * self.omega
        self.variances.append([variance(scaled), variance(y)])
        self.omega = math.sqrt(sum(self.variances[-1]))
        return norm(scaled + y)


def reference(model, batch):
    """The ω and variances of an encoder and a decoder without position terms in attention."""
    mask = batch["src_tokens"].eq(1)
    padding = batch["prev_output_tokens"].eq(1)
    states = []
    for name in ("src_tokens", "prev_output_tokens"):
        side = model.encoder if name == "src_tokens" else model.decoder
        side.embed_positions.register_forward_hook(lambda _, i, terms: states.append(terms.input))
    model(**batch)
    encoder, decoder = Reference(), Reference()
    embedded = model.encoder.embed_tokens(batch["src_tokens"]) * model.encoder.embed_scale
    x = (embedded + states[0].to(embedded)).masked_fill(mask.unsqueeze(-1), 0).transpose(0, 1)
    for layer in model.encoder.layers:
        y = layer.self_attn(x, AttentionTerms(), mask)[0]
        x = encoder(layer.self_attn_layer_norm, x, y)
        x = encoder(layer.final_layer_norm, x, layer.fc2(layer.fc1(x).relu()))
    encoded = x
    embedded = model.decoder.embed_tokens(batch["prev_output_tokens"]) * model.decoder.embed_scale
    x = (embedded + states[1].to(embedded)).transpose(0, 1)
    for layer in model.decoder.layers:
        y = layer.self_attn(x, AttentionTerms(), padding, True)[0]
        x = decoder(layer.self_attn_layer_norm, x, y)
        y = layer.encoder_attn(x, encoded, mask)[0]
        x = decoder(layer.encoder_attn_layer_norm, x, y)
        x = decoder(layer.final_layer_norm, x, layer.fc2(layer.fc1(x).relu()))
    return {"encoder": encoder, "decoder": decoder}


def flattened(profile, kind, side):
    return [value for layer in profile[kind][side] for value in layer.values()]


@pytest.mark.parametrize("depth", [1, 18])
@torch.no_grad()
def test_omegas_are_those_of_a_slow_reference(build_model, shape, batch, depth):
    sizes = {"encoder_layers": depth, "decoder_layers": depth, "encoder_embed_dim": 16}
    sizes.update(decoder_embed_dim=16, encoder_attention_heads=2, decoder_attention_heads=2)
    ours = build_model(
        "sinusoidal", admin_profile=admin.unit_profile(shape(**sizes)), **sizes
    ).double()
    plain = build_model("sinusoidal", **sizes).double()
    found = measure(ours, **batch)
    expected = reference(plain, batch)
    for side, sublayers in (("encoder", 2), ("decoder", 3)):
        assert len(flattened(found, "omegas", side)) == depth * sublayers
        assert flattened(found, "omegas", side) == pytest.approx(expected[side].omegas, rel=1e-12)
        for one, other in zip(flattened(found, "variances", side), expected[side].variances):
            assert one == pytest.approx(other, rel=1e-12)
        assert flattened(found, "omegas", side)[0] == 1.0
        assert found["channels"][side] == 16
    assert list(found["omegas"]["decoder"][0]) == list(admin.DECODER_RATIOS)
    assert list(found["omegas"]["encoder"][0]) == list(admin.ENCODER_RATIOS)


@pytest.mark.parametrize("encoding", names())
@pytest.mark.parametrize("checkpointed", [False, True])
def test_every_encoding_can_be_profiled(build_model, shape, batch, encoding, checkpointed):
    options = {"checkpoint_activations": checkpointed, "admin_profile": admin.unit_profile(shape())}
    model = build_model(encoding, **options)
    found = measure(model, **batch)
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(found["omegas"][side]):
            for name, omega in layer.items():
                parameter = getattr(getattr(model, side).layers[number], name)
                assert torch.equal(parameter, torch.full((64,), omega))
    parameter.data.fill_(9)
    model(**batch)
    assert torch.equal(parameter, torch.full((64,), 9.0)), "measured beyond the pass"


def test_f_is_measured_after_its_dropout(build_model, shape, batch):
    """Half of the numbers dropped and the others doubled: about twice the variance."""
    variances = []
    for dropout in (0.0, 0.5):
        torch.manual_seed(1)
        model = build_model("none", dropout=dropout, admin_profile=admin.unit_profile(shape()))
        found = measure(model, **batch)
        variances.append(found["variances"]["encoder"][1]["fc_ratio_change"][1])
    assert 1.5 < variances[1] / variances[0] < 2.7


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_layers_that_layerdrop_left_out_are_missed(build_model, shape, batch, side):
    options = {f"{side}_layerdrop": 1.0, "admin_profile": admin.unit_profile(shape())}
    with pytest.raises(UsageError, match=f"--{side}-layerdrop 0"):
        measure(build_model("none", **options), **batch)


def test_what_is_not_finite_is_said(build_model, shape, batch):
    model = build_model("none", admin_profile=admin.unit_profile(shape()))
    model.decoder.layers[1].fc2.weight.data.fill_(math.inf)
    with pytest.raises(UsageError, match="decoder's variances are not finite"):
        measure(model, **batch)
