"""T5's buckets against its rule written with logarithms, ALiBi's slopes against known ones."""

import math

import pytest
import torch

from fairseq_posenc.encodings import Positions, StackConfig, build

# First distance of every logarithmic bucket of T5's encoder: 8 · 16^(m / 8), rounded up.
STARTS = [8, 12, 16, 23, 32, 46, 64, 91]

both_sides = pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])


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
    stack = StackConfig(8, decoder, layers=1, heads=1, max_length=length)
    encoding = build(name, stack, num_buckets=buckets, max_distance=longest)
    for parameter in encoding.parameters():
        parameter.data.zero_()
    encoding.scalars.data += torch.arange(buckets).float()
    bias = encoding(Positions.of_length(length)).attention[0].bias[0]
    future, past = bias[0].detach(), bias[:, 0].detach()
    return [float(b) for b in torch.cat([future.flip(0)[:-1], past])]


@both_sides
# Powers of two divide logarithms exactly; other sizes avoid ties by their choice.
@pytest.mark.parametrize("buckets, longest", [(32, 128), (4, 5), (8, 20), (64, 1000)])
def test_buckets_follow_the_rule(decoder, buckets, longest, t5_bucket):
    found = {name: of_terms(name, decoder, buckets, longest) for name in ("t5", "tupe")}
    for distance in range(-300, 301):
        expected = by_logarithm(distance, buckets, longest, decoder)
        assert t5_bucket(distance, buckets, longest, decoder) == expected, distance
        if distance >= 0 or not decoder:
            for name in found:
                assert found[name][300 + distance] == expected, (name, distance)


def test_buckets_of_the_encoder_begin_where_t5_lets_them():
    found = of_terms("t5", False, 32, 128)[300:]
    assert found[:8] == list(range(8))
    assert [found.index(bucket) for bucket in range(8, 16)] == STARTS


@both_sides
@pytest.mark.parametrize(
    "heads, expected",
    [
        (1, [2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [2**-h for h in range(1, 9)]),
        # those of 8, with every other one of 16
        (12, [2**-h for h in range(1, 9)] + [2**-h for h in (0.5, 1.5, 2.5, 3.5)]),
        (16, [2 ** (-h / 2) for h in range(1, 17)]),
    ],
)
def test_slopes_are_those_of_the_paper_and_its_code(heads, expected, decoder):
    encoding = build("alibi", StackConfig(heads * 4, decoder, layers=2, heads=heads))
    bias = encoding(Positions.of_length(9)).attention[1].bias
    index = torch.arange(9)
    distances = (index[:, None] - index).abs()
    expected = -torch.tensor(expected)[:, None, None] * distances
    seen = (index[:, None] >= index) | (not decoder)
    torch.testing.assert_close(bias[:, seen], expected[:, seen], rtol=1e-6, atol=0)
