"""BOS before every source."""

import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset

from fairseq_posenc.tasks.translation import with_source_bos


def test_every_source_starts_with_bos_and_is_one_longer():
    dictionary = Dictionary()
    for word in "abcdefgh":
        dictionary.add_symbol(word)
    sentences = [torch.tensor([4, 5, 6, 2]), torch.tensor([7, 2])]
    sizes = [4, 2]
    plain = LanguagePairDataset(
        ListDataset(sentences, sizes), sizes, dictionary, ListDataset(sentences, sizes), sizes,
        dictionary, left_pad_source=True, shuffle=False,
    )  # fmt: skip
    pairs = with_source_bos(plain)
    batch = pairs.collater([pairs[0], pairs[1]])
    assert batch["net_input"]["src_tokens"].tolist() == [[0, 4, 5, 6, 2], [1, 1, 0, 7, 2]]
    assert batch["net_input"]["src_lengths"].tolist() == [5, 3]
    assert batch["target"].tolist() == [[4, 5, 6, 2], [7, 2, 1, 1]]
    assert [pairs.num_tokens(index) for index in range(2)] == [5, 3]
    assert plain[0]["source"].tolist() == [4, 5, 6, 2]
