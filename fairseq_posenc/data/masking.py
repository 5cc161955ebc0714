"""Masking of tokens for masked language models (Devlin et al. 2019, section 3.1).

Of the tokens of a block, 15 percent are chosen to be predicted; of these, 80 percent are replaced
by ``<mask>``, 10 percent by random tokens, and 10 percent stay. Special symbols (``<s> <pad> </s>
<unk> <mask>``) are neither chosen nor drawn, and at least one token is chosen if one can be.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary

from fairseq_posenc.data.indexed import repeated_types
from fairseq_posenc.data.languages import is_without_spaces
from fairseq_posenc.data.packing import PackedDataset
from fairseq_posenc.data.padded import TokensAndSegments, pad_column
from fairseq_posenc.errors import UsageError

# fairseq fills dictionaries up to a multiple of 8 with types of this name, which no text holds
_FILLER = "madeupword"


class Masking:
    """Hides tokens of blocks at random.

    Args:
        dictionary: with ``<mask>`` in it.
        mask_index: of that.
        probability: share of the tokens (words) that are chosen, rounded at random so that it holds
            on average.
        leave: share of the chosen that stay as they are.
        replace: share of the chosen that are replaced by random tokens.
        by_frequency: draw random tokens in proportion to their counts in the dictionary, not with
            equal chances.
        begins_word: which types begin a word. If given, whole words are chosen, and masked,
            replaced or left as a whole; a cut-off rest at the beginning of a block is a word, and
            so is a subword of a script without spaces.

    Raises:
        UsageError: shares that are not between 0 and 1, a dictionary that random tokens cannot be
            drawn from, or, with ``by_frequency``, one whose counts are all the same.
    """

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
        if not 0 < probability <= 1:
            raise UsageError(f"--mask-prob must be above 0 and at most 1, not {probability}")
        if min(leave, replace) < 0 or leave + replace > 1:
            raise UsageError(
                "--leave-unmasked-prob and --random-token-prob must be 0 or more and together at "
                f"most 1, not {leave} and {replace}"
            )
        self.probability, self.leave, self.replace = probability, leave, replace
        self.mask_index, self.pad = mask_index, dictionary.pad()
        self.maskable = np.ones(len(dictionary), dtype=bool)
        self.maskable[: dictionary.nspecial] = False
        self.maskable[[mask_index, *repeated_types(dictionary)]] = False
        self.begins_word = None
        if begins_word is not None:
            symbols = zip(dictionary.symbols, self.maskable)
            flags = [
                # without spaces a whole sentence would be one word
                not usable or begins_word(name) or is_without_spaces(name)
                for name, usable in symbols
            ]
            self.begins_word = np.array(flags)
        self.random_types = np.array(
            [i for i in np.flatnonzero(self.maskable) if not dictionary[i].startswith(_FILLER)]
        )
        counts = np.ones(len(self.random_types))
        if by_frequency:
            counts = np.array(dictionary.count)[self.random_types]
        if replace and not counts.sum():
            raise UsageError(
                "no random tokens can be drawn from a dictionary without counts or without types "
                "of text; use --random-token-prob 0, or leave --freq-weighted-replacement out"
            )
        if by_frequency and replace and len(counts) > 1 and len(set(counts)) == 1:
            raise UsageError(
                f"the dictionary counts every type {counts[0]} times, so that frequencies are not "
                "known: run posenc prepare text again, which adds counts to the folder's dict.txt, "
                "or leave --freq-weighted-replacement out"
            )
        self.cumulated_shares = np.cumsum(counts / max(counts.sum(), 1))

    def draw(self, tokens: np.ndarray, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        """Return the tokens with some masked, and these tokens alone with ``<pad>`` elsewhere.

        Args:
            tokens: indices of shape (length,), unchanged.
            rng: what the result depends on otherwise.
        """
        positions = np.flatnonzero(self.maskable[tokens])
        source, target = tokens.copy(), np.full_like(tokens, self.pad)
        if not len(positions):
            return source, target
        # the number of the token, or word, that each position belongs to
        units = np.arange(len(positions))
        if self.begins_word is not None:
            # a special symbol between two positions ends a word, too
            begins = self.begins_word[tokens[positions]] | (np.diff(positions, prepend=-2) > 1)
            units = np.cumsum(begins) - 1
        count = units[-1] + 1
        # at least one; a fraction is rounded up or down at random, so that the mean is right
        chosen = rng.choice(
            count, max(int(self.probability * count + rng.random()), 1), replace=False
        )
        # from 0 to 1 for chosen units: left below `leave`, then replaced, then masked
        draws = np.full(count, 2.0)
        draws[chosen] = rng.random(len(chosen))
        draws = draws[units]
        changed = self.leave + self.replace
        target[positions[draws < 1]] = tokens[positions[draws < 1]]
        source[positions[(draws >= changed) & (draws < 1)]] = self.mask_index
        replaced = positions[(draws >= self.leave) & (draws < changed)]
        # types by their shares; the sum may be a rounding below 1, hence the minimum
        places = np.searchsorted(self.cumulated_shares, rng.random(len(replaced)), "right")
        source[replaced] = self.random_types[np.minimum(places, len(self.random_types) - 1)]
        return source, target


class MaskedDataset(TokensAndSegments):
    """Blocks with tokens masked, and the masked ones as the target.

    The masks depend on (seed, epoch, index) alone: not on the batch, the device, the worker, nor
    on where a run was cut and resumed. Items hold ``target``, int64 ``(length,)``, too.

    If an epoch is given, masks are those of this epoch in every epoch, so that losses on validation
    data compare.
    """

    def __init__(
        self, blocks: PackedDataset, masking: Masking, seed: int, epoch: Optional[int] = None
    ):
        super().__init__(blocks.sizes, masking.pad)
        self.blocks, self.masking, self.seed = blocks, masking, seed
        self.has_fixed_epoch = epoch is not None
        self.epoch = 1 if epoch is None else epoch

    def set_epoch(self, epoch: int) -> None:
        """Draw the masks of this epoch from now on."""
        if not self.has_fixed_epoch:
            self.epoch = epoch

    def __getitem__(self, index: int) -> Dict[str, Any]:
        tokens, segments = self.blocks[index]
        num_types = len(self.masking.maskable)
        if int(tokens.max()) >= num_types:
            raise UsageError(
                f"the text holds token {int(tokens.max())}, but the dictionary has {num_types} "
                "types with <mask>: dict.txt is not the one that the text was binarised with"
            )
        rng = np.random.default_rng([self.seed, self.epoch, int(index)])
        source, target = map(torch.from_numpy, self.masking.draw(tokens.numpy(), rng))
        return {"id": int(index), "tokens": source, "target": target, "segments": segments}

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch with ``target`` (batch, length)."""
        batch = super().collater(samples)
        if batch:
            batch["target"] = pad_column(samples, "target", self.pad)
        return batch

    def batch_by_size(self, indices: np.ndarray, **limits: Any) -> List[np.ndarray]:
        """Return batches of indices in their order, without fairseq's loss of the last ones.

        fairseq drops the last batch unless it is a multiple of ``--required-batch-size-multiple``.
        """
        batches = list(super().batch_by_size(indices, **limits))
        last_batch = indices[sum(map(len, batches)) :]
        return [*batches, last_batch] if len(last_batch) else batches
