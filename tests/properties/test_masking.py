"""Tokens that masked language models hide, for any block, against loops and counts."""

import math

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, ListDataset
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.data.masking import MaskedDataset, Masking
from fairseq_posenc.data.packing import PackedDataset

PADDING, MASK, TYPES = 1, 24, 20
SPECIAL = (0, 1, 2, 3, MASK)

blocks = st.lists(st.integers(0, MASK), min_size=1, max_size=30)
seeds = st.integers(0, 10**6)
# thousandths: whole numbers make no rounding that the counts below would have to allow for
shares = st.integers(1, 1000).map(lambda n: n / 1000)


def begins_word(piece):
    return not piece.startswith("##")


@pytest.fixture(scope="module")
def dictionary():
    """Specials, ten types that begin words, ten that continue them, and <mask>."""
    dictionary = Dictionary()
    for index in range(TYPES):
        dictionary.add_symbol(f"{'##' * (index % 2)}w{index}", n=1 + index)
    assert dictionary.add_symbol("<mask>") == MASK
    return dictionary


def words_of(tokens):
    """The positions of each word: a beginning and what continues it, up to a special token."""
    words, inside = [], False
    for position, token in enumerate(tokens):
        if token in SPECIAL:
            inside = False
            continue
        # types count from 4, and every second one continues a word
        if not (inside and token % 2):
            words.append([])
        words[-1].append(position)
        inside = True
    return words


@given(tokens=blocks, probability=shares, whole=st.booleans(), seed=seeds)
def test_as_many_are_chosen_as_the_share_says_and_whole_words_if_asked_for(
    dictionary, tokens, probability, whole, seed
):
    masking = Masking(dictionary, MASK, probability, begins_word=begins_word if whole else None)
    _, target = masking.draw(np.array(tokens), np.random.default_rng(seed))
    units = words_of(tokens) if whole else [[i] for i, t in enumerate(tokens) if t not in SPECIAL]
    chosen = [unit for unit in units if target[unit[0]] != PADDING]
    assert [i for i, t in enumerate(target) if t != PADDING] == [i for unit in chosen for i in unit]
    wanted = probability * len(units)
    if units:
        assert max(math.floor(wanted), 1) <= len(chosen) <= max(math.ceil(wanted), 1)


@given(tokens=blocks, probability=shares, leave=shares, seed=seeds, by_frequency=st.booleans())
def test_targets_are_what_was_there_and_special_tokens_are_left_alone(
    dictionary, tokens, probability, leave, seed, by_frequency
):
    masking = Masking(dictionary, MASK, probability, leave, 1 - leave, by_frequency)
    source, target = masking.draw(np.array(tokens), np.random.default_rng(seed))
    for token, shown, wanted in zip(tokens, source, target):
        assert wanted in (PADDING, token)
        assert wanted == token or shown == token
        if token in SPECIAL:
            assert (shown, wanted) == (token, PADDING)
        else:
            assert shown not in SPECIAL


@given(tokens=blocks, seed=seeds, leave=st.booleans())
def test_all_that_is_chosen_is_left_or_hidden_if_nothing_else_is_asked_for(
    dictionary, tokens, seed, leave
):
    masking = Masking(dictionary, MASK, 0.5, leave=float(leave), replace=0.0)
    source, target = masking.draw(np.array(tokens), np.random.default_rng(seed))
    for token, shown, wanted in zip(tokens, source, target):
        assert shown == (MASK if wanted != PADDING and not leave else token)


@given(probability=shares, parts=st.lists(st.integers(0, 9), min_size=3, max_size=3), seed=seeds)
def test_shares_hold_in_a_long_text(dictionary, probability, parts, seed):
    total = max(sum(parts), 1)
    leave = parts[0] / total
    replace = min(parts[1] / total, 1 - leave)
    tokens = np.resize(np.arange(4, 4 + TYPES), 20_000)
    masking = Masking(dictionary, MASK, probability, leave, replace)
    source, target = masking.draw(tokens, np.random.default_rng(seed))
    chosen = target != PADDING
    assert abs(chosen.sum() - probability * len(tokens)) <= 1
    hidden, same = source[chosen] == MASK, source[chosen] == tokens[chosen]
    # a random token is the one that was there once in TYPES times
    for found, share in ((hidden, 1 - leave - replace), (same, leave + replace / TYPES)):
        deviation = math.sqrt(max(share * (1 - share), 0) / len(found))
        assert abs(found.mean() - share) <= 5 * deviation + 1e-9


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    seed=seeds,
    epochs=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    data=st.data(),
)
def test_masks_follow_from_seed_epoch_and_index_alone(dictionary, lengths, seed, epochs, data):
    text = [torch.tensor([*(4 + i % TYPES for i in range(n)), 2]) for n in lengths]
    packed = PackedDataset(ListDataset(text, np.array([len(t) for t in text])), 6, "complete", 0)
    first, second = (MaskedDataset(packed, Masking(dictionary, MASK), seed) for _ in range(2))
    for epoch in epochs:
        first.set_epoch(epoch)
        second.set_epoch(epoch)
        order = data.draw(st.permutations(range(len(packed))))
        others = {index: second[index] for index in order}
        for index in range(len(packed)):
            assert torch.equal(first[index]["source"], others[index]["source"])
            assert torch.equal(first[index]["target"], others[index]["target"])
        batch = first.collater([others[index] for index in order])
        for row, index in enumerate(order):
            length = int(packed.sizes[index])
            assert batch["net_input"]["src_lengths"][row] == length
            for name, column in (
                ("source", batch["net_input"]["src_tokens"]),
                ("target", batch["target"]),
            ):
                assert torch.equal(column[row, :length], others[index][name])
                assert bool((column[row, length:] == PADDING).all())
