"""All positions plus a constant: nothing changes for relative encodings, all else does."""

import pytest
import torch

from fairseq_posenc.encodings import Positions

RELATIVE = ["shaw", "transformer_xl", "t5", "rel_scalar", "rotary", "alibi"]
ABSOLUTE = ["tupe", "abs_scalar"]
RIGHT = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [11, 12, 13, 14, 1, 1, 1]])

both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])


@pytest.fixture(scope="session")
def outputs(random_encoding, inputs, plain_layer):
    """Function to the outputs of both layers at real tokens, all numbers plus a constant."""

    def run(name, decoder, tokens, shift):
        encoding = random_encoding(name, decoder=decoder, max_length=64)
        positions = Positions.of_tokens(tokens, 1)
        positions = Positions(positions.numbers + shift, positions.padding_mask)
        terms, x = encoding(positions).attention, inputs(tokens, decoder)
        layers = [plain_layer(terms[layer], x) for layer in range(2)]
        return torch.cat([layer.transpose(1, 2)[tokens.ne(1)] for layer in layers])

    return run


@both_sides
@pytest.mark.parametrize("shift", [1, 40])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", RELATIVE)
def test_relative_encodings_are_shift_invariant(name, left, shift, decoder, outputs):
    tokens = RIGHT.flip(1) if left else RIGHT
    one, other = (outputs(name, decoder, tokens, c) for c in (0, shift))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@both_sides
@pytest.mark.parametrize("shift", [1, 40])
@pytest.mark.parametrize("name", ABSOLUTE)
def test_absolute_encodings_are_not(name, shift, decoder, outputs):
    one, other = (outputs(name, decoder, RIGHT, c) for c in (0, shift))
    assert float((one - other).detach().abs().max()) > 0.01


@both_sides
@pytest.mark.parametrize("name", RELATIVE + ABSOLUTE)
def test_the_order_of_tokens_matters(name, decoder, outputs, random_encoding, inputs, plain_layer):
    """Exchange two keys with their values: without positions the last query would not see it."""
    encoding, tokens = random_encoding(name, decoder=decoder, max_length=64), RIGHT[:1]
    terms = encoding(Positions.of_tokens(tokens, 1)).attention[0]
    x = inputs(tokens, decoder)
    before = plain_layer(terms, x)[:, :, -1]
    order = torch.tensor([0, 5, 2, 3, 4, 1, 6])
    x.keys, x.values = x.keys[:, :, order], x.values[:, :, order]
    after = plain_layer(terms, x)[:, :, -1]
    assert float((before - after).detach().abs().max()) > 1e-4
