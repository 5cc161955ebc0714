"""The task ``posenc_translation``: fairseq's translation, and BOS before the source if wanted."""

import copy
import glob
import os
from dataclasses import dataclass

import numpy as np
from fairseq import utils
from fairseq.data import LanguagePairDataset, ListDataset, PrependTokenDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_posenc.data.indexed import check_split, read_dictionary
from fairseq_posenc.errors import UsageError
from fairseq_posenc.options import option
from fairseq_posenc.tasks.batch_draws import BatchDraws


@dataclass
class PosencTranslationConfig(TranslationConfig):
    """Options of fairseq's translation task, and one more."""

    prepend_source_bos: bool = option(
        False, "put BOS before every source sentence (CAPE's later version, D.1)"
    )


@register_task("posenc_translation", dataclass=PosencTranslationConfig)
class PosencTranslationTask(BatchDraws, TranslationTask):
    """Translation from binarised parallel data, as in fairseq.

    A model that was trained with ``--prepend-source-bos`` gets its BOS at generation too, whether
    or not the option is given again.
    """

    def __init__(self, cfg: PosencTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        self.may_skip = False

    @classmethod
    def setup_task(cls, cfg: PosencTranslationConfig, **kwargs):
        """Check the options, and load the dictionaries."""
        folder = utils.split_paths(cfg.data)[0]
        if len(glob.glob(os.path.join(glob.escape(folder), "dict.*.txt"))) < 2:
            raise UsageError(
                f"no binarised parallel data in {folder}: dict.<language>.txt is missing; run "
                "fairseq-preprocess first"
            )
        if cfg.prepend_source_bos and cfg.num_batch_buckets:
            raise UsageError("--prepend-source-bos and --num-batch-buckets exclude each other")
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str):
        """Load a dictionary."""
        return read_dictionary(filename)

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, and follow it in whether sources start with BOS."""
        if getattr(cfg, "prepend_source_bos", False):
            self.cfg.prepend_source_bos = True
        self.may_skip = getattr(cfg, "skip_invalid_size_inputs_valid_test", False)
        return super().build_model(cfg, from_checkpoint)

    def get_batch_iterator(self, dataset, *args, epoch: int = 1, **kwargs):
        """Return fairseq's iterator, with the batches of an unbroken run where one resumes.

        fairseq's fork groups sentences of equal lengths by the epoch in which a run starts, where
        it keeps the batches for all epochs.
        """
        if not (kwargs.get("update_epoch_batch_itr") or kwargs.get("disable_iterator_cache")):
            epoch = 1
        return super().get_batch_iterator(dataset, *args, epoch=epoch, **kwargs)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split.

        Too long a pair is an error now; fairseq would find it in the first validation only.
        """
        folders = utils.split_paths(self.cfg.data)
        shard = (epoch - 1) % len(folders) if split == self.cfg.train_subset else 0
        check_split(folders[shard], split)
        try:
            super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        except FileNotFoundError as error:
            raise UsageError(
                f"there is no binarised '{split}' set: {error}; run fairseq-preprocess on it"
            ) from None
        if self.cfg.prepend_source_bos:
            self.datasets[split] = with_source_bos(self.datasets[split])
        before_training = split != self.cfg.train_subset and "task_cfg" not in kwargs
        if before_training and not self.may_skip:
            self._check_lengths(split)

    def _check_lengths(self, split: str) -> None:
        pairs, limits = self.datasets[split], self.max_positions()
        for side, sizes, limit in zip(
            ("source", "target"), (pairs.src_sizes, pairs.tgt_sizes), limits
        ):
            longest = int(np.max(sizes)) if sizes is not None and len(sizes) else 0
            if longest > limit:
                raise UsageError(
                    f"the '{split}' set has a {side} of {longest} tokens, more than "
                    f"--max-{side}-positions {limit}; raise that, or skip such pairs with "
                    "--skip-invalid-size-inputs-valid-test"
                )

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """Return a data set of sources alone, for ``fairseq-interactive`` and the hub interface."""
        sources = ListDataset(src_tokens, src_lengths)
        pairs = super().build_dataset_for_inference(sources, src_lengths, constraints)
        return with_source_bos(pairs) if self.cfg.prepend_source_bos else pairs


def with_source_bos(pairs: LanguagePairDataset) -> LanguagePairDataset:
    """Return the same sentence pairs, each source with BOS before it and one token longer.

    CAPE does so in its later version (appendix D.1): after a global shift nothing else tells which
    token is the first.
    """
    longer = copy.copy(pairs)
    longer.src = PrependTokenDataset(pairs.src, pairs.src_dict.bos())
    longer.src_sizes = pairs.src_sizes + 1
    # (sentences, 2), or (sentences,) if there are no targets
    longer.sizes = pairs.sizes + (1 if pairs.tgt_sizes is None else np.array([1, 0]))
    return longer
