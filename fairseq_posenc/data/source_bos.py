"""BOS before every source: sentence pairs that have it, and alignments that do not count it."""

import copy
from typing import Any, Callable, List

import numpy as np
import torch
from fairseq import utils
from fairseq.data import BaseWrapperDataset, LanguagePairDataset, PrependTokenDataset
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor


class _SourcesWithBos(PrependTokenDataset):
    def get_original_text(self, index: int) -> str:
        """Return the text of a source, which has no BOS (``--replace-unk``)."""
        return self.dataset.get_original_text(index)


class _AlignmentsWithBos(BaseWrapperDataset):
    def __getitem__(self, index: int) -> Tensor:
        # source and target in turn; sources have become one token longer in front
        pairs = self.dataset[index].view(-1, 2)
        return (pairs + pairs.new_tensor([1, 0])).view(-1)


def with_source_bos(pairs: LanguagePairDataset) -> LanguagePairDataset:
    """Return the same sentence pairs, each source with BOS before it and one token longer.

    CAPE does so in its later version (appendix D.1): after a global shift nothing else tells which
    token is the first.
    """
    longer = copy.copy(pairs)
    longer.src = _SourcesWithBos(pairs.src, pairs.src_dict.bos())
    longer.src_sizes = pairs.src_sizes + 1
    # (sentences, 2), or (sentences,) if there are no targets
    longer.sizes = pairs.sizes + (1 if pairs.tgt_sizes is None else np.array([1, 0]))
    if pairs.align_dataset is not None:
        longer.align_dataset = _AlignmentsWithBos(pairs.align_dataset)
    return longer


def align_without_bos(generator: Any) -> None:
    """Let the alignments that a generator returns count the tokens of the source without BOS.

    With ``--print-alignment hard`` nothing is aligned to BOS, as nothing is to EOS; with ``soft``
    the probability of BOS is left out.
    """
    if isinstance(generator, SequenceScorer):
        generator.generate = _scoring_without_bos(generator)
    else:
        extract = generator.extract_alignment
        generator.extract_alignment = lambda attention, source, target, pad, eos: extract(
            attention, _hidden(source, pad), target, pad, eos
        )


def _scoring_without_bos(scorer: SequenceScorer) -> Callable[..., List]:
    """Return the scorer's ``generate`` (``--score-reference``), with alignments extracted anew."""
    score = scorer.generate

    def generate(models: Any, sample: Any, **kwargs: Any) -> List:
        hypotheses = score(models, sample, **kwargs)
        sources, targets = sample["net_input"]["src_tokens"], sample["target"]
        for source, target, [reference] in zip(sources, targets, hypotheses):
            reference["alignment"] = utils.extract_hard_alignment(
                reference["attention"], _hidden(source, scorer.pad), target, scorer.pad, scorer.eos
            )
        return hypotheses

    return generate


def _hidden(source: Tensor, pad: int) -> Tensor:
    """Return a source ``(length,)`` with padding for its first token, which is BOS."""
    hidden = source.clone()
    hidden[int(torch.nonzero(source.ne(pad))[0])] = pad
    return hidden
