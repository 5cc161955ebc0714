"""Models with ADMIN: their parameters, outputs, training, decoding and checkpoints."""

import pytest
import torch

from fairseq_posenc.attention import admin
from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError

each_encoding = pytest.mark.parametrize("encoding", names())


def omegas_of(model):
    return {n: p for n, p in model.named_parameters() if n.endswith("_ratio_change")}


def test_without_admin_there_are_no_new_parameters(build_model):
    stock, ours = (set(build_model(name).state_dict()) for name in (None, "sinusoidal"))
    assert not any("ratio" in key or "residual" in key for key in ours)
    assert {key for key in stock if "layers" in key} >= {key for key in ours if "layers" in key}


def test_there_is_one_vector_per_sub_layer_named_as_in_the_authors_code(build_admin, profile):
    expected = {
        f"{side}.layers.{number}.{name}": omega
        for side, layers in profile()["omegas"].items()
        for number, layer in enumerate(layers)
        for name, omega in layer.items()
    }
    found = omegas_of(build_admin())
    assert set(found) == set(expected) and len(found) == 2 * 2 + 2 * 3
    assert "decoder.layers.1.encoder_ratio_change" in found
    assert "decoder.layers.1.self_ratio_change" in found
    assert "encoder.layers.1.attention_ratio_change" in found
    for name, parameter in found.items():
        assert torch.equal(parameter, torch.full((64,), expected[name]))


@each_encoding
def test_with_ones_the_model_is_the_one_without_admin(build_model, shape, batch, encoding):
    plain = build_model(encoding, dropout=0.1).train()
    ours = build_model(encoding, dropout=0.1, admin_profile=admin.unit_profile(shape())).train()
    outputs = []
    for model in (plain, ours):
        torch.manual_seed(5)
        outputs.append(model(**batch)[0])
        outputs[-1].square().sum().backward()
    assert torch.equal(*outputs)
    pairs = zip(plain.parameters(), [p for n, p in ours.named_parameters() if "ratio" not in n])
    assert all(torch.equal(a.grad, b.grad) for a, b in pairs if a.grad is not None)


@each_encoding
@pytest.mark.parametrize("checkpointed", [False, True])
def test_every_omega_of_every_encoding_learns(build_admin, batch, encoding, checkpointed):
    model = build_admin(encoding, checkpoint_activations=checkpointed).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(
            model(**batch)[0].flatten(0, 1), batch["prev_output_tokens"].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        assert all(omega.grad.abs().min() > 0 for omega in omegas_of(model).values())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", admin.ENCODER_RATIOS + admin.DECODER_RATIOS)
def test_each_omega_multiplies_the_input_of_its_sub_layer(build_admin, batch, name):
    """Of the last layer: its output tells x · ω + f(x) apart from what else ω could do."""
    model = build_admin()
    side = "encoder" if name in admin.ENCODER_RATIOS[:1] else "decoder"
    layer = getattr(model, side).layers[1]
    omega = torch.linspace(0.5, 3, 64)
    getattr(layer, name).data.copy_(omega)
    norm = {"fc": "final", "encoder": "encoder_attn"}.get(name.split("_")[0], "self_attn")
    seen = {}
    layer.residual.register_forward_hook(
        lambda module, inputs, output: seen.update({id(inputs[2]): (inputs, output)})
    )
    normed = []
    getattr(layer, f"{norm}_layer_norm").register_forward_pre_hook(
        lambda module, inputs: normed.append(inputs[0])
    )
    model(**batch)
    (y, x, _), output = seen[id(getattr(layer, name))]
    assert torch.allclose(output, x * omega + y) and torch.equal(normed[0], output)
    assert (output - x - y).abs().max() > 0.1


def test_a_checkpoint_without_omegas_is_refused(build_admin, build_model):
    with pytest.raises(UsageError, match="ratio_change"):
        build_admin().load_state_dict(build_model("sinusoidal").state_dict())
    with pytest.raises(UsageError, match="ratio_change"):
        build_model("sinusoidal").load_state_dict(build_admin().state_dict())
