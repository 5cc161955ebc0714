"""Sentence pairs whose source starts with the beginning-of-sentence symbol."""

from fairseq.data import LanguagePairDataset, PrependTokenDataset


def with_source_bos(pairs: LanguagePairDataset) -> LanguagePairDataset:
    """Return the same sentence pairs, each source with BOS before it and one token longer.

    CAPE does so in its later version (appendix D.1): after a global shift nothing else tells which
    token is the first.
    """
    return LanguagePairDataset(
        PrependTokenDataset(pairs.src, pairs.src_dict.bos()),
        pairs.src_sizes + 1,
        pairs.src_dict,
        pairs.tgt,
        pairs.tgt_sizes,
        pairs.tgt_dict,
        left_pad_source=pairs.left_pad_source,
        left_pad_target=pairs.left_pad_target,
        shuffle=pairs.shuffle,
        align_dataset=pairs.align_dataset,
        constraints=pairs.constraints,
        eos=pairs.eos,
        pad_to_multiple=pairs.pad_to_multiple,
    )
