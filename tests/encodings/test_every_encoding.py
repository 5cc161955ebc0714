"""What every encoding promises, on both sides of the model; a new one is tested by its name."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build, names

CHANNELS = 8
LONGEST = 12
# with as many positions as the longest sequence there would be little to draw
OPTIONS = {"unifpe": {"drawn_below": 200}}

ATTENTION = [
    name
    for name in names()
    if build(name, StackConfig(CHANNELS))(Positions(torch.zeros(1, 1))).attention
]

both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
pytestmark = pytest.mark.parametrize("name", names())


def make(name, decoder, seed=0):
    """An encoding with random parameters, in evaluation mode."""
    stack = StackConfig(CHANNELS, decoder, max_length=LONGEST, layers=2, heads=2)
    encoding = build(name, stack, **OPTIONS.get(name, {})).eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in encoding.parameters():
        parameter.data.normal_(generator=generator)
    return encoding


def some_hidden(sequences, length):
    generator = torch.Generator().manual_seed(9)
    return torch.randn(sequences, length, CHANNELS, generator=generator)


@both_sides
def test_terms_have_the_shapes_that_the_stack_expects(name, decoder, batch, place):
    terms = make(name, decoder)(place(batch([5, 3])))
    if terms.input is not None:
        assert terms.input.shape == (2, 5, CHANNELS)
        assert terms.input.dtype == torch.float32
    for layer in terms.after_layer.values():
        assert layer(some_hidden(5, 2)).shape == (5, 2, CHANNELS)
    assert sorted(terms.attention) in ([], [0, 1])


@both_sides
def test_all_tensors_are_made_on_the_device_of_the_tokens(name, decoder, batch, place):
    """Tensors of `meta` do not mix with those of another device, as those of a GPU do not."""
    encoding = make(name, decoder).to("meta")
    for lengths in ([5, 3], [1, 1]):
        terms = encoding(place(batch(lengths).to("meta"), padded=True))
        hidden = torch.empty(lengths[0], 2, CHANNELS, device="meta")
        tensors = [terms.input, *(layer(hidden) for layer in terms.after_layer.values())]
        for layer in terms.attention.values():
            tensors += vars(layer).values()
        assert {tensor.device.type for tensor in tensors if torch.is_tensor(tensor)} <= {"meta"}


@both_sides
def test_evaluation_draws_nothing(name, decoder, batch, place, effect):
    encoding, positions = make(name, decoder), place(batch([6, 3]))
    before = torch.get_rng_state()
    first = effect(encoding, positions, some_hidden(2, 6))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, effect(encoding, positions, some_hidden(2, 6)))


@both_sides
def test_one_seed_means_one_outcome_in_training(name, decoder, batch, place, effect):
    positions, outcomes = place(batch([6, 3], left=True)), []
    for _ in range(2):
        encoding = make(name, decoder).train()
        torch.manual_seed(11)
        outcomes.append([effect(encoding, positions, some_hidden(2, 6)) for _ in range(3)])
    assert all(torch.equal(one, other) for one, other in zip(*outcomes))


@both_sides
def test_what_is_random_differs_between_workers(name, decoder, batch, place, effect, on_rank):
    encoding, positions = make(name, decoder).train(), place(batch([6, 3]))

    def outcome(seed, rank):
        on_rank(rank)
        torch.manual_seed(seed)
        return effect(encoding, positions, some_hidden(2, 6))

    first = outcome(seed=11, rank=0)
    random = not torch.equal(first, outcome(seed=12, rank=0))
    for rank in range(1, 8):
        assert torch.equal(first, outcome(seed=11, rank=rank)) != random


@both_sides
def test_every_parameter_gets_a_gradient(name, decoder, batch, place, effect):
    """A parameter without one stops data-parallel training."""
    for lengths in ([5, 2], [1]):
        encoding = make(name, decoder).train()
        hidden = some_hidden(len(lengths), lengths[0])
        loss = effect(encoding, place(batch(lengths)), hidden).square().sum()
        if loss.requires_grad:
            loss.backward()
        # softmax ignores what it adds to all keys alike; with one key, that is all there is
        ignored = ["key.bias"] if name == "tupe" else []
        alone = max(lengths) == 1 and name in ATTENTION
        for parameter_name, parameter in encoding.named_parameters():
            assert parameter.grad is not None
            assert alone or parameter_name in ignored or bool(parameter.grad.any())


@both_sides
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["half", "bfloat16"])
def test_low_precision_costs_no_more_than_its_rounding(name, decoder, dtype, batch, place, effect):
    """Positions up to 600: more than bfloat16 can count, and phases that it cannot tell apart."""
    length, positions = 600, place(batch([600, 9]))
    low = build(name, StackConfig(CHANNELS, decoder, max_length=length)).eval().to(dtype)
    single = build(name, StackConfig(CHANNELS, decoder, max_length=length)).eval()
    single.load_state_dict({k: v.float() for k, v in low.state_dict().items()})
    hidden = some_hidden(2, length).to(dtype)
    found, expected = low(positions), single(positions)
    unit = torch.finfo(dtype).eps / 2
    if expected.input is not None:
        error = (found.input.to(dtype).float() - expected.input).abs()
        assert bool((error <= unit * expected.input.abs() + 1e-7).all())
    for layer in expected.after_layer:
        rounded = found.after_layer[layer](hidden.transpose(0, 1))
        assert rounded.dtype == dtype
        exact = expected.after_layer[layer](hidden.transpose(0, 1).float())
        assert bool(((rounded.float() - exact).abs() <= 10 * unit * exact.abs().max()).all())
    for layer, terms in expected.attention.items():
        for what, exact in vars(terms).items():
            if torch.is_tensor(exact):
                error = (getattr(found.attention[layer], what).to(dtype).float() - exact).abs()
                assert bool((error <= 4 * unit * exact.abs().max() + 1e-7).all()), what
