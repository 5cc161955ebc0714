"""What is timed: models that share one set of weights, and the steps they take."""

import itertools

import pytest
import torch

from fairseq_posenc.compat import drop_copies
from recipes.benchmark import steps
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
from recipes.benchmark.updates import batches, build_trainer

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


@pytest.mark.parametrize(
    "prepare, part", [(encoder, "encoder"), (decoder, "decoder"), (bert_inference, "")]
)
def test_steps_of_parts_take_their_passes_and_leave_no_gradients(monkeypatch, prepare, part):
    """Of an encoder and a decoder both passes, of BERT's inference the forward pass alone."""
    models, passed, backward = {}, [], []
    monkeypatch.setattr(steps, "build_all", lambda *args: models.update(build_all(*args)) or models)
    monkeypatch.setattr(torch.Tensor, "backward", _recording(torch.Tensor.backward, backward))
    for name, step in prepare(SETTING).items():
        backward.clear()
        passed.clear()
        module = getattr(models[name], part) if part else models[name]
        hook = module.register_forward_hook(lambda *_: passed.append(torch.is_grad_enabled()))
        step()
        hook.remove()
        assert passed == [bool(part)] and len(backward) == bool(part)
        assert all(parameter.grad is None for parameter in module.parameters())


def _recording(backward, calls):
    def recorded(tensor, *args, **options):
        backward(tensor, *args, **options)
        calls.append(tensor)

    return recorded


def test_updates_are_those_of_fairseq_train_with_the_same_batches_of_many_shapes():
    setting = Setting("tiny", ["sinusoidal"], 8, batch=4)
    samples = itertools.islice(batches(setting), 40)
    shapes = [(s["net_input"]["src_tokens"].shape, s["target"].shape) for s in samples]
    assert len(set(shapes)) > 20
    assert all(source[0] == target[0] for source, target in shapes)
    assert all(max(source.numel(), target.numel()) <= 32 for source, target in shapes)
    trainers = [build_trainer(name, setting) for name in (STOCK, "sinusoidal")]
    first, second = (trainer.model for trainer in trainers)
    second.load_state_dict(first.state_dict(), strict=False)
    for trainer in trainers:
        for sample in itertools.islice(batches(setting), 5):
            assert trainer.train_step([sample])
        assert trainer.get_num_updates() == 5
    # equal batches, and two Adams that differ in rounding alone; biases of keys have no gradient
    weights = {name: w for name, w in first.named_parameters() if "k_proj.bias" not in name}
    drop_copies(weights)
    for name, weight in weights.items():
        torch.testing.assert_close(second.state_dict()[name], weight, rtol=1e-4, atol=1e-6)
