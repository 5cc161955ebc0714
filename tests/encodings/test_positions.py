"""Numbering of tokens, and randomness per data-parallel worker."""

import pytest
import torch

from fairseq_posenc.encodings import Positions
from fairseq_posenc.encodings.base import worker_generator


@pytest.mark.parametrize("left", [False, True])
def test_the_first_real_token_is_number_0_wherever_the_padding_stands(batch, place, left):
    lengths = [4, 1, 6]
    tokens = batch(lengths, left)
    positions = place(tokens)
    assert positions.numbers.dtype == torch.float32
    for row, length in enumerate(lengths):
        start = 6 - length if left else 0
        assert positions.numbers[row, start : start + length].tolist() == list(range(length))
        assert positions.padding_mask[row].tolist() == [
            not start <= column < start + length for column in range(6)
        ]


@pytest.mark.parametrize("left, expected", [(False, [0, 1, 1, 1]), (True, [0, 0, 0, 1])])
def test_padding_has_the_number_of_the_token_before_it_or_0(batch, place, left, expected):
    assert place(batch([2, 4], left)).numbers[0].tolist() == expected


def test_without_padding_there_is_no_mask(batch, place):
    assert place(batch([3, 3])).padding_mask is None


def test_step_by_step_only_the_newest_token_is_kept(batch, place):
    tokens, cache = batch([5, 3], left=True), {}
    whole = place(tokens)
    for length in range(1, 6):
        newest = place(tokens[:, :length], cache=cache)
        assert torch.equal(newest.numbers, whole.numbers[:, length - 1 : length])
        if length <= 2:
            assert newest.padding_mask.tolist() == [[False], [True]]
        else:
            assert newest.padding_mask is None
        assert newest.cache is cache


def test_an_empty_cache_counts_as_a_cache(batch, place):
    assert place(batch([5]), cache={}).numbers.tolist() == [[4.0]]
    assert place(batch([5]), cache=None).numbers.shape == (1, 5)


def test_numbers_are_exact_in_long_sequences():
    tokens = torch.full((1, 70_000), 7)
    assert Positions.of_tokens(tokens, padding_index=1).numbers[0, -1] == 69_999


def drawn():
    return torch.rand(4, generator=worker_generator(torch.device("cpu"))).tolist()


def test_the_seed_of_torch_decides_what_a_worker_draws():
    torch.manual_seed(3)
    first, second = drawn(), drawn()
    torch.manual_seed(3)
    assert drawn() == first
    assert drawn() == second
    assert first != second
    torch.manual_seed(4)
    assert drawn() != first


def test_a_restored_generator_state_continues_the_draws():
    torch.manual_seed(3)
    drawn()
    state = torch.get_rng_state()
    expected = drawn()
    drawn()
    torch.set_rng_state(state)
    assert drawn() == expected


def test_workers_with_one_seed_draw_differently(on_rank):
    found = []
    for rank in range(16):
        on_rank(rank)
        torch.manual_seed(3)
        found.append(tuple(drawn()))
    assert len(set(found)) == 16


def test_a_worker_leaves_torchs_generator_where_the_others_do(on_rank):
    states = []
    for rank in range(3):
        on_rank(rank)
        torch.manual_seed(3)
        drawn()
        states.append(torch.get_rng_state())
    assert torch.equal(states[0], states[1])
    assert torch.equal(states[0], states[2])
