"""What is timed: models with weights of their own or shared, and the steps they take."""

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.tools.benchmark import steps
from fairseq_posenc.tools.benchmark.attention import NAIVE_SHAW, attention
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.benchmark.steps import build_all, build_bert, build_transformer

OWN = Setting("tiny", ["sinusoidal", "learned", "shaw", "rel_scalar"], 8, batch=2)
SHARED = replace(OWN, shared=True)


def distinct(models):
    return {id(parameter) for model in models for parameter in model.parameters()}


@pytest.mark.parametrize("build", [build_transformer, build_bert])
def test_one_set_of_weights_and_positions_of_ones_own(build):
    own, shared = (build_all(setting, build) for setting in (OWN, SHARED))
    names = {name: dict(model.named_parameters()) for name, model in own.items()}
    union = {(name, p.shape) for model in names.values() for name, p in model.items()}
    assert len(distinct(shared.values())) == len(union)
    assert len(distinct(own.values())) == sum(map(len, names.values()))
    for name in own:
        expected, found = own[name].state_dict(), shared[name].state_dict()
        assert {k: x.shape for k, x in expected.items()} == {k: x.shape for k, x in found.items()}


def test_steps_train_the_same_weights_with_one_state_and_leave_no_gradients():
    models = build_all(SHARED, build_transformer)
    loss = lambda model: sum(p.square().sum() for p in model.parameters())  # noqa: E731
    weight = models["stock"].encoder.layers[0].fc1.weight
    before = weight.detach().clone()
    for step in steps.training_steps(SHARED, models, loss).values():
        step()
        assert not torch.equal(weight, before)
        before = weight.detach().clone()
        assert all(p.grad is None for model in models.values() for p in model.parameters())


@pytest.mark.parametrize("part, layers", [("layer", 1), ("encoder", 3), ("decoder", 3)])
def test_passes_go_through_the_layers_that_they_name(monkeypatch, part, layers):
    seen = []
    record = lambda module, forward: seen.append((module, forward()))  # noqa: E731
    monkeypatch.setattr(steps, "_forward_and_backward", record)
    getattr(steps, part)(Setting("small", ["shaw"], 8, batch=2, shared=True))
    assert len(seen) == 2
    for module, output in seen:
        assert len(module.layers) == layers and 256 in output.shape
        output.sum().backward()
        assert all(layer.fc1.weight.grad is not None for layer in module.layers)


def test_shaw_by_pairs_computes_the_same_as_ours(monkeypatch):
    """Both ways of the comparison do the same work: same outputs, same gradients."""
    seen = []
    monkeypatch.setattr(torch.autograd, "backward", lambda outputs, _: seen.append(outputs))
    torch.manual_seed(0)
    prepared = attention(Setting("tiny", ["shaw", NAIVE_SHAW], 40, batch=4))
    for name in ("shaw", NAIVE_SHAW):
        prepared[name]()
    real = slice(0, 30)
    for ours, pairs in zip(*seen):
        torch.testing.assert_close(ours[real], pairs[real], rtol=1e-4, atol=1e-5)
