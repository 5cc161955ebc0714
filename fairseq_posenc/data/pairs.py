"""Sentences and sentence pairs as BERT reads them: ``<s> A </s>`` or ``<s> A </s> B </s>``.

``<s>`` is BERT's [CLS], ``</s>`` its [SEP]. Everything up to the first ``</s>`` is segment 0, the
rest segment 1 (Devlin et al. 2019, section 3.1).
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils


def kept(first: int, second: int, room: int) -> Tuple[int, int]:
    """Return how many tokens of each sentence fit, as BERT cuts them.

    Tokens are taken from the end of the longer sentence, of the second if they are equally long,
    until both fit.

    Args:
        first, second: lengths in tokens.
        room: for both together.
    """
    second = min(second, max(room // 2, room - first))
    return min(first, room - second), second


def laid_out(
    sentences: Sequence[torch.Tensor], bos: int, eos: int, limit: int
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and segment numbers of an example, (length,) each, as int64.

    Args:
        sentences: one or two, each (length,), without special symbols.
        bos, eos: indices of ``<s>`` and ``</s>``.
        limit: the most tokens, special symbols included; at least as many as there are of these.
    """
    room = limit - 1 - len(sentences)
    if len(sentences) == 1:
        lengths: Tuple[int, ...] = (min(len(sentences[0]), room),)
    else:
        lengths = kept(len(sentences[0]), len(sentences[1]), room)
    begin, end = torch.tensor([bos]), torch.tensor([eos])
    parts = [begin]
    for sentence, length in zip(sentences, lengths):
        parts += [sentence[:length].long(), end]
    tokens = torch.cat(parts)
    segments = torch.zeros_like(tokens)
    segments[lengths[0] + 2 :] = 1
    return tokens, segments


class PairDataset(FairseqDataset):
    """Examples of one or two sentences, with a label, a score or nothing.

    Items are dictionaries: ``id`` (number of the example), ``tokens`` and ``segments`` (length,),
    ``target`` (int64 label, float64 score, which fairseq leaves alone in half precision, or None).

    Args:
        inputs: one or two data sets of sentences (length,), each ending with ``</s>``.
        targets: (examples,), or None.
        dictionary: fairseq's.
        limit: the most tokens of an example; longer ones are cut, see :func:`laid_out`.
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
        super().__init__()
        self.inputs = list(inputs)
        self.targets = targets
        self.limit = limit
        self.seed = seed
        self.in_order = in_order
        self.epoch = 1
        self.bos, self.eos, self.pad = dictionary.bos(), dictionary.eos(), dictionary.pad()
        lengths = sum(np.asarray(part.sizes, dtype=np.int64) for part in self.inputs)
        self.sizes = np.minimum(lengths + 1, limit)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        sentences = [part[index][:-1] for part in self.inputs]
        tokens, segments = laid_out(sentences, self.bos, self.eos, self.limit)
        target = None if self.targets is None else self.targets[index]
        return {"id": int(index), "tokens": tokens, "segments": segments, "target": target}

    def __len__(self) -> int:
        return len(self.sizes)

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch: ``id`` (B,), ``net_input`` of (B, T), padded on the right, ``target``."""
        if not samples:
            return {}
        lengths = torch.tensor([len(sample["tokens"]) for sample in samples])
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": data_utils.collate_tokens([s["tokens"] for s in samples], self.pad),
                "src_lengths": lengths,
                "segments": data_utils.collate_tokens([s["segments"] for s in samples], 0),
            },
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
        }
        if self.targets is not None:
            batch["target"] = torch.stack([sample["target"] for sample in samples])
        return batch

    def num_tokens(self, index: int) -> int:
        """Return the length of an example."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Return the lengths of examples."""
        return self.sizes[indices]

    def size(self, index: int) -> int:
        """Return the length of an example, by which fairseq leaves out what is too long."""
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """Return the order in which batches are filled."""
        if self.in_order:
            return np.arange(len(self))
        if self.seed is None:
            return np.argsort(self.sizes, kind="stable")
        with data_utils.numpy_seed(self.seed, self.epoch):
            return np.random.permutation(len(self))

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        required_batch_size_multiple: int = 1,
    ) -> Sequence[np.ndarray]:
        """Return batches of all examples.

        fairseq leaves out the last batch unless it has a multiple of 8 examples, and a score needs
        all of them.
        """
        return super().batch_by_size(indices, max_tokens, max_sentences, 1)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Whether batches are those of the epoch before."""
        return self.in_order or self.seed is None

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch."""
        self.epoch = epoch
