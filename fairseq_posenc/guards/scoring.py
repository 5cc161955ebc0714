"""Validation and translation with a trained model: all of a set, on any number of workers."""

import os
from argparse import ArgumentParser, Namespace
from typing import Any, Callable, List, Optional

import torch
from fairseq import options, utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from fairseq.distributed import utils as distributed_utils
from fairseq.models import FairseqLanguageModel
from fairseq.trainer import Trainer

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.groups import group_options, name_of
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.guards.signatures import dictionary_hash
from fairseq_posenc.patching import replaces

_MULTIPLE = "required_batch_size_multiple"  # fairseq drops the end of a set by it


@replaces(Trainer, "get_valid_iterator")
def _get_valid_iterator(validate: Callable, trainer: Trainer, *args: Any, **kwargs: Any) -> Any:
    """Let validations of a training lose nothing."""
    sets = trainer.cfg.dataset
    multiple, sets[_MULTIPLE] = sets[_MULTIPLE], 1
    try:
        return validate(trainer, *args, **kwargs)
    finally:
        sets[_MULTIPLE] = multiple


@replaces(options, "parse_args_and_arch")
def _parse(
    parse: Callable,
    parser: ArgumentParser,
    input_args: Optional[List[str]] = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let fairseq-validate find the model's task.

    Options that programs for trained models take and do nothing with are refused.
    """
    arguments = parser.parse_known_args(input_args)[0]
    if getattr(arguments, "path", None):  # which programs that train do not have
        _refuse_without_effect(arguments)
        if getattr(arguments, "task", "") is None:
            parser.set_defaults(task=_task_of(arguments.path))
    return parse(parser, input_args, *args, **kwargs)


@replaces(distributed_utils, "all_gather_list")
def _all_gather_list(
    gather: Callable, data: Any, group: Any = None, max_size: int = 16384
) -> List[Any]:
    """Let workers on CPUs also gather what they have found, as those of fairseq-validate do.

    fairseq's has buffers on a GPU.
    """
    if torch.cuda.is_available():
        return gather(data, group, max_size)
    group = distributed_utils.get_global_group() if group is None else group
    values: List[Any] = [None] * distributed_utils.get_world_size(group)
    torch.distributed.all_gather_object(values, data, group=group)
    return values


def _refuse_without_effect(arguments: Namespace) -> None:
    for name in ("amp", "bf16", "memory_efficient_bf16"):
        if getattr(arguments, name, False):
            raise UsageError(
                f"--{name.replace('_', '-')} has no effect here: trained models compute in "
                "float32, or with --fp16 in float16; leave it out"
            )
    shards = getattr(arguments, "num_shards", None) or 1
    if shards > 1 and not hasattr(arguments, "context_window"):  # fairseq-eval-lm's, which reads it
        raise UsageError(
            "--num-shards has no effect here, and each process would take the whole set: "
            f"fairseq-generate shares it out by --distributed-world-size {shards} and "
            f"--distributed-rank 0 to {shards - 1}"
        )
    if getattr(arguments, "lm_path", None) and hasattr(arguments, "buffer_size"):
        raise UsageError("fairseq-interactive does not read --lm-path; fairseq-generate does")


def _task_of(path: str) -> Optional[str]:
    """Return the name of the task that a model was trained for."""
    state = load_checkpoint(path, mmap=True)
    check_options(state, path, builds=False)
    return name_of(group_options(state, "task"), "task") or None


def check_dictionary(path: str, data: str) -> None:
    """Check that a language model finds its vocabulary, as beside translations (``--lm-path``).

    Raises:
        UsageError: the folder ``data`` has dictionaries of two languages and not ``dict.txt``.
    """
    folder = utils.split_paths(data)[0]
    _, target = infer_language_pair(folder) if os.path.isdir(folder) else (None, None)
    missing = target and not os.path.exists(os.path.join(folder, "dict.txt"))
    if missing and _task_of(path) == "language_modeling":
        # the folder may have several pairs, or be translated from its target
        raise UsageError(
            f"the language model {path} reads its vocabulary from {folder}/dict.txt, which is "
            "missing; it must be that of the language that is translated to: "
            f"cp {folder}/dict.LANGUAGE.txt {folder}/dict.txt"
        )


def _check_language_model(model: Any, dictionary: Dictionary) -> None:
    """Check that a language model's scores are of the tokens that are translated to.

    Raises:
        UsageError: it is another kind of model, or has another dictionary.
    """
    if not isinstance(model, FairseqLanguageModel):
        raise UsageError("--lm-path names no language model")
    if dictionary_hash(model.decoder.dictionary) != dictionary_hash(dictionary):
        raise UsageError(
            "the language model's dict.txt is not the target's dictionary, so its scores are of "
            "other tokens: train one on text with the subwords and dict.txt of the translations"
        )


def patch_task_to_read_all(task: Any) -> None:
    """Let a task with a trained model give all of a set, and take the empty batches of workers.

    Where batches cannot be shared out evenly, a worker gets an empty one at the end. A language
    model that takes part in a translation is checked.
    """
    if "get_batch_iterator" in vars(task):
        return  # by this function: a task may have several models, one after the other
    iterate, step, build = task.get_batch_iterator, task.valid_step, task.build_generator

    def get_batch_iterator(*args: Any, **kwargs: Any) -> Any:
        return iterate(*args, **{**kwargs, _MULTIPLE: 1})

    def valid_step(sample: Any, *args: Any, **kwargs: Any) -> Any:
        if sample:
            return step(sample, *args, **kwargs)
        getattr(task, "share_predictions", lambda _: None)({})
        return 0.0, 0, {}

    def build_generator(*args: Any, **kwargs: Any) -> Any:
        model = (kwargs.get("extra_gen_cls_kwargs") or {}).get("lm_model")
        if model is not None:
            _check_language_model(model, task.target_dictionary)
        return build(*args, **kwargs)

    task.get_batch_iterator, task.valid_step = get_batch_iterator, valid_step
    task.build_generator = build_generator
