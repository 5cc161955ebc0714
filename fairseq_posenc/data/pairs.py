"""One or two sentences as BERT sees them: ``<s> first </s>`` or ``<s> first </s> second </s>``.

The second sentence and its ``</s>`` are segment 1 (Devlin et al. 2019, section 3.1).
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import data_utils

from fairseq_posenc.data.padded import TokensAndSegments


def join(
    sentences: Sequence[torch.Tensor], bos: int, eos: int, limit: int
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and segment numbers of an example, (length,) each, as int64.

    Pairs that are too long are cut as BERT does: tokens are taken from the end of the longer
    sentence, of the second if they are equally long, until both fit.

    Args:
        sentences: one or two, each (length,), without special symbols.
        bos, eos: indices of ``<s>`` and ``</s>``.
        limit: the most tokens, special symbols included; at least as many as there are of these.
    """
    # beside <s> and each sentence's </s>
    room = limit - 1 - len(sentences)
    lengths = [min(len(sentences[0]), room)]
    if len(sentences) == 2:
        # a sentence that fits its half, or what the other leaves, stays whole
        first, second = map(len, sentences)
        second = min(second, max(room // 2, room - first))
        lengths = [min(first, room - second), second]
    end = torch.tensor([eos])
    parts = [torch.tensor([bos])]
    for sentence, length in zip(sentences, lengths):
        parts += [sentence[:length].long(), end]
    tokens = torch.cat(parts)
    segments = torch.zeros_like(tokens)
    # behind <s>, the first sentence and its </s>
    segments[lengths[0] + 2 :] = 1
    return tokens, segments


class PairDataset(TokensAndSegments):
    """Examples of one or two sentences, with a label, a score or nothing.

    Items hold ``target``, too: an int64 label, a float64 score, which fairseq leaves alone in half
    precision, or None. ``cut`` examples are longer than the limit.

    Args:
        inputs: one or two data sets of sentences (length,), each ending with ``</s>``.
        targets: (examples,), or None.
        dictionary: fairseq's.
        limit: the most tokens of an example; longer ones are cut, see :func:`join`.
        seed: of the order of examples, which differs in each epoch; None for increasing length,
            which needs least padding.
        in_order: keep the order of the file.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Optional[torch.Tensor],
        dictionary: Any,
        limit: int,
        seed: Optional[int] = None,
        in_order: bool = False,
    ):
        lengths = sum(np.asarray(part.sizes, dtype=np.int64) for part in inputs)
        super().__init__(np.minimum(lengths + 1, limit), dictionary.pad())
        self.cut = int(np.sum(lengths + 1 > limit))
        self.inputs, self.targets, self.limit = list(inputs), targets, limit
        self.seed, self.in_order = seed, in_order
        self.bos, self.eos = dictionary.bos(), dictionary.eos()

    def __getitem__(self, index: int) -> Dict[str, Any]:
        sentences = [part[index][:-1] for part in self.inputs]
        tokens, segments = join(sentences, self.bos, self.eos, self.limit)
        target = None if self.targets is None else self.targets[index]
        return {"id": int(index), "tokens": tokens, "segments": segments, "target": target}

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch of the base class, with ``target`` (batch,) if there are targets."""
        batch = super().collater(samples)
        if batch and self.targets is not None:
            batch["target"] = torch.stack([sample["target"] for sample in samples])
        return batch

    def ordered_indices(self) -> np.ndarray:
        """Return the order in which batches are filled."""
        if self.in_order:
            return np.arange(len(self))
        if self.seed is None:
            return np.argsort(self.sizes, kind="stable")
        with data_utils.numpy_seed(self.seed, self.epoch):
            return np.random.permutation(len(self))

    def batch_by_size(self, indices: np.ndarray, **limits: Any) -> Sequence[np.ndarray]:
        """Return batches of all examples, as a score needs.

        fairseq leaves out the last batch unless it has a multiple of 8 examples.
        """
        return super().batch_by_size(indices, **{**limits, "required_batch_size_multiple": 1})

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Whether batches are those of the epoch before."""
        return self.in_order or self.seed is None
