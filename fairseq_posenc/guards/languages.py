"""Languages that a model was trained to translate, beside those that are asked for."""

import logging
from typing import Any, List, Mapping, Optional

from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask

from fairseq_posenc.checkpoints.groups import as_dict, group_options
from fairseq_posenc.data.languages import languages_of
from fairseq_posenc.errors import UsageError, printable

logger = logging.getLogger(__name__)

_SHOWN = 10  # languages
_STYLE = "lang_tok_style"  # an option of tasks of many languages alone


def check_languages(
    state: Any,
    path: str,
    task: Any,
    overrides: Mapping[str, Any] = {},
    fine_tuning: bool = False,
) -> None:
    """Compare the languages of a checkpoint with those that a task or ``overrides`` ask for.

    Models whose languages share a dictionary would translate the wrong way round without an error,
    and those of many languages without the tag that says which one is wanted. A checkpoint that
    does not record its languages may have any.

    Raises:
        UsageError: they are swapped, or there are many with other numbers or tags than in training,
            but in fine-tuning. Other languages of a pair are a warning.
    """
    options, own = group_options(state, "task"), getattr(task, "cfg", None)
    if task is not None and not fine_tuning:
        _check_many(options, task, printable(path))
    sides = ("source_lang", "target_lang")
    asked = tuple(overrides.get(side) or getattr(own, side, None) for side in sides)
    trained = tuple(map(options.get, sides))
    is_multilingual = options.get("lang_pairs") is not None
    if is_multilingual or None in trained or None in asked or trained == asked:
        return
    text = "{} was trained to translate {} to {}, and {} to {} is asked for"
    text = printable(text.format(path, *trained, *asked))
    if trained == asked[::-1] and not fine_tuning:
        raise UsageError(f"{text}; give --source-lang {trained[0]} --target-lang {trained[1]}")
    logger.warning("%s", text)


def _check_many(trained: Mapping[str, Any], task: Any, path: str) -> None:
    """Check that a task of many languages has a model of such a task, with equal tags."""
    of_many = isinstance(task, TranslationMultiSimpleEpochTask)
    if _STYLE not in trained:
        if of_many and trained.get("source_lang"):
            raise UsageError(f"{path} translates one pair of languages: --task posenc_translation")
        return
    if not of_many:
        raise UsageError(f"{path} translates between many languages: --task posenc_multilingual")
    languages = _languages(trained)
    if languages not in (None, task.langs):
        shown = printable(",".join(languages[:_SHOWN])) + ",..." * (len(languages) > _SHOWN)
        raise UsageError(
            f"{path} was trained on the languages {shown}, whose order gives them their numbers, "
            f"and this command has {','.join(task.langs[:_SHOWN])}: give all of them by --langs or "
            "--lang-dict, or the --lang-pairs of the training"
        )
    tags, tags_here = _tags(trained), _tags(vars(task.args))
    if tags != tags_here:
        raise UsageError(
            f"{path} was trained with {printable(tags)}, and this command has {tags_here}: "
            "without the tags of its training it does not know which language is wanted"
        )


def _languages(options: Mapping[str, Any]) -> Optional[List[str]]:
    """Return the languages in the order of their numbers; None if they are in a file."""
    in_file = options.get("lang_dict") and not options.get("langs")
    return None if in_file else languages_of(options) or None


def _tags(options: Mapping[str, Any]) -> str:
    """Return the options by which sentences get tags of languages."""
    source, target = as_dict(options.get("langtoks")).get("main") or (
        options.get("encoder_langtok"),
        options.get("decoder_langtok"),
    )
    flags = [f"--encoder-langtok {source}" if source else "no --encoder-langtok"]
    flags.append("--decoder-langtok" if target else "no --decoder-langtok")
    flags.append(f"--lang-tok-style {options.get(_STYLE)}")
    if options.get("lang_tok_replacing_bos_eos"):
        flags.append("--lang-tok-replacing-bos-eos")
    return " ".join(flags)
