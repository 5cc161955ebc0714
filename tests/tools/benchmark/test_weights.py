"""Contestants that share weights compute what they would with weights of their own."""

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.tools.benchmark import bert, models
from fairseq_posenc.tools.benchmark.setting import Setting
from fairseq_posenc.tools.benchmark.weights import built, training_steps

OWN = Setting("tiny", ["sinusoidal", "learned", "shaw", "rel_scalar"], 8, tokens=16)
SHARED = replace(OWN, shared=True)


def distinct(models):
    return {id(parameter) for model in models for parameter in model.parameters()}


@pytest.mark.parametrize("build", [models.build_model, bert.build_bert])
def test_one_set_of_weights_and_positions_of_ones_own(build):
    own, shared = (built(s, lambda name, s=s: build(name, s)) for s in (OWN, SHARED))
    names = {name: dict(model.named_parameters()) for name, model in own.items()}
    union = {(name, p.shape) for model in names.values() for name, p in model.items()}
    assert len(distinct(shared.values())) == len(union)
    assert len(distinct(own.values())) == sum(map(len, names.values()))


@pytest.mark.parametrize("build", [models.build_model, bert.build_bert])
def test_the_models_have_the_parameters_that_they_would_have(build):
    own, shared = (built(s, lambda name, s=s: build(name, s)) for s in (OWN, SHARED))
    for name in own:
        expected, found = own[name].state_dict(), shared[name].state_dict()
        assert expected.keys() == found.keys()
        assert all(expected[key].shape == found[key].shape for key in expected)


def test_steps_train_the_same_weights_with_one_state_and_leave_no_gradients():
    models_ = built(SHARED, lambda name: models.build_model(name, SHARED))
    loss = lambda model: sum(p.square().sum() for p in model.parameters())  # noqa: E731
    steps = training_steps(SHARED, models_, loss)
    first = next(iter(models_.values()))
    weight = first.encoder.layers[0].fc1.weight
    before = weight.detach().clone()
    for step in steps.values():
        step()
        assert not torch.equal(weight, before)
        before = weight.detach().clone()
        assert all(p.grad is None for model in models_.values() for p in model.parameters())


@pytest.mark.parametrize("part, layers", [("layer", 1), ("encoder", 3), ("decoder", 3)])
def test_passes_go_through_the_layers_that_they_name(monkeypatch, part, layers):
    seen = []
    monkeypatch.setattr(models, "_passes", lambda module, forward: seen.append((module, forward())))
    setting = Setting("small", ["shaw"], 8, tokens=16, shared=True)
    getattr(models, f"prepare_{part}")(setting)
    assert len(seen) == 2
    for module, output in seen:
        assert len(module.layers) == layers and 256 in output.shape
        output.sum().backward()
        assert all(layer.fc1.weight.grad is not None for layer in module.layers)
