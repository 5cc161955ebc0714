"""T5's buckets against its rule written with logarithms, ALiBi's slopes against known ones."""

import math

import pytest
import torch

from fairseq_posenc.encodings import Positions, Stack, build

# First distance of every logarithmic bucket of T5's encoder: 8 · 16^(m / 8), rounded up.
STARTS = [8, 12, 16, 23, 32, 46, 64, 91]

both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
# Powers of two divide logarithms exactly; other sizes avoid ties by their choice.
sizes = pytest.mark.parametrize("buckets, longest", [(32, 128), (4, 5), (8, 20), (64, 1000)])


def by_logarithm(distance, buckets, longest, decoder):
    """Raffel et al. 2020: query minus key index to a bucket; the future has the second half."""
    first = 0
    if not decoder:
        buckets //= 2
        first = buckets if distance < 0 else 0
        distance = abs(distance)
    distance, exact = max(distance, 0), buckets // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(longest / exact)
    return first + min(exact + int(share * (buckets - exact)), buckets - 1)


def of_terms(name, decoder, buckets, longest, length=301):
    """Buckets of all distances from 1 - length to length - 1, by giving each its own scalar."""
    stack = Stack(8, decoder, layers=1, heads=1, max_length=length)
    encoding = build(name, stack, num_buckets=buckets, max_distance=longest)
    for parameter in encoding.parameters():
        parameter.data.zero_()
    encoding.scalars.data += torch.arange(buckets).float()
    bias = encoding(Positions.of_tokens(torch.full((1, length), 7), 1)).attention[0].bias[0]
    future, past = bias[0].detach(), bias[:, 0].detach()
    return [float(b) for b in torch.cat([future.flip(0)[:-1], past])]


@both_sides
@sizes
@pytest.mark.parametrize("name", ["t5", "tupe"])
def test_buckets_follow_the_rule(name, decoder, buckets, longest):
    found = of_terms(name, decoder, buckets, longest)
    first = 0 if decoder else -300
    for distance in range(first, 301):
        assert found[300 + distance] == by_logarithm(distance, buckets, longest, decoder), distance


@both_sides
@sizes
def test_the_references_use_the_same_buckets(decoder, buckets, longest, t5_bucket):
    for distance in range(-300, 301):
        expected = by_logarithm(distance, buckets, longest, decoder)
        assert t5_bucket(distance, buckets, longest, decoder) == expected, distance


def test_buckets_of_the_encoder_begin_where_t5_lets_them():
    found = of_terms("t5", False, 32, 128)[300:]
    assert found[:8] == list(range(8))
    assert [found.index(bucket) for bucket in range(8, 16)] == STARTS


@both_sides
def test_buckets_beyond_the_largest_distance_are_the_last(decoder):
    found = of_terms("t5", decoder, 32, 128)
    last = 31 if decoder else 15
    assert set(found[300 + 128 :]) == {last}
    if not decoder:
        assert set(found[: 301 - 128]) == {31}


def slopes(heads, decoder=False, length=5):
    encoding = build("alibi", Stack(heads * 4, decoder, layers=2, heads=heads))
    terms = encoding(Positions.of_tokens(torch.full((1, length), 7), 1)).attention
    assert torch.equal(terms[0].bias, terms[1].bias)
    return -terms[1].bias[:, 1, 0], terms[1].bias


@both_sides
def test_slopes_of_8_heads_are_those_of_the_paper(decoder):
    found, _ = slopes(8, decoder)
    expected = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert found.tolist() == expected


@both_sides
def test_slopes_of_12_heads_follow_those_of_8_with_every_other_one_of_16(decoder):
    found, _ = slopes(12, decoder)
    expected = [2.0**-h for h in range(1, 9)] + [2.0**-h for h in (0.5, 1.5, 2.5, 3.5)]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "heads, expected",
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (16, [2 ** (-h / 2) for h in range(1, 17)]),
    ],
)
def test_slopes_of_other_numbers_of_heads(heads, expected):
    found, _ = slopes(heads)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=0)


@both_sides
def test_alibi_falls_with_the_distance_on_both_sides(decoder):
    found, bias = slopes(8, decoder, length=9)
    for i in range(9):
        for j in range(i + 1 if decoder else 9):
            torch.testing.assert_close(bias[:, i, j], -found * abs(i - j))
