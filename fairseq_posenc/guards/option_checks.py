"""Checks of a checkpoint's own options, between reading them and building anything.

fairseq builds the model, task and criterion that a checkpoint names, evaluates some of its options
as Python (``eval``), lets OmegaConf resolve ``${oc.env:…}`` in them, and opens files that they
name. So an option is kept only if a known model, task or criterion declares it (or fairseq's groups
common, dataset and optimization do), and only if it is a number, a choice or a certain name. All
others are as if they had not been given: whoever loads a checkpoint says where the data are, how to
generate and how to train.
"""

import argparse
import ast
import logging
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from fairseq_posenc import register_all
from fairseq_posenc.checkpoints.groups import as_dict
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.signatures import RECORDED

logger = logging.getLogger(__name__)

# tasks and criterions of fairseq that an untrusted checkpoint may name, beside ours
KNOWN: Dict[str, Set[str]] = {
    "arch": set(),  # by class, see MODELS
    "task": {
        "translation", "translation_multi_simple_epoch", "masked_lm", "sentence_prediction",
        "language_modeling",
    },
    "criterion": {
        "cross_entropy", "label_smoothed_cross_entropy", "masked_lm", "sentence_prediction",
        "label_smoothed_cross_entropy_with_alignment", "label_smoothed_cross_entropy_with_rdrop",
        "label_smoothed_cross_entropy_r3f", "sentence_prediction_r3f",
        "sentence_prediction_adapters", "adaptive_loss",
    },
}  # fmt: skip
MODELS = {
    "fairseq.models.transformer.transformer_legacy.TransformerModel",
    "fairseq.models.transformer_lm.TransformerLanguageModel",
    "fairseq.models.roberta.model.RobertaModel",
}
_BUILT = {"model": "arch", "task": "task", "criterion": "criterion"}  # registry by group
GROUPS = ("common", "dataset", "optimization")  # that building reads from, too
# The options that may have other text than numbers and choices, and its form. None is a file: a
# checkpoint has the content of its ADMIN profile.
_NAME = r"[\w.,:@+-]{1,100}"
TEXT = {
    "source_lang": r"[\w.-]{1,40}",
    "target_lang": r"[\w.-]{1,40}",
    "classification_head_name": _NAME,
    "train_subset": _NAME,
    "best_checkpoint_metric": _NAME,
    "position_encoding": _NAME,  # that of a later version has a message of its own
    "position_signature": r"[\w.:|+-]{1,1000}",
    "dictionary_hash": r"[0-9a-f]{16}",
    "position_sharing": _NAME,
    "position_initialization": _NAME,
    "train_only": r"[\w.*?,]{1,1000}",
    "position_scale_method": _NAME,
    "position_inner": _NAME,
    "position_source_scale": "auto",
    "position_drawn_below": "auto",
    "position_rank": "auto",
    "admin_profile": r'\{[\w".,:\[\]{}+-]*\}',
}
# those that are a list of such text, or one with commas, and the form of each
_LANGUAGE = r"[\w.]{1,40}"
LISTS = {
    "langs": _LANGUAGE,
    "langtoks_specs": _LANGUAGE,
    "lang_pairs": f"{_LANGUAGE}-{_LANGUAGE}",
}
_MOST = 50_000  # all pairs of NLLB's languages are 40,602
_FLAGS = (
    "no_tie_adaptive_proj decoder_final_norm scale_attn scale_fc scale_heads scale_resids".split()
)
_LONGEST_LITERAL = 1000  # characters; deeper nesting ends Python 3.10


class Refused(Exception):
    """An option of an untrusted checkpoint names an unknown class, or has a bad value."""


def check_options(
    state: Any, path: str, overrides: Optional[Mapping[str, Any]] = None, builds: bool = True
) -> None:
    """Leave in a checkpoint only those of its options that may be followed.

    Args:
        state: as it was read; its ``args`` and ``cfg`` are replaced.
        path: of the checkpoint, for messages.
        overrides: options that the caller gives instead; they, and those of the command line, may
            name the checkpoint's architecture, task or criterion, whose options then are kept as
            they are, or a known one to build in its place.
        builds: whether an unknown model, task or criterion is refused. It is not where a training
            builds its own model and compares the weights, and where an export names what is unknown
            itself.

    Raises:
        UsageError: it asks for another model, or an option has a value that it cannot have.
    """
    register_all()
    try:
        if not isinstance(state, dict):
            raise Refused("it holds no model and options")
        # whoever types the name of a class answers for what it builds
        overrides = {**_of_command_line(), **(overrides or {})}
        # names first: they say which options are declared, and so may stay
        _replace_unknown(state, overrides, builds)
        # up to fairseq 0.10 all options are in one namespace; since then, in groups
        if state.get("args") is not None:
            args = _as_dict(state["args"])
            asked = {group: [args.get(group)] for group in KNOWN}
            if _are_known(asked):
                options = _allowed(args, _declared(asked))
                state["args"] = argparse.Namespace(**_only(args, KNOWN), **options)
        if state.get("cfg") is not None:
            state["cfg"] = _checked_groups(_as_dict(state["cfg"]))
    except Refused as error:
        raise UsageError(f"checkpoint {path} refused: {error}") from None


def _checked_groups(cfg: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the groups of options, with fairseq's defaults for groups that build nothing."""
    parts = {group: _as_dict(cfg.get(group) or {}) for group in (*_BUILT, *GROUPS)}
    asked = {
        key: [parts[group].get(key) for key in ("_name", key)] for group, key in _BUILT.items()
    }
    # a group may be a namespace with the options of all
    declared = _declared(asked)
    defaults = OmegaConf.structured(FairseqConfig())
    checked: Any = OmegaConf.to_container(defaults, resolve=True, enum_to_str=True)
    checked["checkpoint"]["restore_file"] = None  # no training begins there
    for group in GROUPS:
        checked[group].update(_allowed(parts[group], declared))
    for group, key in _BUILT.items():
        checked[group] = cfg.get(group) or None
        if parts[group] and _are_known({key: asked[key]}):
            options = {**_only(parts[group], ("_name", key)), **_allowed(parts[group], declared)}
            is_namespace = isinstance(cfg[group], argparse.Namespace)
            checked[group] = argparse.Namespace(**options) if is_namespace else options
    return checked


def _replace_unknown(state: Dict[str, Any], overrides: Mapping[str, Any], builds: bool) -> None:
    """Replace unknown names by those of known classes, by whose options a checkpoint is read then.

    They are those that the user names; for what is not built, similar ones of fairseq. A criterion
    is built by nothing but ``fairseq-validate``, so the log says which it is then.

    Raises:
        Refused: an architecture or task is unknown, and the user names none.
    """
    similar = _similar(state)
    cfg: Any = state.get("cfg") if isinstance(state.get("cfg"), dict) else {}
    names: List[Tuple[Any, str, str]] = [(state.get("args"), key, key) for key in KNOWN]
    for group, registry in _BUILT.items():
        names += [(cfg.get(group), registry, key) for key in ("_name", registry)]
    for options, registry, key in names:
        options = as_dict(options)
        name = options.get(key)
        chosen = overrides.get(registry) if builds else similar[registry]
        if not name or not isinstance(name, str) or name == chosen or _is_known(registry, name):
            continue
        if not (isinstance(chosen, str) and _is_known(registry, chosen)):
            if registry != "criterion":
                raise Refused(_advice(registry, name, similar[registry]))
            chosen = similar[registry]
            logger.info(
                "the checkpoint's --criterion %.60r is not built from untrusted checkpoints; "
                "fairseq-validate computes %s instead (--criterion names another)",
                name,
                chosen,
            )
        options[key] = chosen


def _similar(state: Dict[str, Any]) -> Dict[str, str]:
    """Return fairseq's own architecture, task and criterion that go with the weights."""
    weights: Any = state.get("model") if isinstance(state.get("model"), dict) else {}
    if any(".sentence_encoder." in str(name) for name in weights):
        return {"arch": "roberta", "task": "masked_lm", "criterion": "masked_lm"}
    if any(str(name).startswith("encoder.") for name in weights):
        return {"arch": "transformer", "task": "translation", "criterion": "cross_entropy"}
    return {"arch": "transformer_lm", "task": "language_modeling", "criterion": "cross_entropy"}


def _advice(registry: str, name: str, similar: str) -> str:
    """Say what is not built, and how the user takes the responsibility for it."""
    entries: Any = ARCH_MODEL_REGISTRY if registry == "arch" else TASK_REGISTRY
    chosen, reason = similar, f"it is fairseq's {similar} by another name"
    if name in entries:
        chosen, reason = name, "you trust it"
    words = f"--task {chosen}"
    if registry == "arch":
        words = f"--model-overrides \"{{'arch': '{chosen}'}}\""
    return (
        f"it asks for --{registry} {name!r:.60}, which is not one of those that are built for "
        f"strangers; if {reason}, say so: {words} with fairseq-generate and fairseq-validate, "
        f"{registry}='{chosen}' in Python; or train from it with --finetune-from-model, which "
        "takes its weights alone"
    )


def _is_known(registry: str, name: str) -> bool:
    model: Any = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) or object
    if name in KNOWN[registry] or re.fullmatch(r"posenc_\w+", name):
        return True
    return registry == "arch" and f"{model.__module__}.{model.__name__}" in MODELS


def _as_dict(options: Any) -> Dict[str, Any]:
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    if not isinstance(options, dict):
        raise Refused("its options are not a dictionary")
    return options


def _only(options: Mapping[str, Any], names: Any) -> Dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}


def _are_known(asked: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a checkpoint names known classes only.

    Raises:
        Refused: a name is no text, or there is none of a model.
    """
    for registry, names in asked.items():
        for name in names:
            if not isinstance(name, (str, type(None))):
                raise Refused(f"its option {registry} is a {type(name).__name__}")
        if "" in names or (registry == "arch" and not any(names)):
            raise Refused(f"its options name no --{registry}")
    return all(_is_known(key, name) for key in asked for name in asked[key] if name is not None)


def _declared(asked: Mapping[str, Sequence[Any]]) -> Dict[str, argparse.Action]:
    """Return the options of a model, task and criterion, and fairseq's of three groups."""
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    # read by fairseq, from old checkpoints or Hydra's, without being declared
    for name in _FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--max-positions", type=int)
    for name in RECORDED:
        parser.add_argument(f"--{name}")
    for group in GROUPS:
        gen_parser_from_dataclass(parser, FairseqConfig.__dataclass_fields__[group].type())
    registries = {"arch": ARCH_MODEL_REGISTRY, "task": TASK_REGISTRY}
    for registry, names in asked.items():
        for name in filter(lambda name: isinstance(name, str), names):
            # an architecture also sets options that have no flag
            chosen = argparse.Namespace()
            ARCH_CONFIG_REGISTRY.get(name if registry == "arch" else None, lambda _: None)(chosen)
            for key, value in vars(chosen).items():
                parser.add_argument(f"--{key}", type=type(value))
            built: Any = registries.get(registry, CRITERION_REGISTRY).get(name)
            getattr(built, "add_args", lambda _: None)(parser)
    return {action.dest: action for action in parser._actions}


def _allowed(options: Mapping[str, Any], declared: Mapping[str, argparse.Action]) -> Dict[str, Any]:
    """Return the options that are declared; text that is not allowed becomes the default."""
    return {
        name: _value(value, declared[name]) for name, value in options.items() if name in declared
    }


def _value(value: Any, option: argparse.Action) -> Any:
    """Return the value of an option, or its default if it is text that is not allowed.

    Raises:
        Refused: it should be a number, a choice or of a certain form, and it is not.
    """
    name = option.dest
    if name.startswith("eval_"):
        return option.default  # the command that evaluates says how, not the checkpoint
    is_text = isinstance(value, str)
    if name in LISTS and value is not None:
        return _texts(value, name)
    if is_text and (value in (option.choices or ()) or re.fullmatch(TEXT.get(name, "(?!)"), value)):
        return value
    is_number = option.nargs == 0 or option.type in (bool, int, float)
    try:
        # fairseq evaluates text, so its value is checked
        evaluated = _evaluated(value) if is_text else value
        if is_number and isinstance(evaluated, (list, tuple)):
            raise ValueError("more than one")
        _check_numbers(evaluated)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        if is_number or option.choices or name in TEXT:
            shown = repr(value) if is_text else f"a {type(value).__name__}"
            raise Refused(f"its option {name} cannot be {shown:.60}") from None
        return option.default
    # lists of layers to keep stay text, which fairseq splits
    return evaluated if is_number else value


def _texts(value: Any, name: str) -> List[str]:
    """Return the value of an option that is a list of text."""
    texts = value.split(",") if isinstance(value, str) else value
    is_list = isinstance(texts, (list, tuple)) and len(texts) <= _MOST
    if not (is_list and all(isinstance(s, str) and re.fullmatch(LISTS[name], s) for s in texts)):
        raise Refused(f"its option {name} cannot be {value!r:.60}")
    return list(texts)


def _evaluated(text: str) -> Any:
    if len(text) > _LONGEST_LITERAL:
        raise ValueError("too long")
    return ast.literal_eval(text)


def _check_numbers(value: Any) -> None:
    """Check that there is nothing but numbers and lists of them in a value.

    Raises:
        ValueError: there is.
    """
    if isinstance(value, (list, tuple)):
        for inner in value:
            _check_numbers(inner)
    elif value is not None and not isinstance(value, (bool, int, float, np.number, np.bool_)):
        raise ValueError("neither number nor list")


def _of_command_line() -> Dict[str, str]:
    """Return the architecture, task and criterion that the user has named."""
    chosen = {}
    flags: Dict[str, str] = {f"--{registry}": registry for registry in KNOWN}
    flags["-a"] = "arch"
    for word, following in zip(sys.argv, [*sys.argv[1:], ""]):
        flag, equals, value = word.partition("=")
        if flag in flags:
            chosen[flags[flag]] = value if equals else following
    return chosen
