"""Packing of sentences into blocks."""

import numpy as np
import pytest
import torch
from fairseq.data import ListDataset

from fairseq_posenc.data import packing
from fairseq_posenc.data.packing import MODES, PackedDataset, cut

BOS, EOS = 0, 2


def text(sizes):
    """Sentences of these sizes in which every word is another token."""
    numbers = iter(range(4, 10**6))
    sentences = [[next(numbers) for _ in range(size - 1)] + [EOS] for size in sizes]
    return ListDataset([torch.tensor(tokens) for tokens in sentences], np.array(sizes, np.int32))


def packed(sizes, length, mode):
    blocks = PackedDataset(text(sizes), length, mode, BOS)
    return [[part.tolist() for part in blocks[index]] for index in range(len(blocks))]


def reference(sizes, length, mode):
    """The blocks' tokens without <s>, found piece by piece."""
    room, sentences = length - 1, [tokens.tolist() for tokens in text(sizes).dataset]
    if mode == "none":
        stream = sum(sentences, [])
        return [stream[at : at + room] for at in range(0, len(stream), room)]
    blocks, block = [], []
    for tokens in sentences:
        for at in range(0, len(tokens), room):
            piece = tokens[at : at + room]
            if mode == "eos" or len(sum(block, [])) + len(piece) > room:
                blocks, block = [*blocks, block], []
            if len(tokens) > 1 or (mode == "complete" and block):
                block = [*block, piece]
            elif mode == "complete_doc":
                blocks, block = [*blocks, block], []
    return [sum(block, []) for block in map(without_last_separators, [*blocks, block]) if block]


def without_last_separators(block):
    # the rest of a cut sentence may be </s> alone, but not at the end of a block with more in it
    while len(block) > 1 and block[-1] == [EOS]:
        block = block[:-1]
    return block


CASES = [
    (length, longest, share)
    for length in (2, 3, 8, 33)
    for longest in (4, 40)
    for share in (0, 0.3)
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length, longest, separators", CASES)
def test_blocks_are_those_of_a_slow_reference(mode, length, longest, separators, monkeypatch):
    monkeypatch.setattr(packing, "_CHUNK", 7)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, longest, rng.integers(1, 60))
        sizes[rng.random(len(sizes)) < separators] = 1
        expected = [[BOS, *block] for block in reference(sizes.tolist(), length, mode)]
        assert [tokens for tokens, _ in packed(sizes, length, mode)] == expected


@pytest.mark.parametrize("mode", MODES)
def test_no_token_is_lost_or_twice_and_no_block_too_long(mode):
    rng = np.random.default_rng(3)
    sizes = np.where(rng.random(500) < 0.1, 1, rng.integers(2, 60, 500))
    blocks = [tokens for tokens, _ in packed(sizes, 20, mode)]
    assert max(map(len, blocks)) <= 20
    words = [token for tokens in blocks for token in tokens if token > EOS]
    assert words == [token for tokens in text(sizes).dataset for token in tokens.tolist()[:-1]]
    ends = sum(tokens.count(EOS) for tokens in blocks)
    if mode == "none":
        assert ends == 500
    else:
        kept = ends - np.sum(sizes > 1)
        assert 0 < kept < np.sum(sizes == 1) if mode == "complete" else kept == 0


def test_a_block_ends_only_where_the_next_sentence_would_not_have_fitted():
    sizes = np.random.default_rng(4).integers(2, 19, 400)
    blocks = cut(sizes, 19, "complete")
    following = sizes[blocks.sentence[1:]]
    assert blocks.offset.max() == 0
    assert np.all(blocks.size[:-1] + following > 19)


def test_a_long_sentence_fills_blocks_and_its_rest_is_packed_on():
    sizes = [3, 25, 4, 2]
    sentences = [tokens.tolist() for tokens in text(sizes).dataset]
    short, long, next_, last = sentences
    assert [tokens[1:] for tokens, _ in packed(sizes, 11, "complete")] == [
        short, long[:10], long[10:20], long[20:] + next_, last,
    ]  # fmt: skip


def test_documents_share_a_block_unless_told_otherwise():
    sizes = [1, 3, 2, 1, 3, 2, 1, 1, 2, 1]
    ((tokens, segments),) = packed(sizes, 32, "complete")
    assert tokens == [BOS, 4, 5, 2, 6, 2, 2, 7, 8, 2, 9, 2, 2, 2, 10, 2]
    assert segments == [0] * 7 + [1] * 7 + [0] * 2
    alone = packed(sizes, 32, "complete_doc")
    assert [tokens for tokens, _ in alone] == [[0, 4, 5, 2, 6, 2], [0, 7, 8, 2, 9, 2], [0, 10, 2]]
    assert not any(sum(segments) for _, segments in alone)


def test_a_separator_at_the_beginning_of_a_block_divides_nothing():
    blocks = packed([3, 1, 1, 3, 1, 2], 4, "none")
    assert blocks[1] == [[BOS, EOS, EOS, 6], [0, 0, 0, 0]]
    assert blocks[2] == [[BOS, 7, EOS, EOS], [0, 0, 0, 0]]


def test_a_text_larger_than_what_is_looked_at_at_once_is_cut_without_a_gap():
    sizes = np.random.default_rng(5).integers(2, 60, 2_500_000).astype(np.int32)
    blocks = cut(sizes, 127, "complete")
    ends = np.cumsum(sizes, dtype=np.int64)
    assert np.array_equal(np.cumsum(blocks.size)[:-1], ends[blocks.sentence[1:] - 1])
    assert blocks.size.sum() == ends[-1] and blocks.size.max() <= 127


@pytest.mark.parametrize("mode", MODES)
def test_a_text_without_sentences_has_no_blocks(mode):
    assert len(cut(np.array([], np.int32), 8, mode).size) == 0
    assert len(cut(np.array([1, 1], np.int32), 8, mode).size) == (mode == "none")
