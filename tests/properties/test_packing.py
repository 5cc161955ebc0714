"""Documents packed into blocks: nothing lost, nothing twice, nothing out of order."""

import numpy as np
import pytest
import torch
from fairseq.data import ListDataset
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.data.packing import MODES, PackedDataset

BOS, EOS = 0, 2

# documents of sentences of so many words
texts = st.lists(st.lists(st.integers(1, 12), max_size=5), min_size=1, max_size=6)
lengths = st.integers(2, 16)
each_mode = pytest.mark.parametrize("mode", MODES)


class Text:
    """A text in which every word is another token; documents end with a sentence of </s> alone."""

    def __init__(self, documents):
        self.sentences, self.document = [], {}
        word = EOS
        for number, document in enumerate(documents):
            for size in document:
                words = list(range(word + 1, word + 1 + size))
                word += size
                self.document.update(dict.fromkeys(words, number))
                self.sentences.append([*words, EOS])
            self.sentences.append([EOS])

    def packed(self, length, mode):
        sizes = np.array([len(sentence) for sentence in self.sentences], dtype=np.int32)
        sentences = [torch.tensor(sentence) for sentence in self.sentences]
        blocks = PackedDataset(ListDataset(sentences, sizes), length, mode, BOS)
        found = [tuple(part.tolist() for part in blocks[index]) for index in range(len(blocks))]
        assert blocks.sizes.tolist() == [len(tokens) for tokens, _ in found]
        return found


def words_in(tokens):
    return [token for token in tokens if token > EOS]


@each_mode
@given(documents=texts, length=lengths)
def test_every_word_is_in_one_block_in_its_order_and_no_block_is_too_long(mode, documents, length):
    text = Text(documents)
    blocks = [tokens for tokens, _ in text.packed(length, mode)]
    assert [word for tokens in blocks for word in words_in(tokens)] == list(text.document)
    for tokens in blocks:
        assert tokens[0] == BOS and BOS not in tokens[1:]
        assert 2 <= len(tokens) <= length


@each_mode
@given(documents=texts, length=lengths)
def test_sentences_that_fit_are_whole_unless_every_block_shall_be_full(mode, documents, length):
    text = Text(documents)
    blocks = [tokens[1:] for tokens, _ in text.packed(length, mode)]
    if mode == "none":
        assert sum(blocks, []) == sum(text.sentences, [])
        assert all(len(tokens) == length - 1 for tokens in blocks[:-1])
        return
    fitting = [s for s in text.sentences if 1 < len(s) <= length - 1]
    for sentence in fitting:
        (block,) = [tokens for tokens in blocks if sentence[0] in tokens]
        start = block.index(sentence[0])
        assert block[start : start + len(sentence)] == sentence
    if mode == "eos" and len(fitting) + len(documents) == len(text.sentences):
        assert blocks == fitting
    if mode == "complete_doc":
        assert all(len({text.document[w] for w in words_in(tokens)}) <= 1 for tokens in blocks)


def places(stream, blocks):
    """Where each token of the blocks stands in the text, which has separators besides."""
    found, place = [], 0
    for tokens in blocks:
        found.append([])
        for token in tokens:
            while stream[place] != token:
                place += 1
            found[-1].append(place)
            place += 1
    return found


@given(documents=texts, length=lengths)
def test_no_two_neighbouring_blocks_of_whole_sentences_could_have_been_one(documents, length):
    text = Text(documents)
    blocks = [tokens[1:] for tokens, _ in text.packed(length, "complete")]
    stood = places(sum(text.sentences, []), blocks)
    sizes = {sentence[0]: len(sentence) for sentence in text.sentences if len(sentence) > 1}
    for this, next_, following in zip(stood, stood[1:], blocks[1:]):
        size = sizes.get(following[0], length)
        if size < length:
            # documents between them would stay divided
            assert next_[0] + size - this[0] > length - 1


@pytest.mark.parametrize("mode", ["none", "complete", "complete_doc"])
@given(documents=texts, length=lengths)
def test_segments_of_a_block_alternate_with_its_documents(mode, documents, length):
    text = Text(documents)
    separates, document = [], []
    for sentence in text.sentences:
        document += [separates.count(True)] * len(sentence)
        separates += [len(sentence) == 1] * len(sentence)
    packed = text.packed(length, mode)
    stood = places(sum(text.sentences, []), [tokens[1:] for tokens, _ in packed])
    for (_, segments), block in zip(packed, stood):
        seen = list(dict.fromkeys(document[place] for place in block if not separates[place]))
        assert segments[0] == 0 and len(segments) == 1 + len(block)
        for place, segment in zip(block, segments[1:]):
            if not separates[place]:
                assert segment == seen.index(document[place]) % 2
