"""Rotary positions of longer sequences: the speeds are those of transformers' functions."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build

# width of a head, scale, original length
SIZES = [(64, 4.0, 512), (32, 2.0, 256), (128, 8.0, 4096), (8, 16.0, 30)]


def rotation(method, width, scale, trained, length, decoder=False, longest=1024):
    stack = StackConfig(width, decoder, max_length=longest)
    options = {"scale": scale, "scale_method": method, "original_length": trained}
    terms = build("rotary", stack, **options)(Positions.of_length(length))
    return terms.attention[0].rotation[:, :, 0]  # (2, length, width / 2)


def theirs(method, width, scale, trained, length):
    """The speeds of transformers' function, and the factor of cosines and sines."""
    utilities = pytest.importorskip("transformers.modeling_rope_utils")
    from transformers import LlamaConfig

    rope = {
        "rope_type": method,
        "rope_theta": 10_000.0,
        "factor": scale,
        "original_max_position_embeddings": trained,
    }
    config = LlamaConfig(
        hidden_size=width,
        num_attention_heads=1,
        max_position_embeddings=trained,
        rope_parameters=rope,
    )
    return utilities.ROPE_INIT_FUNCTIONS[method](config, "cpu", seq_len=length)


@pytest.mark.parametrize("width, scale, trained", SIZES)
@pytest.mark.parametrize("method", ["yarn", "dynamic"])
def test_angles_are_those_of_transformers(method, width, scale, trained):
    length = int(1.5 * trained)
    speeds, factor = theirs(method, width, scale, trained, length)
    angles = torch.arange(length).double().unsqueeze(1) * speeds.double()
    expected = factor * torch.stack([angles.cos(), angles.sin()])
    found = rotation(method, width, scale, trained, length).double()
    # float32 angles of thousands of positions
    assert float((found - expected).abs().max()) <= 2e-7 * length


def test_dynamic_turns_what_is_not_longer_as_before(batch, place):
    """In one batch with a longer sequence, too."""
    stack, options = StackConfig(8), {"scale_method": "dynamic", "original_length": 6}
    found = build("rotary", stack, scale=2.0, **options)(place(batch([6, 9])))
    before = build("rotary", stack)(place(batch([9]))).attention[0].rotation
    both = found.attention[0].rotation
    assert torch.equal(both[:, :, :1], before) and not torch.equal(both[:, :, 1:], before)


def test_dynamic_in_a_decoder_takes_the_longest_target_for_its_length():
    short = rotation("dynamic", 8, 2.0, 6, length=3, decoder=True, longest=20)
    assert torch.equal(short, rotation("dynamic", 8, 2.0, 6, 20, decoder=True, longest=20)[:, :3])
    torch.testing.assert_close(short, rotation("dynamic", 8, 2.0, 6, length=20)[:, :3])
