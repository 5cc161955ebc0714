"""The task ``posenc_masked_lm``: masked language models on packed text."""

import logging
import math
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, TextIO, Tuple

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions.masked_lm import MaskedLmLoss
from fairseq.data import SortDataset, data_utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMTask
from omegaconf import II, MISSING
from torch.nn import functional

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import check_split
from fairseq_posenc.data.masking import MaskedDataset, Masking
from fairseq_posenc.data.packing import MODES, PackedDataset
from fairseq_posenc.errors import UsageError
from fairseq_posenc.options import option

logger = logging.getLogger(__name__)
Predictions = List[Tuple[int, Tuple[float, int]]]


@dataclass
class PosencMaskedLMConfig(FairseqDataclass):
    """Options of fairseq's ``masked_lm``, without those for wav2vec, data2vec and shortening."""

    data: str = option(
        MISSING,
        "folders of binarised text, separated by ':'; training takes one an epoch, in turn, "
        "everything else is in the first",
    )
    sample_break_mode: ChoiceEnum(MODES) = option(  # type: ignore[valid-type]
        "complete",
        "complete: whole sentences up to --tokens-per-sample; complete_doc: the same within a "
        "document; eos: one sentence; none: cut anywhere. Sentences longer than a block are always "
        "cut",
    )
    tokens_per_sample: int = option(512, "the most tokens of a block, <s> included")
    mask_prob: float = option(0.15, "share of the tokens that are to be predicted")
    leave_unmasked_prob: float = option(0.1, "share of these that stay as they are")
    random_token_prob: float = option(0.1, "share of these that are replaced by random tokens")
    freq_weighted_replacement: bool = option(
        False, "draw random tokens by their frequency, not with equal chances"
    )
    mask_whole_words: bool = option(
        False, "hide whole words; the folder's subword model tells where words begin"
    )
    seed: int = II("common.seed")
    train_subset: str = II("dataset.train_subset")


@register_task("posenc_masked_lm", dataclass=PosencMaskedLMConfig)
class PosencMaskedLMTask(MaskedLMTask):
    """Masked language models on sentences packed into blocks.

    Works with fairseq's criterion ``masked_lm`` and its ``roberta``; models that know of segments
    get them as ``net_input["segments"]``. What is masked depends on seed, epoch and index alone;
    the masks of splits other than the training set are the same in every epoch.
    """

    gives_segments = True
    predictions_suffix = "tsv"
    benchmark = "masked_lm"
    main_metrics = ("bits_per_token",)
    labels: Sequence[str] = ()

    @classmethod
    def setup_task(cls, cfg: PosencMaskedLMConfig, **kwargs):
        """Load the dictionary, which all folders must share."""
        if cfg.tokens_per_sample < 2:
            raise UsageError(f"--tokens-per-sample must be 2 or more, not {cfg.tokens_per_sample}")
        first, *further = utils.split_paths(cfg.data)
        dictionary = subwords.load_dictionary(first)
        for folder in further:
            if subwords.load_dictionary(folder).symbols != dictionary.symbols:
                raise UsageError(f"{folder} has another dict.txt than {first}; binarise with one")
        logger.info("dictionary: %d types", len(dictionary))
        return cls(cfg, dictionary)

    def build_criterion(self, *args, **kwargs):
        """Build the criterion; fairseq's default counts every token, and would report less loss."""
        criterion = super().build_criterion(*args, **kwargs)
        if not isinstance(criterion, MaskedLmLoss):
            raise UsageError("--task posenc_masked_lm needs --criterion masked_lm")
        return criterion

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split: pack it, hide tokens, and sort blocks of one size in random order."""
        folders = utils.split_paths(self.cfg.data)
        is_training = split == self.cfg.train_subset
        for folder in folders if is_training else folders[:1]:
            for name in (f"{split}.idx", f"{split}.bin"):
                file = os.path.join(folder, name)
                if not (os.path.isfile(file) and os.path.getsize(file)):
                    raise UsageError(
                        f"there is no binarised '{split}' set in {folder} ({name} is missing or "
                        "empty); run posenc prepare text on it"
                    )
        folder = folders[(epoch - 1) % len(folders)] if is_training else folders[0]
        check_split(folder, split)
        path = os.path.join(folder, split)
        sentences = data_utils.load_indexed_dataset(path, self.dictionary, combine=combine)
        mode, length = str(self.cfg.sample_break_mode), self.cfg.tokens_per_sample
        blocks = PackedDataset(sentences, length, mode, self.dictionary.bos())
        if not len(blocks):
            raise UsageError(f"{path} holds no text")
        longest = sentences[int(np.argmax(sentences.sizes))]
        if int(longest[-1]) != self.dictionary.eos():
            raise UsageError(f"the sentences of {path} do not end with </s>; binarise with it")
        logger.info(
            "%s: %d sentences in %d blocks, which are %.1f percent full",
            path, len(sentences), len(blocks), 100 * blocks.sizes.mean(dtype=float) / length,
        )  # fmt: skip
        masking = Masking(
            self.dictionary,
            self.mask_idx,
            probability=self.cfg.mask_prob,
            leave=self.cfg.leave_unmasked_prob,
            replace=self.cfg.random_token_prob,
            by_frequency=self.cfg.freq_weighted_replacement,
            begins_word=subwords.load(folder).begins_word if self.cfg.mask_whole_words else None,
        )
        # validation data has the same masks in every epoch
        masked = MaskedDataset(blocks, masking, self.cfg.seed, None if is_training else 1)
        with data_utils.numpy_seed(self.cfg.seed):
            shuffled = np.random.permutation(len(masked))
        self.datasets[split] = SortDataset(masked, sort_order=[shuffled, masked.sizes])

    def predict(self, model, sample: Dict[str, Any]) -> Predictions:
        """Return (block's number, (bits, tokens)) for a batch; bits are -log2 p."""
        targets = sample["target"]  # (blocks, length), with <pad> where nothing is masked
        masked = targets.ne(self.dictionary.pad())
        logits = model(**sample["net_input"], masked_tokens=masked)[0]  # (masked, vocabulary)
        bits = torch.zeros(targets.shape, dtype=torch.double, device=targets.device)
        losses = functional.cross_entropy(logits.double(), targets[masked], reduction="none")
        bits[masked] = losses / math.log(2)
        sums = zip(bits.sum(1).tolist(), masked.sum(1).tolist())
        return list(zip(sample["id"].tolist(), sums))

    def score(self, split: str, predictions: Predictions) -> Dict[str, float]:
        """Return the bits per masked token of a whole split."""
        columns = self.per_example(split, predictions)
        return {"bits_per_token": sum(columns["bits"]) / max(sum(columns["tokens"]), 1)}

    def per_example(self, split: str, predictions: Predictions) -> Dict[str, List[float]]:
        """Return the bits of every block, and how many of its tokens are masked."""
        bits, tokens = zip(*(pair for _, pair in sorted(predictions)))
        return {"bits": list(bits), "tokens": list(tokens)}

    def gold(self, split: str) -> List[List[int]]:
        """Return the masked tokens of every block."""
        blocks = self.datasets[split].dataset
        targets = (blocks[number]["target"] for number in range(len(blocks)))
        return [block[block != self.dictionary.pad()].tolist() for block in targets]

    def write(self, split: str, predictions: Predictions, stream: TextIO) -> None:
        """Write a line per block: its number, from 0, its bits, and its masked tokens."""
        stream.write("block\tbits\ttokens\n")
        stream.writelines(f"{n}\t{bits}\t{tokens}\n" for n, (bits, tokens) in sorted(predictions))

    def filter_indices_by_size(
        self, indices, dataset, max_positions=None, ignore_invalid_inputs=False
    ):
        """Return all blocks; fairseq would leave out those that are too long for the model."""
        longest = int(np.max(dataset.sizes))
        if dataset in self.datasets.values() and longest > max_positions:
            raise UsageError(
                f"there are blocks of {longest} tokens, but the model (--max-positions) or "
                f"--max-tokens takes {max_positions}; raise that, or lower --tokens-per-sample "
                f"{self.cfg.tokens_per_sample}"
            )
        return super().filter_indices_by_size(
            indices, dataset, max_positions, ignore_invalid_inputs
        )

    def get_batch_iterator(self, *args, **kwargs):
        """Return fairseq's iterator, whose workers are new in every epoch.

        Workers that lived on would keep the masks of their first epoch, and a resumed run would
        see others.
        """
        iterator = super().get_batch_iterator(*args, **kwargs)
        iterator.reuse_dataloader = False
        return iterator

    def max_positions(self) -> Optional[int]:
        """Return the most tokens of a block, ``<s>`` included."""
        return self.cfg.tokens_per_sample
