"""Options that make no sense, and sequences beyond the tables."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build
from fairseq_posenc.encodings.segments import SegmentScalars

STACK = Stack(16, max_length=4, layers=2, heads=2)
both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])


@pytest.mark.parametrize(
    "name, chosen, word",
    [
        ("shaw", {"max_distance": 0}, "distance"),
        ("shaw", {"max_distance": -3}, "distance"),
        ("t5", {"max_distance": 0}, "distance"),
        ("t5", {"num_buckets": 7}, "buckets"),
        ("t5", {"num_buckets": 2}, "buckets"),
        ("t5", {"num_buckets": 0}, "buckets"),
        ("t5", {"sharing": "everything"}, "sharing"),
        ("tupe", {"max_distance": 0}, "distance"),
        ("tupe", {"num_buckets": 7}, "buckets"),
        ("tupe", {"num_buckets": 2}, "buckets"),
        ("abs_scalar", {"rank": 0}, "rank"),
        ("abs_scalar", {"rank": -1}, "rank"),
        ("abs_scalar", {"sharing": "head"}, "sharing"),
        ("rel_scalar", {"sharing": "both"}, "sharing"),
    ],
)
def test_bad_options_are_named(name, chosen, word):
    with pytest.raises(ValueError, match=word) as caught:
        build(name, STACK, **chosen)
    assert str(*chosen.values()) in str(caught.value)
    assert len(str(caught.value)) > len(word) + 10


@both_sides
@pytest.mark.parametrize("name", ["t5", "tupe"])
def test_buckets_that_are_longer_than_the_largest_distance_are_an_error(name, decoder):
    """The logarithm would have to fall."""
    with pytest.raises(ValueError, match="distance"):
        build(name, Stack(16, decoder, heads=2), num_buckets=32, max_distance=8)


@pytest.mark.parametrize("heads", [2, 4])
def test_rotary_needs_an_even_width_of_heads(heads):
    with pytest.raises(ValueError, match="even|odd"):
        build("rotary", Stack(3 * heads, heads=heads))
    build("rotary", Stack(4 * heads, heads=heads))


def test_unknown_sharing_of_segments_is_an_error():
    with pytest.raises(ValueError, match="sharing"):
        SegmentScalars(STACK, 2, sharing="some")


def whole(encoding, length):
    return encoding(Positions.of_tokens(torch.full((1, length), 7), 1)).attention


def test_a_distance_beyond_relative_scalars_takes_the_last_of_its_side(random_encoding):
    for decoder in (False, True):
        encoding = random_encoding("rel_scalar", decoder=decoder, max_length=4)
        first, last = encoding.scalars[1, :, 0], encoding.scalars[1, :, -1]
        bias = whole(encoding, 11)[1].bias
        for i in range(11):
            for j in range(11):
                if i - j >= 3:
                    assert torch.equal(bias[:, i, j], last)
                elif i - j <= -3 and not decoder:
                    assert torch.equal(bias[:, i, j], first)


@pytest.mark.parametrize("name", ["abs_scalar", "tupe"])
def test_an_index_beyond_the_table_is_the_last_row_in_evaluation(name, random_encoding):
    encoding = random_encoding(name, max_length=4)
    if name == "tupe":
        encoding.scalars.data.zero_()
    bias, inside = whole(encoding, 9)[0].bias, whole(encoding, 4)[0].bias
    index = torch.arange(9).clamp(max=3)
    torch.testing.assert_close(bias, inside[:, index][:, :, index])


@both_sides
@pytest.mark.parametrize("name", ["abs_scalar", "tupe"])
def test_an_index_beyond_the_table_is_an_error_in_training(name, decoder, random_encoding):
    encoding = random_encoding(name, decoder=decoder, max_length=4).train()
    whole(encoding, 4)
    with pytest.raises(ValueError, match="4"):
        whole(encoding, 5)


@pytest.mark.parametrize("name", ["abs_scalar", "tupe"])
def test_padding_beyond_the_table_is_none_in_training(name, random_encoding):
    encoding = random_encoding(name, max_length=4).train()
    terms = encoding(Positions.of_tokens(torch.tensor([[5, 6, 7, 8, 1, 1]]), 1)).attention
    assert terms[0].bias.shape == (2, 6, 6)


@both_sides
@pytest.mark.parametrize("name", ["shaw", "transformer_xl", "t5", "rel_scalar", "rotary", "alibi"])
@pytest.mark.parametrize("training", [False, True])
def test_relative_encodings_go_on_beyond_what_was_trained(name, decoder, training, random_encoding):
    encoding = random_encoding(name, decoder=decoder, max_length=4).train(training)
    assert encoding.max_positions >= 32
    for layer in whole(encoding, 32).values():
        assert all(bool(t.isfinite().all()) for t in vars(layer).values() if torch.is_tensor(t))
