"""The task ``posenc_translation``: fairseq's translation, and BOS before the source if wanted."""

import glob
import os
from dataclasses import dataclass

import numpy as np
from fairseq import utils
from fairseq.data import ListDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II

from fairseq_posenc.data.indexed import check_folders, check_sides, check_split, read_dictionary
from fairseq_posenc.data.source_bos import align_without_bos, with_source_bos
from fairseq_posenc.errors import UsageError
from fairseq_posenc.options import option
from fairseq_posenc.tasks.bleu_options import check_bleu_options, warn_of_limit

OUR_TRANSLATION = "posenc_translation"


@dataclass
class PosencTranslationConfig(TranslationConfig):
    """Options of fairseq's translation task, one more, and one of the data sets'."""

    prepend_source_bos: bool = option(
        False, "put BOS before every source sentence (CAPE's later version, D.1)"
    )
    skip_invalid_size_inputs_valid_test: bool = II("dataset.skip_invalid_size_inputs_valid_test")


@register_task(OUR_TRANSLATION, dataclass=PosencTranslationConfig)
class PosencTranslationTask(TranslationTask):
    """Translation from binarised parallel data, as in fairseq.

    A model that was trained with ``--prepend-source-bos`` gets its BOS whether or not the option is
    given again, at generation and where it is fine-tuned.
    """

    def __init__(self, cfg: PosencTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        # What the option and the models loaded so far say, as a set: both True and False is an
        # error. An option that is not given says nothing.
        self.source_bos = {True} if cfg.prepend_source_bos else set()

    @classmethod
    def setup_task(cls, cfg: PosencTranslationConfig, **kwargs):
        """Check the options, and load the dictionaries."""
        folder = utils.split_paths(cfg.data)[0]
        if len(glob.glob(os.path.join(glob.escape(folder), "dict.*.txt"))) < 2:
            raise UsageError(
                f"no binarised parallel data in {folder}: dict.<language>.txt is missing; posenc "
                "prepare translation makes such a folder"
            )
        check_folders(cfg.data)
        if cfg.eval_bleu:
            check_bleu_options(cfg, folder)
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str):
        """Load a dictionary."""
        return read_dictionary(filename)

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, and follow it in whether sources start with BOS."""
        model = super().build_model(cfg, from_checkpoint)
        # The configuration of a model that is fine-tuned gets the option from its checkpoint while
        # the model is built, so it is read only now.
        source_bos = bool(getattr(cfg, "prepend_source_bos", False))
        self.cfg.prepend_source_bos = self.cfg.prepend_source_bos or source_bos
        if from_checkpoint:
            self.source_bos.add(source_bos)
        if len(self.source_bos) > 1:
            raise UsageError(
                "a model trained without --prepend-source-bos takes no BOS: leave the option out, "
                "and do not join such models with those that were trained with it"
            )
        return model

    def build_generator(self, models, args, *arguments, **kwargs):
        """Return fairseq's generator; its alignments count sources as they are in the data."""
        if self.cfg.prepend_source_bos and getattr(args, "match_source_len", False):
            raise UsageError(
                "--match-source-len counts BOS as a token; leave it out for models that were "
                "trained with --prepend-source-bos"
            )
        generator = super().build_generator(models, args, *arguments, **kwargs)
        if self.cfg.prepend_source_bos and getattr(args, "print_alignment", None):
            align_without_bos(generator)
        return generator

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split; too long a pair is an error now, not in fairseq's first validation.

        So is a folder without the training set, not in the epoch that reads it.
        """
        folders, is_training = utils.split_paths(self.cfg.data), split == self.cfg.train_subset
        for folder in folders if is_training else folders[:1]:
            # fairseq-generate, which gives this option, needs no targets
            check_sides(folder, split, self.cfg, with_targets="task_cfg" not in kwargs)
        check_split(folders[(epoch - 1) % len(folders) if is_training else 0], split)
        if self.cfg.prepend_source_bos and self.cfg.num_batch_buckets:
            raise UsageError("--prepend-source-bos and --num-batch-buckets exclude each other")
        # BOS is put there after --truncate-source has cut, so the cut must leave room for it
        limit = self.cfg.max_source_positions
        self.cfg.max_source_positions = limit - int(self.cfg.prepend_source_bos)
        # with its default of -1, fairseq cannot join the parts of a set (train, train1, …)
        copies = self.cfg.upsample_primary
        self.cfg.upsample_primary = 1 if copies < 0 else copies
        try:
            super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        finally:
            self.cfg.max_source_positions, self.cfg.upsample_primary = limit, copies
        if self.cfg.prepend_source_bos:
            self.datasets[split] = with_source_bos(self.datasets[split])
        before_training = not is_training and "task_cfg" not in kwargs
        if before_training and not self.cfg.skip_invalid_size_inputs_valid_test:
            self._check_lengths(split)
            warn_of_limit(self.cfg, split, self.datasets[split])

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
