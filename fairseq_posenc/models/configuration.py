"""Trainings by ``fairseq-hydra-train``, whose options stand in groups instead of one namespace.

On the command line an option has one value, whoever reads it. Here it has its effect if it stands
in its group, and is refused in any other.
"""

import argparse
import functools
from argparse import Namespace
from dataclasses import Field
from typing import Any, Dict, Optional, Union

from fairseq.dataclass import utils as dataclass_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    BaseFairseqModel,
)
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from fairseq_posenc.errors import UsageError, first_line

_NAMES = ("_name", "arch")  # of a group: which task, model and so on it is
_NUMBERS = {int: "a whole number", float: "a number"}
# group -> name -> what declares the option: a field of a dataclass, or a parser
Options = Dict[str, Dict[str, Union[Field, argparse.Action]]]


def build_from_configuration(model: Any, cfg: DictConfig, task: Any) -> BaseFairseqModel:
    """Build a model from a configuration, as from the options of ``fairseq-train``.

    Architectures and ``TransformerConfig`` of fairseq are made for these: of a configuration they
    drop all options of positions and, with omegaconf 2.0, the sizes of the architecture.

    ``cfg`` is the model's part of it. It gets all options that the model ends up with and those of
    the task, which programs look for among the model's.
    """
    own, run = _values(cfg), {}
    root: Any = cfg._get_root()
    for group in FairseqConfig.__dataclass_fields__:
        if group not in ("model", "task"):
            run.update(_values(root.get(group)))
    of_task = _values(root.get("task"))
    # what the architecture sets, fairseq has put into the model's part: the task's value counts
    defaults = Namespace()
    ARCH_CONFIG_REGISTRY[own.get("arch") or own["_name"]](defaults)
    of_both = {name: of_task[name] for name in vars(defaults) if name in of_task}
    given = {**run, **of_task, **_given(own), **_given(of_both)}
    args = Namespace(**{k: v for k, v in given.items() if k not in _NAMES})
    args.arch = own.get("arch") or own["_name"]
    ARCH_CONFIG_REGISTRY[args.arch](args)
    dataclass_utils._set_legacy_defaults(args, model)
    args.base_layers = getattr(args, "base_layers", 0)  # the trainer asks for it
    built = model.build_model(args, task)
    with open_dict(cfg):
        for name, value in vars(args).items():
            if name in own or name in of_task or name not in run:
                cfg[name] = value
    return built


def check_configurations() -> None:
    """Let trainings from a configuration refuse what is in the wrong group, in one line.

    fairseq fills in the defaults of a run's groups with ``add_defaults``, also after it has
    imported us. That is the first look at the whole configuration.
    """
    merge = dataclass_utils.merge_with_parent
    if hasattr(merge, "__wrapped__"):
        return

    @functools.wraps(merge)
    def merge_with_parent(dc: Any, cfg: DictConfig, *args: Any, **kwargs: Any) -> DictConfig:
        root: Any = cfg._get_root()
        check_groups(root)
        return merge(dc, cfg, *args, **kwargs)

    # by this name add_defaults alone looks for it
    dataclass_utils.merge_with_parent = merge_with_parent


def check_groups(cfg: DictConfig) -> None:
    """Check that the options of our model, task and so on stand in the groups they belong to.

    Args:
        cfg: a whole configuration; one that is made of a command line is let pass.

    Raises:
        UsageError: one does not, is unknown, or has a value of another type.
    """
    if not isinstance(cfg.get("model"), DictConfig):
        return
    options: Options = {}
    ours, others = [], []
    for group, field in FairseqConfig.__dataclass_fields__.items():
        name = _name_in(cfg.get(group))
        if group == "model":
            reader = ARCH_MODEL_REGISTRY.get(name)
            options[group] = _of_model(name)
        else:
            reader = _registered(group).get(name, field.type)
            options[group] = getattr(reader, "__dataclass_fields__", {})
        if getattr(reader, "__module__", "").startswith("fairseq_posenc."):
            ours.append((group, reader))
        elif options[group]:
            others.append(group)
    if not ours:
        return
    for group, reader in ours:
        for name, value in _values(cfg[group]).items():
            if name not in _NAMES:
                _check_option(cfg, options, group, name, value)
        if group != "model":
            _check_values(group, reader(), cfg[group])
    for group in others:  # fairseq checks their values
        for name in _values(cfg.get(group)):
            if name not in (*_NAMES, *options[group]):
                raise UsageError(_unknown(options, group, name))


def _check_option(cfg: DictConfig, options: Options, group: str, name: str, value: Any) -> None:
    option = options[group].get(name)
    if option is None:
        raise UsageError(_unknown(options, group, name))
    # On the command line this is one option for all. Who has it here, and with which value?
    owner = group
    if not _owns(option):
        owner, _, _ = str(option.default)[2:-1].partition(".")  # of "${common.seed}"
    elif name in options["task"]:
        owner = "task"
    if owner != group and value is not None:
        common = _values(cfg.get(owner)).get(name, getattr(options[owner][name], "default", None))
        if value != common:
            raise UsageError(
                f"{group}.{name} is {value!r}, but {owner}.{name} is {common!r}: write "
                f"{owner}.{name}, which is for both"
            )
    wanted = _wanted(option, value)
    if wanted:
        raise UsageError(f"{group}.{name} must be {wanted}, not {value!r}")


def _unknown(options: Options, group: str, name: str) -> str:
    owners = [other for other, known in options.items() if _owns(known.get(name))]
    places = " and ".join(f"{owner}.{name}" for owner in owners)
    advice = f"write {places}" if places else "see --help of fairseq-train for what there is"
    return f"there is no option {group}.{name}; {advice}"


def _owns(option: Union[Field, argparse.Action, None]) -> bool:
    """Return whether a group has an option of its own, not the value of another group's."""
    return option is not None and not str(option.default).startswith("${")


def _wanted(option: Union[Field, argparse.Action], value: Any) -> Optional[str]:
    """Return what a parser would take instead of a value, if it would not take that."""
    if isinstance(option, Field) or value is None:
        return None
    if option.nargs == 0:
        return None if isinstance(value, bool) else "true or false"
    if option.choices is not None:
        return None if value in option.choices else f"one of {', '.join(map(str, option.choices))}"
    fits = option.type not in _NUMBERS or (
        isinstance(value, (int, option.type)) and not isinstance(value, bool)
    )
    return None if fits else _NUMBERS[option.type]  # type: ignore[index]


def _check_values(group: str, declared: Any, cfg: DictConfig) -> None:
    """Check values of a group as fairseq will, whose error has several lines."""
    try:
        merged = OmegaConf.merge(declared, cfg)
        name = "data"
        missing = group == "task" and (OmegaConf.is_missing(merged, name) or merged.data is None)
    except OmegaConfBaseException as error:
        raise UsageError(f"{group}.{getattr(error, 'key', '')}: {first_line(error)}") from None
    if missing:
        raise UsageError("task.data is missing: the folder of the binarised data")


def _registered(group: str) -> Dict[str, Any]:
    if group == "task":
        return TASK_DATACLASS_REGISTRY
    return REGISTRIES[group]["dataclass_registry"] if group in REGISTRIES else {}


def _of_model(name: Any) -> Dict[str, Any]:
    """Return the options of a model."""
    kind = ARCH_MODEL_NAME_REGISTRY.get(name)
    if kind in MODEL_DATACLASS_REGISTRY:
        return MODEL_DATACLASS_REGISTRY[kind].__dataclass_fields__
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    if name in ARCH_MODEL_REGISTRY:
        ARCH_MODEL_REGISTRY[name].add_args(parser)
    return {action.dest: action for action in parser._actions}


def _given(options: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _name_in(group: Any) -> Any:
    values = _values(group)
    return values.get("_name") or values.get("arch")


def _values(group: Any) -> Dict[str, Any]:
    found: Any = OmegaConf.to_container(group, resolve=True) if OmegaConf.is_config(group) else {}
    return found
