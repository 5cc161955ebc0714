import itertools

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, ListDataset

from fairseq_posenc.data.pairs import PairDataset, join


def cut_as_bert_does(first, second, room):
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pairs_are_cut_as_in_bert():
    for first, second, room in itertools.product(range(9), range(9), range(2, 12)):
        sentences = [torch.full((first,), 7), torch.full((second,), 8)]
        tokens, _ = join(sentences, 0, 2, room + 3)
        kept = tokens.eq(7).sum().item(), tokens.eq(8).sum().item()
        assert kept == cut_as_bert_does(first, second, room)


@pytest.mark.parametrize(
    "sentences, limit, tokens, segments",
    [
        ([[7, 8, 9]], 9, [0, 7, 8, 9, 2], [0, 0, 0, 0, 0]),
        ([[7, 8, 9]], 4, [0, 7, 8, 2], [0, 0, 0, 0]),
        ([[7], [8, 9]], 9, [0, 7, 2, 8, 9, 2], [0, 0, 0, 1, 1, 1]),
        ([[7, 7, 7], [8, 9]], 6, [0, 7, 7, 2, 8, 2], [0, 0, 0, 0, 1, 1]),
        ([[], [8]], 6, [0, 2, 8, 2], [0, 0, 1, 1]),
    ],
)
def test_layout_and_segments(sentences, limit, tokens, segments):
    sentences = [torch.tensor(sentence, dtype=torch.long) for sentence in sentences]
    found = join(sentences, bos=0, eos=2, limit=limit)
    assert [part.tolist() for part in found] == [tokens, segments]
    assert all(part.dtype == torch.int64 for part in found)


@pytest.fixture
def dataset():
    """A function that makes a data set of pairs with lengths that differ."""
    generator = np.random.RandomState(1)

    def texts(lengths):
        items = [torch.from_numpy(np.append(generator.randint(4, 9, n), 2)) for n in lengths]
        return ListDataset(items, np.array([len(item) for item in items]))

    def dataset(examples=21, limit=12, targets=True, **options):
        inputs = [texts(generator.randint(1, 12, examples)) for _ in range(2)]
        scores = torch.arange(examples, dtype=torch.float64) / 3 if targets else None
        return PairDataset(inputs, scores, Dictionary(), limit, **options)

    return dataset


def test_sizes_are_those_of_the_examples(dataset):
    pairs = dataset()
    sizes = [len(pairs[index]["tokens"]) for index in range(len(pairs))]
    assert pairs.sizes.tolist() == sizes
    assert pairs.num_tokens_vec(np.arange(len(pairs))).tolist() == sizes
    assert max(sizes) == 12


@pytest.mark.parametrize("sentences", [None, 1, 4, 100])
def test_no_example_is_lost_in_batches(sentences, dataset):
    pairs = dataset()
    batches = pairs.batch_by_size(
        pairs.ordered_indices(),
        max_tokens=48,
        max_sentences=sentences,
        required_batch_size_multiple=8,
    )
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))


def test_each_epoch_has_its_own_order_that_the_seed_determines(dataset):
    pairs, other = dataset(seed=3), dataset(seed=4)
    assert not pairs.can_reuse_epoch_itr_across_epochs
    orders = []
    for epoch in (1, 2, 1):
        pairs.set_epoch(epoch)
        orders.append(pairs.ordered_indices().tolist())
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[1]) == list(range(len(pairs)))
    assert other.ordered_indices().tolist() != orders[0]


def test_without_a_seed_short_examples_come_first(dataset):
    pairs = dataset()
    assert (np.diff(pairs.sizes[pairs.ordered_indices()]) >= 0).all()
    assert dataset(seed=1, in_order=True).ordered_indices().tolist() == list(range(21))


def test_a_batch_is_padded_on_the_right(dataset):
    pairs = dataset()
    samples = [pairs[index] for index in (2, 5, 7)]
    batch = pairs.collater(samples)
    inputs = batch["net_input"]
    assert batch["id"].tolist() == [2, 5, 7]
    assert inputs["src_lengths"].tolist() == [len(sample["tokens"]) for sample in samples]
    assert batch["ntokens"] == int(inputs["src_lengths"].sum()) and batch["nsentences"] == 3
    for row, sample in enumerate(samples):
        length = len(sample["tokens"])
        assert inputs["src_tokens"][row, :length].equal(sample["tokens"])
        assert inputs["segments"][row, :length].equal(sample["segments"])
        assert (inputs["src_tokens"][row, length:] == 1).all()
        assert (inputs["segments"][row, length:] == 0).all()


def test_scores_keep_their_precision_where_fairseq_halves_float32(dataset):
    pairs = dataset()
    assert pairs.collater([pairs[1], pairs[2]])["target"].dtype == torch.float64
    assert "target" not in dataset(targets=False).collater([dataset(targets=False)[0]])
    assert pairs.collater([]) == {}
