"""What is timed: models that share one set of weights, and the steps they take."""

import pytest
import torch

from recipes.benchmark.attention import NAIVE_SHAW, attention
from recipes.benchmark.settings import STOCK, Setting
from recipes.benchmark.steps import (
    bert_inference,
    build_all,
    build_bert,
    build_transformer,
    decoder,
    encoder,
)

SETTING = Setting("tiny", ["sinusoidal", "learned", "shaw", "rel_scalar"], 8, batch=2)


def distinct(models):
    return {id(parameter) for model in models for parameter in model.parameters()}


@pytest.mark.parametrize("build", [build_transformer, build_bert])
def test_one_set_of_weights_and_positions_of_ones_own(build):
    shared = build_all(SETTING, build)
    own = {name: build(name, SETTING) for name in (STOCK, *SETTING.contestants)}
    union = {(name, p.shape) for model in own.values() for name, p in model.named_parameters()}
    assert len(distinct(shared.values())) == len(union)
    for name in own:
        expected, found = own[name].state_dict(), shared[name].state_dict()
        assert {k: x.shape for k, x in expected.items()} == {k: x.shape for k, x in found.items()}


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


@pytest.mark.parametrize("prepare", [encoder, decoder, bert_inference])
def test_parts_of_models_leave_no_gradients_behind(prepare):
    for step in prepare(SETTING).values():
        step()
