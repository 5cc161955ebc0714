"""What SHAPE and CAPE draw for batches of sentences of several lengths."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.encodings import Positions, Stack, Terms, build

PADDING = 1
seeds = st.integers(0, 10**6)


def numbers_of(encoding, positions, seed):
    """The numbers of which an encoding takes the sinusoids, ``(batch, length)``, and its terms."""
    caught = []

    def catch(numbers):
        caught.append(numbers)
        return Terms(input=numbers.unsqueeze(-1))

    encoding.encode = catch
    torch.manual_seed(seed)
    terms = encoding(positions)
    return caught[0], terms


def real_rows(batch, numbers):
    """The numbers of each sentence's own tokens."""
    mask = batch.tokens.ne(PADDING)
    return [row[real].tolist() for row, real in zip(numbers, mask)]


@given(data=st.data(), most=st.integers(0, 6), seed=seeds)
def test_shape_adds_one_whole_number_of_its_range_to_each_sentence(ragged, data, most, seed):
    batch = data.draw(ragged())
    encoding = build("shape", Stack(8), max_shift=most).train()
    found, _ = numbers_of(encoding, Positions.of_tokens(batch.tokens, PADDING), seed)
    for numbers in real_rows(batch, found):
        assert numbers[0] in range(most + 1)
        assert numbers == [numbers[0] + i for i in range(len(numbers))]


@given(data=st.data(), seed=seeds)
def test_offsets_of_shape_do_not_depend_on_the_padding(ragged, data, seed):
    batch = data.draw(ragged())
    encoding = build("shape", Stack(8)).train()
    other = batch._replace(left=not batch.left, extra=(batch.extra + 1) % 4)
    rows = []
    for each in (batch, other):
        positions = Positions.of_tokens(each.tokens, PADDING)
        rows.append(real_rows(each, numbers_of(encoding, positions, seed)[0]))
    assert rows[0] == rows[1]


@given(
    data=st.data(),
    seed=seeds,
    shift=st.floats(0, 20),
    local=st.floats(0, 0.49),
    scale=st.floats(1, 2),
    alpha=st.floats(1, 2),
)
def test_cape_shifts_and_scales_a_sentence_as_a_whole(
    ragged, data, seed, shift, local, scale, alpha
):
    batch = data.draw(ragged())
    options = {"global_shift": shift, "local_shift": local, "global_scale": scale}
    encoding = build("cape", Stack(8), source_scale=alpha, **options).train()
    found, terms = numbers_of(encoding, Positions.of_tokens(batch.tokens, PADDING), seed)
    assert [drawn.shape for drawn in terms.shared] == [(len(batch.sentences), 1)] * 2
    for numbers, shifted, log_scale in zip(real_rows(batch, found), *terms.shared):
        assert abs(shifted) <= shift + 1e-6
        assert abs(log_scale) <= math.log(scale) + 1e-6
        for i, number in enumerate(numbers):
            own = number / math.exp(log_scale) - alpha * i - shifted.item()
            assert abs(own) <= local + 1e-4
        assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)


@given(data=st.data(), seed=seeds)
def test_both_sides_of_a_pair_share_capes_shift_and_scale(ragged, data, seed):
    source = data.draw(ragged())
    count = len(source.sentences)
    target = data.draw(ragged((count, count)))
    options = {"local_shift": 0.0, "global_scale": 3.0}
    encoder = build("cape", Stack(8), **options).train()
    decoder = build("cape", Stack(8, decoder=True), **options).train()
    theirs, terms = numbers_of(encoder, Positions.of_tokens(source.tokens, PADDING), seed)
    positions = Positions.of_tokens(target.tokens, PADDING, shared=terms.shared)
    ours, _ = numbers_of(decoder, positions, seed + 1)
    for one, other in zip(real_rows(source, theirs), real_rows(target, ours)):
        shorter = min(len(one), len(other))
        assert one[:shorter] == other[:shorter]


@given(data=st.data(), seed=seeds)
def test_without_local_shift_and_scale_the_distances_of_cape_stay(ragged, data, seed):
    batch = data.draw(ragged())
    encoding = build("cape", Stack(8), local_shift=0.0).train()
    found, _ = numbers_of(encoding, Positions.of_tokens(batch.tokens, PADDING), seed)
    for numbers in real_rows(batch, found):
        for i, number in enumerate(numbers):
            assert number - numbers[0] == pytest.approx(i, abs=1e-5)


@given(data=st.data())
def test_the_mean_that_cape_subtracts_is_that_of_real_tokens(ragged, data):
    batch = data.draw(ragged())
    encoding = build("cape", Stack(8), mean_normalize=True).eval()
    found, _ = numbers_of(encoding, Positions.of_tokens(batch.tokens, PADDING), 0)
    for numbers, sentence in zip(real_rows(batch, found), batch.sentences):
        middle = sum(range(len(sentence))) / len(sentence)
        assert numbers == pytest.approx([i - middle for i in range(len(sentence))], abs=1e-5)
