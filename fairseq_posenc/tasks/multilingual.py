"""The task ``posenc_multilingual``: translation between many languages, each with a token."""

import argparse
import os
from typing import Any, Dict, Optional

from fairseq.tasks import FairseqTask, register_task
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask

from fairseq_posenc.data.indexed import check_folders, check_split, read_dictionary
from fairseq_posenc.data.subwords import DICTIONARY
from fairseq_posenc.errors import UsageError

OUR_MULTILINGUAL = "posenc_multilingual"


@register_task(OUR_MULTILINGUAL)
class PosencMultilingualTask(TranslationMultiSimpleEpochTask):
    """fairseq's ``translation_multi_simple_epoch``, with a search that leaves the language out.

    With ``--decoder-langtok`` every translation begins with the token of its language. It is not
    chosen, so here it counts as certain. fairseq counts its probability: divided by the length,
    that makes long translations better.
    """

    @classmethod
    def setup_task(cls, args: Any, **kwargs):
        """Check the languages and the folders, and load the dictionaries."""
        if args.lang_pairs is None and args.source_lang and args.target_lang:
            args.lang_pairs = f"{args.source_lang}-{args.target_lang}"
        pairs = args.lang_pairs or []
        for pair in pairs.split(",") if isinstance(pairs, str) else pairs:
            if pair.count("-") != 1:
                raise UsageError(
                    f"--lang-pairs {pair}: expected two languages with a hyphen between, such as "
                    "en-de; write those that have one themselves as zh_CN, in names of files, too"
                )
        check_folders(args.data)
        try:
            task = super().setup_task(args, **kwargs)
        except UsageError:
            raise
        # fairseq's errors about languages are ValueErrors
        except ValueError as error:
            raise UsageError(
                f"{str(error):.300}; name the languages with --lang-pairs, or in Python with "
                "source_lang= and target_lang="
            ) from None
        # a checkpoint says them all itself, wherever the list of the training is
        args.langs, args.lang_dict = task.langs, None
        return task

    @classmethod
    def of(cls, task: TranslationMultiSimpleEpochTask) -> "PosencMultilingualTask":
        """Return a task that may be fairseq's own as one of ours."""
        return cls(task.args, task.langs, task.dicts, task.training)

    @classmethod
    def load_dictionary(cls, filename: str):
        """Load a dictionary; a folder may have one of all languages, ``dict.txt``."""
        shared = os.path.join(os.path.dirname(filename), DICTIONARY)
        is_shared = os.path.exists(shared) and not os.path.exists(filename)
        return read_dictionary(shared if is_shared else filename)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split of all pairs of languages."""
        for folder in self.args.data.split(os.pathsep):
            check_split(folder, split)
        try:
            super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        except (FileNotFoundError, KeyError) as error:
            raise UsageError(
                f"there is no binarised '{split}' set of {error} in {self.args.data}; run posenc "
                "prepare translation"
            ) from None

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """Return a data set of sources alone, whose sizes count the token of the language."""
        pairs = super().build_dataset_for_inference(src_tokens, src_lengths, constraints)
        pairs.src_sizes = pairs.sizes = pairs.src.sizes
        return pairs

    @property
    def target_token(self) -> Optional[int]:
        """The number of the token that all translations begin with, if there is one.

        Raises:
            UsageError: the languages are those of a training, without the ones to translate.
        """
        if self.args.target_lang is None:
            source, target = self.lang_pairs[0].split("-", 1)
            raise UsageError(
                f"name the languages to translate, as in --source-lang {source} --target-lang "
                f"{target}; --lang-pairs names those that the model was trained on"
            )
        _, token_type = self.args.langtoks["main"]
        return self.data_manager.get_decoder_langtok(self.args.target_lang, token_type)

    def build_generator(
        self,
        models,
        args,
        seq_gen_cls=None,
        extra_gen_cls_kwargs=None,
        prefix_allowed_tokens_fn=None,
    ):
        """Return fairseq's generator, in which the token of the language counts as certain."""
        generator_kwargs = dict(extra_gen_cls_kwargs or {})
        if self.target_token is not None and not getattr(args, "keep_inference_langtok", False):
            generator_kwargs["symbols_to_strip_from_output"] = {self.target_token}
        # fairseq's own task takes no prefix_allowed_tokens_fn
        generator = FairseqTask.build_generator(
            self, models, args, seq_gen_cls, generator_kwargs, prefix_allowed_tokens_fn
        )
        if self.target_token is not None and hasattr(generator, "_prefix_tokens"):
            _force_for_nothing(generator, self.target_token)
        return generator


def _force_for_nothing(generator: Any, token: int) -> None:
    """Let a token with which a search is forced to begin have the score 0."""
    force = generator._prefix_tokens

    def forced(step, lprobs, scores, tokens, prefix_tokens, beam_size):
        # lprobs: (batch · beam, types), all but the forced type -inf
        lprobs, tokens, scores = force(step, lprobs, scores, tokens, prefix_tokens, beam_size)
        if step == 0:
            # (batch,) → (batch · beam,)
            is_forced = prefix_tokens[:, 0].eq(token).repeat_interleave(beam_size)
            lprobs[is_forced, token] = 0.0
        return lprobs, tokens, scores

    generator._prefix_tokens = forced


def default_options() -> Dict[str, Any]:
    """Return the options of the task as they are where none is given."""
    parser = argparse.ArgumentParser(add_help=False)
    PosencMultilingualTask.add_args(parser)
    # the last two are options of fairseq-train that the task reads
    return {**vars(parser.parse_args([""])), "seed": 1, "dataset_impl": None}
