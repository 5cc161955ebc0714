"""Numbering of tokens, and randomness per data-parallel worker."""

import pytest
import torch

from fairseq_posenc.encodings import Positions, batch_rng


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize("left", [False, True])
def test_a_token_has_the_number_of_real_tokens_before_it(batch, place, left, extra):
    """Padding has that of the token before it, or 0, even where every row ends in padding."""
    tokens = torch.nn.functional.pad(batch([4, 1, 6], left), (0, extra), value=1)
    positions = place(tokens)
    for row, numbers in zip(tokens.tolist(), positions.numbers.tolist()):
        before = [sum(token != 1 for token in row[: i + 1]) for i in range(len(row))]
        assert numbers == [max(count - 1, 0) for count in before]
    assert positions.numbers.dtype == torch.float32
    assert torch.equal(positions.padding_mask, tokens.eq(1))
    assert positions.num_keys == 6 + extra
    assert place(batch([3, 3])).padding_mask is None
    assert place(tokens, padded=False).padding_mask is None


def test_step_by_step_only_the_newest_token_is_kept(batch, place):
    tokens, cache = batch([5, 3], left=True), {}
    whole = place(tokens)
    for length in range(1, 6):
        newest = place(tokens[:, :length], cache=cache)
        assert torch.equal(newest.numbers, whole.numbers[:, length - 1 : length])
        assert torch.equal(newest.padding_mask, whole.padding_mask[:, length - 1 : length])
        assert torch.equal(newest.key_padding_mask, whole.padding_mask[:, :length])
        assert newest.cache is cache and newest.num_keys == length
    assert place(batch([5]), cache=None).numbers.shape == (1, 5)


def test_numbers_are_exact_in_long_sequences():
    tokens = torch.full((1, 70_000), 7)
    assert Positions.of_tokens(tokens, padding_index=1).numbers[0, -1] == 69_999


def drawn():
    return torch.rand(4, generator=batch_rng.worker_generator(torch.device("cpu"))).tolist()


def test_the_state_of_torchs_generator_decides_what_a_worker_draws():
    torch.manual_seed(3)
    first, state = drawn(), torch.get_rng_state()
    second = drawn()
    torch.manual_seed(3)
    assert drawn() == first
    torch.set_rng_state(state)
    assert drawn() == second != first
    torch.manual_seed(4)
    assert drawn() != first


def test_workers_with_one_seed_draw_differently_and_leave_torchs_generator_alike(on_rank):
    found, states = set(), set()
    for rank in range(16):
        on_rank(rank)
        torch.manual_seed(3)
        found.add(tuple(drawn()))
        states.add(tuple(torch.get_rng_state().tolist()))
    assert (len(found), len(states)) == (16, 1)


def test_batches_of_an_update_are_drawn_alike_by_all_workers(on_rank):
    found = {}
    for rank in range(3):
        on_rank(rank)
        for number in range(3):
            torch.manual_seed(3)
            torch.rand(rank)  # such as dropout of the batches before
            with batch_rng.positions_of(batch_rng.Batch(3, number)):
                found.setdefault(number, []).append((drawn(), drawn()))
    assert found[1] == found[1][:1] * 3 and found[2] == found[2][:1] * 3
    assert len({str(one) for number in (0, 1, 2) for one in found[number][0]}) == 6
