"""Masking: how much, what, and what it depends on."""

import pickle

import numpy as np
import pytest
import torch
from fairseq.data import ListDataset, data_utils

from fairseq_posenc.data.masking import MaskedDataset, Masking
from fairseq_posenc.data.packing import PackedDataset
from fairseq_posenc.errors import UsageError
from tests.tiny import dictionary_of

SPECIAL = (0, 1, 2, 3)


@pytest.fixture
def dictionary():
    """Specials, 40 beginnings of words, 40 continuations, a filler and <mask> (85)."""
    counts = {f"w{index}": index for index in range(40)}
    counts.update({f"##w{index}": 1 for index in range(40)}, madeupword0000=0)
    return dictionary_of({**counts, "<mask>": 1})


@pytest.fixture
def masking(dictionary):
    return lambda **options: Masking(dictionary, 85, **options)


def begins_word(piece):
    return not piece.startswith("##")


def tokens_of(length, seed=0, low=4, high=84):
    return np.random.default_rng(seed).integers(low, high, length)


def masked(masking, seed=1, epoch=None, sentences=200):
    rng = np.random.default_rng(7)
    text = [torch.tensor([*rng.integers(4, 84, rng.integers(0, 20)), 2]) for _ in range(sentences)]
    sizes = np.array([len(tokens) for tokens in text])
    blocks = PackedDataset(ListDataset(text, sizes), 64, "complete", 0)
    return MaskedDataset(blocks, masking, seed, epoch)


def test_types_named_as_special_ones_are_not_masked(dictionary):
    for name in ("<unk>", "</s>", "w7"):
        dictionary.add_symbol(name, overwrite=True)  # 86, 87 and 88; the name w7 is no longer 11's
    masking = Masking(dictionary, 85)
    assert np.flatnonzero(~masking.maskable).tolist() == [0, 1, 2, 3, 11, 85, 86, 87]
    assert not {11, 86, 87} & {*masking.random_types.tolist()} and 88 in masking.random_types


def test_15_percent_are_chosen_of_which_80_10_10_are_hidden_replaced_left(masking):
    tokens = tokens_of(400_000)
    tokens[::5] = 2
    before = tokens.copy()
    source, target = masking().draw(tokens, np.random.default_rng(1))
    chosen = target != 1
    assert np.array_equal(tokens, before)
    assert np.array_equal(target[chosen], tokens[chosen])
    assert np.array_equal(source[~chosen], tokens[~chosen])
    usable = tokens > 3
    assert chosen.sum() / usable.sum() == pytest.approx(0.15, abs=1e-4)
    hidden = source[chosen] == 85
    left = source[chosen] == tokens[chosen]
    # one random token in 80 is the one that was there
    assert hidden.mean() == pytest.approx(0.8, abs=0.006)
    assert left.mean() == pytest.approx(0.1 + 0.1 / 80, abs=0.005)


@pytest.mark.parametrize("by_frequency", [False, True])
def test_special_tokens_are_neither_chosen_nor_drawn(masking, by_frequency):
    rng = np.random.default_rng(3)
    tokens = tokens_of(100_000, low=0, high=86)
    draw = masking(probability=1.0, leave=0.0, replace=1.0, by_frequency=by_frequency).draw
    source, target = draw(tokens, rng)
    special = np.isin(tokens, [*SPECIAL, 85])
    assert np.array_equal(source[special], tokens[special]) and np.all(target[special] == 1)
    assert np.array_equal(target[~special], tokens[~special])
    drawn = np.bincount(source[~special], minlength=86)
    assert drawn[[*SPECIAL, 84, 85]].sum() == 0
    expected = np.array([*range(40), *[1] * 40]) if by_frequency else np.ones(80)
    share = drawn[4:84] / drawn.sum()
    assert share == pytest.approx(expected / expected.sum(), abs=0.003)


def test_frequencies_that_are_not_known_are_refused(masking, dictionary):
    dictionary.count = [1] * len(dictionary)
    with pytest.raises(UsageError, match="counts every type 1 times.*run posenc prepare text"):
        masking(by_frequency=True)
    masking(by_frequency=True, leave=1.0, replace=0.0)
    masking()


def test_the_number_of_masked_tokens_is_right_on_average_in_short_blocks_too(masking):
    draw = masking().draw
    tokens = tokens_of(10)
    rng = np.random.default_rng(4)
    counts = [(draw(tokens, rng)[1] != 1).sum() for _ in range(2000)]
    assert set(counts) == {1, 2}
    assert np.mean(counts) == pytest.approx(1.5, abs=0.05)


def test_a_block_with_anything_to_mask_has_something_masked(masking):
    draw = masking(probability=0.01).draw
    for seed in range(20):
        tokens = np.array([0, 5, 2])
        assert draw(tokens, np.random.default_rng(seed))[1].tolist() == [1, 5, 1]
    source, target = draw(np.array([0, 3, 2]), np.random.default_rng(0))
    assert source.tolist() == [0, 3, 2] and target.tolist() == [1, 1, 1]


def test_whole_words_are_masked_as_a_whole(masking):
    tokens = tokens_of(60_000)
    tokens[::11] = 2
    tokens[0] = 70  # a block begins within a word
    source, target = masking(begins_word=begins_word).draw(tokens, np.random.default_rng(5))
    chosen = target != 1
    fate = np.where(~chosen, 0, np.where(source == 85, 1, np.where(source == tokens, 2, 3)))
    continues = (tokens[1:] >= 44) & (tokens[:-1] > 3)
    assert np.array_equal(chosen[1:][continues], chosen[:-1][continues])
    assert np.array_equal((fate == 1)[1:][continues], (fate == 1)[:-1][continues])
    assert chosen.sum() / (tokens > 3).sum() == pytest.approx(0.15, abs=0.005)
    hidden, left = (fate[chosen] == 1).mean(), (fate[chosen] == 2).mean()
    assert hidden == pytest.approx(0.8, abs=0.02) and left == pytest.approx(0.1, abs=0.02)
    fresh = ~continues & (tokens[1:] > 3)
    assert np.mean(chosen[1:][fresh] == chosen[:-1][fresh]) < 0.9


def test_a_subword_of_a_script_without_spaces_is_a_whole_word():
    pieces = ["▁今", "天", "天气", "。我们", "さん", "##ไทย", "▁house", "s", "。", "집", "<mask>"]
    dictionary, begins = dictionary_of(pieces), lambda piece: piece.startswith("▁")
    masking = Masking(dictionary, 14, begins_word=begins)
    ends = [piece for piece, begins in zip(pieces, masking.begins_word[4:]) if not begins]
    assert ends == ["s", "。", "집"]
    # one sentence, and 15 percent of it: it was masked as a whole
    _, target = masking.draw(np.array([4, *[5, 6, 7, 8] * 250]), np.random.default_rng(8))
    assert np.mean(target != 1) == pytest.approx(0.15, abs=0.001)


def test_a_word_does_not_go_on_behind_a_special_token(masking):
    draw = masking(begins_word=begins_word).draw
    _, target = draw(np.array([44, 2] * 5000), np.random.default_rng(6))
    assert np.mean(target[::2] != 1) == pytest.approx(0.15, abs=0.001)


def targets_of(data):
    return [data[index]["target"].tolist() for index in range(len(data))]


def test_masks_depend_on_seed_epoch_and_index_alone(masking):
    data, other_seed = masked(masking()), masked(masking(), seed=2)
    first = targets_of(data)
    assert len({tuple(token != 1 for token in target[:30]) for target in first}) > len(data) - 3
    again = masked(masking())
    for index in np.random.default_rng(6).permutation(len(data)):
        np.random.rand()
        torch.rand(1)
        assert again[index]["target"].tolist() == first[index]
    assert targets_of(pickle.loads(pickle.dumps(data))) == first
    data.set_epoch(2)
    for others in (data, other_seed):
        assert sum(a == b for a, b in zip(targets_of(others), first)) < 3
    data.set_epoch(1)
    assert targets_of(data) == first


def test_targets_are_padded_as_the_tokens(masking):
    data = masked(masking())
    samples = [data[0], data[len(data) - 1]]
    batch = data.collater(samples)
    assert batch["target"].shape == batch["net_input"]["src_tokens"].shape
    for row, sample in zip(batch["target"].tolist(), samples):
        assert row == sample["target"].tolist() + [1] * (len(row) - len(sample["target"]))
    assert data.collater([]) == {}


def test_the_last_batch_is_not_lost(masking):
    data = masked(masking())
    indices = data.ordered_indices()
    for limits in ({"max_sentences": 8}, {"max_tokens": 600}, {"max_sentences": 1000}):
        limits["required_batch_size_multiple"] = 8
        batches = data.batch_by_size(indices, **limits)
        assert np.concatenate(batches).tolist() == indices.tolist()
        theirs = data_utils.batch_by_size(indices, data.num_tokens, **limits)
        assert [list(batch) for batch in batches][: len(theirs)] == [list(b) for b in theirs]


@pytest.mark.parametrize("beyond", [86, 200])
def test_a_text_of_another_dictionary_is_refused(dictionary, beyond):
    text = ListDataset([torch.tensor([beyond, 5, 2])], np.array([3]))
    data = MaskedDataset(PackedDataset(text, 8, "complete", 0), Masking(dictionary, 85), 1)
    with pytest.raises(UsageError, match=f"token {beyond}, but the dictionary has 86 types"):
        data[0]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"probability": 0}, "--mask-prob must be above 0 and at most 1, not 0"),
        ({"probability": 1.5}, "--mask-prob"),
        ({"leave": -0.1}, "--leave-unmasked-prob"),
        ({"leave": 0.6, "replace": 0.5}, "at most 1, not 0.6 and 0.5"),
    ],
)
def test_impossible_shares_are_refused(masking, options, words):
    with pytest.raises(UsageError, match=words):
        masking(**options)


def test_a_dictionary_without_text_is_refused_if_random_tokens_are_needed():
    empty = dictionary_of(["<mask>"])
    with pytest.raises(UsageError, match="--random-token-prob 0"):
        Masking(empty, 4)
    assert Masking(empty, 4, replace=0.0).mask_index == 4
