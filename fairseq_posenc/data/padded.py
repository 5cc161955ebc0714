"""Base of the data sets for BERT models: items of tokens and segments, padded to batches."""

from typing import Any, Dict, List, Sequence

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils


class TokensAndSegments(FairseqDataset):
    """Base of data sets whose items hold ``id``, ``tokens`` and ``segments``, int64 ``(length,)``.

    Args:
        sizes: tokens of every item, ``(items,)``.
        pad: index of ``<pad>``.
    """

    def __init__(self, sizes: np.ndarray, pad: int):
        super().__init__()
        self.sizes, self.pad, self.epoch = sizes, pad, 1

    def __len__(self) -> int:
        return len(self.sizes)

    def num_tokens(self, index: int) -> int:
        """Return the length of an item, for ``--max-tokens`` and for the limits of models."""
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Return the lengths of items."""
        return self.sizes[indices]

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, from which random numbers follow."""
        self.epoch = epoch

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch, padded on the right: tokens by ``<pad>``, segments by 0.

        ``id`` and ``net_input``'s ``src_lengths`` are (batch,), its ``src_tokens`` and ``segments``
        (batch, length). No samples: an empty dictionary.
        """
        if not samples:
            return {}
        lengths = torch.tensor([len(sample["tokens"]) for sample in samples])
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": pad_column(samples, "tokens", self.pad),
                "src_lengths": lengths,
                "segments": pad_column(samples, "segments", 0),
            },
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
        }


def pad_column(samples: Sequence[Dict[str, Any]], name: str, padding: int) -> torch.Tensor:
    """Return one entry of all samples, ``(batch, length)``, padded on the right."""
    return data_utils.collate_tokens([sample[name] for sample in samples], padding)
