"""Packing of sentences into blocks."""

import numpy as np
import pytest
import torch
from fairseq.data import ListDataset

from fairseq_posenc.data import packing
from fairseq_posenc.data.packing import MODES, PackedDataset, cut_blocks

BOS, EOS = 0, 2
CASES = [
    (length, longest, share)
    for length in (2, 3, 8, 33)
    for longest in (4, 40)
    for share in (0, 0.3)
]


def sentences_of(sizes):
    """Sentences of these sizes in which every word is another token."""
    numbers = iter(range(4, 10**6))
    return [[next(numbers) for _ in range(size - 1)] + [EOS] for size in sizes]


def packed(sizes, length, mode):
    items = [torch.tensor(tokens) for tokens in sentences_of(sizes)]
    text = ListDataset(items, np.array(sizes, np.int32))
    blocks = PackedDataset(text, length, mode, BOS)
    found = [[part.tolist() for part in blocks[index]] for index in range(len(blocks))]
    assert blocks.sizes.tolist() == [len(tokens) for tokens, _ in found]
    return found


def reference(sizes, length, mode):
    """Tokens without <s> and segments of the blocks, found token by token.

    A token is kept with the number of its sentence.
    """
    room, documents, sentences = length - 1, [], []
    for number, tokens in enumerate(sentences_of(sizes)):
        sentences.append([(token, number) for token in tokens])
        documents.append(sum(size == 1 for size in sizes[:number]))
    if mode == "none":
        stream = sum(sentences, [])
        blocks = [stream[at : at + room] for at in range(0, len(stream), room)]
    else:
        blocks, block = [], []
        for tokens in sentences:
            for at in range(0, len(tokens), room):
                piece = tokens[at : at + room]
                if mode == "eos" or len(block) + len(piece) > room:
                    blocks, block = [*blocks, block], []
                if len(tokens) > 1 or (mode == "complete" and block):
                    block = block + piece
                elif mode == "complete_doc":
                    blocks, block = [*blocks, block], []
        blocks = [without_last_separators(block, sizes) for block in [*blocks, block] if block]
    return [(block, segments_of(block, sizes, documents)) for block in blocks]


def without_last_separators(block, sizes):
    while sizes[block[-1][1]] == 1:
        block = block[:-1]
    return block


def segments_of(block, sizes, documents):
    seen = list(dict.fromkeys(documents[n] for _, n in block if sizes[n] > 1))
    found = [0]
    for _, number in block:
        # a separator belongs to what stands before it
        found.append(seen.index(documents[number]) % 2 if sizes[number] > 1 else found[-1])
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length, longest, separators", CASES)
def test_blocks_and_segments_are_those_of_a_slow_reference(
    mode, length, longest, separators, monkeypatch
):
    monkeypatch.setattr(packing, "_CHUNK", 7)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, longest, rng.integers(1, 60))
        sizes[rng.random(len(sizes)) < separators] = 1
        sizes = sizes.tolist()
        assert packed(sizes, length, mode) == [
            [[BOS, *(token for token, _ in block)], segments]
            for block, segments in reference(sizes, length, mode)
        ]


def test_documents_share_a_block_unless_told_otherwise():
    sizes = [1, 3, 2, 1, 3, 2, 1, 1, 2, 1]
    ((tokens, segments),) = packed(sizes, 32, "complete")
    assert tokens == [BOS, 4, 5, 2, 6, 2, 2, 7, 8, 2, 9, 2, 2, 2, 10, 2]
    assert segments == [0] * 7 + [1] * 7 + [0] * 2
    alone = packed(sizes, 32, "complete_doc")
    assert [tokens for tokens, _ in alone] == [[0, 4, 5, 2, 6, 2], [0, 7, 8, 2, 9, 2], [0, 10, 2]]


@pytest.mark.parametrize("mode", MODES)
def test_a_text_without_sentences_has_no_blocks(mode):
    assert len(cut_blocks(np.array([], np.int32), 8, mode).size) == 0
    assert len(cut_blocks(np.array([1, 1], np.int32), 8, mode).size) == (mode == "none")
