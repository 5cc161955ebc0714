"""Decoding step by step: the terms of a step are the last row of the whole sequence's."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, options

FEW = {"num_buckets": 8, "max_distance": 5}
CASES = [
    ("shaw", {"max_distance": 2}),
    ("shaw", {"max_distance": 2, "shared_tables": True}),
    ("transformer_xl", {}),
    ("t5", FEW),
    ("t5", {}),
    ("tupe", FEW),
    ("abs_scalar", {}),
    ("abs_scalar", {"rank": 3, "sharing": "heads"}),
    ("rel_scalar", {}),
    ("rel_scalar", {"sharing": "layers"}),
    ("rotary", {}),
    ("alibi", {}),
]
every_case = pytest.mark.parametrize("name, chosen", CASES)
LENGTH = 9
TOKENS = torch.arange(5, 5 + 2 * LENGTH).view(2, LENGTH)


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def at_step(whole, n):
    """Of a whole sequence's tensors, what the query of token ``n`` (from 1) needs."""
    length = LENGTH
    parts = {
        "bias": lambda t: t[:, n - 1 : n, :n],
        "distances": lambda t: t[length - n : length],
        "rotation": lambda t: t[:, n - 1 : n],
    }
    return {what: parts.get(what, lambda t: t)(t) for what, t in whole.items()}


@every_case
@pytest.mark.parametrize("max_length", [4, LENGTH])
@pytest.mark.parametrize("one_cache", [False, True])
def test_terms_of_a_step_are_the_last_row(name, chosen, max_length, one_cache, random_encoding):
    encoding = random_encoding(name, chosen, decoder=True, max_length=max_length)
    whole, cache = encoding(Positions.of_tokens(TOKENS, 1)).attention, {}
    for n in range(1, LENGTH + 1):
        cache = cache if one_cache else {}
        step = encoding(Positions.of_tokens(TOKENS[:, :n], 1, cache=cache)).attention
        assert step.keys() == whole.keys()
        for layer, terms in step.items():
            tensors = {k: t for k, t in vars(whole[layer]).items() if torch.is_tensor(t)}
            assert terms.scale == whole[layer].scale
            assert {k for k, t in vars(terms).items() if torch.is_tensor(t)} == set(tensors)
            for what, expected in at_step(tensors, n).items():
                same(getattr(terms, what), expected)


@every_case
def test_outputs_of_steps_are_those_of_the_formula(
    name, chosen, random_encoding, reference, encoded, inputs, plain_layer, rotate
):
    """A step gets its own query and value, and the keys that earlier steps rotated."""
    encoding = random_encoding(name, chosen, decoder=True)
    x = inputs(TOKENS, True).to(torch.float64)
    expected = reference(name, encoded(encoding, {**options(name), **chosen}), x)
    encoding.double()
    cache, keys = {}, []
    for n in range(1, LENGTH + 1):
        terms = encoding(Positions.of_tokens(TOKENS[:, :n], 1, cache=cache)).attention[0]
        keys.append(rotate(x.keys[:, :, n - 1 : n], terms.rotation))
        prefix = inputs(TOKENS[:, :n], True).to(torch.float64)
        prefix.queries, prefix.values = x.queries[:, :, :n], x.values[:, :, :n]
        prefix.keys, prefix.key_weight = torch.cat(keys, dim=2), x.key_weight
        found = plain_layer(terms, prefix, newest=True)
        torch.testing.assert_close(found, expected[:, :, n - 1 : n], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["t5", "tupe", "abs_scalar", "rel_scalar", "alibi", "rotary"])
def test_a_step_makes_nothing_of_the_size_of_length_squared(name, random_encoding):
    """Seen by memory: a step after 4000 tokens fits where a square of 4000 would not."""
    encoding = random_encoding(name, decoder=True, max_length=4000).requires_grad_(False)
    positions = Positions.of_tokens(torch.full((1, 4000), 7), 1, cache={})
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if torch.is_tensor(result):
                largest = max(largest, result.numel())
            return result

    with Watch():
        encoding(positions)
    assert largest <= 20 * 4000 * encoding.stack.channels


def test_a_step_of_transformer_xl_and_shaw_is_no_larger(random_encoding):
    for name in ("transformer_xl", "shaw"):
        encoding = random_encoding(name, decoder=True)
        step = encoding(Positions.of_tokens(torch.full((1, 400), 7), 1, cache={})).attention[0]
        tensors = [t for t in vars(step).values() if torch.is_tensor(t)]
        assert max(t.numel() for t in tensors) <= 400 * 8
