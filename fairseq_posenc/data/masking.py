"""Masking of tokens for masked language models (Devlin et al. 2019, section 3.1).

Of the tokens of a block, 15 percent are chosen to be predicted; of these, 80 percent are replaced
by ``<mask>``, 10 percent by random tokens, and 10 percent stay. Special symbols (``<s> <pad> </s>
<unk> <mask>``) are neither chosen nor drawn, and at least one token is chosen if one can be.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils

from fairseq_posenc.data.packing import PackedDataset
from fairseq_posenc.errors import UsageError

# fairseq fills dictionaries up to a multiple of 8 with types of this name, which no text holds
_FILLER = "madeupword"


class Masking:
    """Which tokens are hidden, and behind what."""

    def __init__(
        self,
        dictionary: Dictionary,
        mask_index: int,
        probability: float = 0.15,
        leave: float = 0.1,
        replace: float = 0.1,
        by_frequency: bool = False,
        begins_word: Optional[Callable[[str], bool]] = None,
    ):
        """Prepare tables over the dictionary.

        Args:
            dictionary: with ``<mask>`` in it.
            mask_index: index of ``<mask>``.
            probability: share of the tokens (words) that are chosen, rounded at random so that it
                holds on average.
            leave: share of the chosen that stay as they are.
            replace: share of the chosen that are replaced by random tokens.
            by_frequency: draw random tokens in proportion to their counts in the dictionary, not
                with equal chances.
            begins_word: which types begin a word. If given, whole words are chosen, and hidden,
                replaced or left as a whole; a cut-off rest at the beginning of a block is a word.

        Raises:
            UsageError: shares that are none, a dictionary that random tokens cannot be drawn from,
                or, with ``by_frequency``, one whose counts are all the same.
        """
        self.probability, self.leave, self.replace = probability, leave, replace
        self._check_shares()
        self.mask_index, self.pad = mask_index, dictionary.pad()
        self.maskable = np.ones(len(dictionary), dtype=bool)
        self.maskable[: dictionary.nspecial] = False
        self.maskable[mask_index] = False
        self.begins = None
        if begins_word is not None:
            symbols = zip(dictionary.symbols, self.maskable)
            self.begins = np.array([not usable or begins_word(name) for name, usable in symbols])
        self.drawn = np.array(
            [i for i in np.flatnonzero(self.maskable) if not dictionary[i].startswith(_FILLER)]
        )
        counts = (
            np.array(dictionary.count)[self.drawn] if by_frequency else np.ones(len(self.drawn))
        )
        if replace and not counts.sum():
            raise UsageError(
                "no random tokens can be drawn from a dictionary without counts or without types "
                "of text; use --random-token-prob 0, or leave --freq-weighted-replacement out"
            )
        if by_frequency and replace and len(counts) > 1 and len(set(counts)) == 1:
            raise UsageError(
                f"the dictionary counts every type {counts[0]} times, so that frequencies are not "
                "known: run posenc prepare text again, which adds counts to dict.txt, or "
                "leave --freq-weighted-replacement out"
            )
        self.chances = np.cumsum(counts / max(counts.sum(), 1))

    def _check_shares(self) -> None:
        if not 0 < self.probability <= 1:
            raise UsageError(f"--mask-prob must be above 0 and at most 1, not {self.probability}")
        if min(self.leave, self.replace) < 0 or self.leave + self.replace > 1:
            raise UsageError(
                "--leave-unmasked-prob and --random-token-prob must be 0 or more and together at "
                f"most 1, not {self.leave} and {self.replace}"
            )

    def draw(self, tokens: np.ndarray, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        """Return the tokens with some hidden, and these tokens alone with ``<pad>`` elsewhere.

        Args:
            tokens: indices of shape (length,), unchanged.
            rng: what the result depends on otherwise.
        """
        positions = np.flatnonzero(self.maskable[tokens])
        source, target = tokens.copy(), np.full_like(tokens, self.pad)
        if not len(positions):
            return source, target
        units = self._units(tokens, positions)
        count = units[-1] + 1
        chosen = rng.choice(
            count, max(int(self.probability * count + rng.random()), 1), replace=False
        )
        fates = np.full(count, 2.0)
        fates[chosen] = rng.random(len(chosen))
        fates = fates[units]
        target[positions[fates < 1]] = tokens[positions[fates < 1]]
        changed = self.leave + self.replace
        source[positions[(fates >= changed) & (fates < 1)]] = self.mask_index
        replaced = positions[(fates >= self.leave) & (fates < changed)]
        places = np.searchsorted(self.chances, rng.random(len(replaced)), "right")
        source[replaced] = self.drawn[np.minimum(places, len(self.drawn) - 1)]
        return source, target

    def _units(self, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the number of the word, or token, that each maskable position belongs to."""
        if self.begins is None:
            return np.arange(len(positions))
        # a special symbol between two positions ends a word, too
        begins = self.begins[tokens[positions]] | (np.diff(positions, prepend=-2) > 1)
        return np.cumsum(begins) - 1


class MaskedDataset(FairseqDataset):
    """Blocks with tokens hidden, and what was there as the target.

    The masks depend on (seed, epoch, index) alone: not on the batch, the device, the worker, nor
    on where a run was cut and resumed.
    """

    def __init__(
        self, blocks: PackedDataset, masking: Masking, seed: int, epoch: Optional[int] = None
    ):
        """Wrap blocks.

        Args:
            blocks: tokens and segments of every block.
            masking: what is hidden.
            seed: of the masks, 0 or more.
            epoch: if given, masks are those of this epoch in every epoch, so that losses on
                validation data compare.
        """
        super().__init__()
        self.blocks, self.masking, self.seed = blocks, masking, seed
        self.is_fixed = epoch is not None
        self.epoch = 1 if epoch is None else epoch
        self.sizes = blocks.sizes

    def __len__(self) -> int:
        return len(self.blocks)

    def set_epoch(self, epoch: int) -> None:
        """Draw the masks of this epoch from now on."""
        if not self.is_fixed:
            self.epoch = epoch

    def __getitem__(self, index: int) -> Dict[str, Any]:
        """Return ``source``, ``target`` and ``segments`` of a block, each int64 of its size.

        Raises:
            UsageError: the text holds tokens that the dictionary does not.
        """
        tokens, segments = self.blocks[index]
        known = len(self.masking.maskable)
        if int(tokens.max()) >= known:
            raise UsageError(
                f"the text holds token {int(tokens.max())}, but the dictionary has {known} types "
                "with <mask>: dict.txt is not the one that the text was binarised with"
            )
        rng = np.random.default_rng([self.seed, self.epoch, int(index)])
        source, target = self.masking.draw(tokens.numpy(), rng)
        return {
            "id": int(index),
            "source": torch.from_numpy(source),
            "target": torch.from_numpy(target),
            "segments": segments,
        }

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch, padded on the right: tokens by ``<pad>``, segments by 0.

        ``net_input`` holds ``src_tokens`` and ``segments`` (batch, length), ``src_lengths``
        (batch,); ``target`` is (batch, length). No samples: an empty dictionary.
        """
        if not samples:
            return {}
        pad = self.masking.pad
        columns = {
            name: data_utils.collate_tokens([sample[name] for sample in samples], padding)
            for name, padding in (("source", pad), ("target", pad), ("segments", 0))
        }
        lengths = torch.tensor([len(sample["source"]) for sample in samples])
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": columns["source"],
                "src_lengths": lengths,
                "segments": columns["segments"],
            },
            "target": columns["target"],
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
        }

    def num_tokens(self, index: int) -> int:
        """Return the size of a block, for ``--max-tokens``."""
        return self.sizes[index]

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Return the sizes of several blocks."""
        return self.sizes[indices]

    def size(self, index: int) -> int:
        """Return the size of a block, for the limits of models."""
        return self.sizes[index]

    def batch_by_size(self, indices: np.ndarray, **limits: Any) -> List[np.ndarray]:
        """Return batches of indices in their order, without fairseq's loss of the last ones.

        fairseq drops the last batch unless it is a multiple of ``--required-batch-size-multiple``.
        """
        batches = list(super().batch_by_size(indices, **limits))
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches
