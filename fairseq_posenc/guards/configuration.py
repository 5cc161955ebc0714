"""Trainings by ``fairseq-hydra-train``, whose options stand in groups instead of one namespace.

On the command line an option has one value, whoever reads it. Here one of ours has its effect if it
stands in its group, and is refused in another with another value.
"""

import argparse
from argparse import Namespace
from typing import Any, Callable, Dict, Iterable

from fairseq.dataclass import utils as dataclass_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict

from fairseq_posenc.errors import UsageError
from fairseq_posenc.patching import replaces

_NAMES = ("_name", "arch")  # of a group: the name of its task, model, …


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
    values = {**run, **of_task, **_without_none(own), **_without_none(of_both)}
    args = Namespace(**{k: v for k, v in values.items() if k not in _NAMES})
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


# by this name add_defaults alone looks for it
@replaces(dataclass_utils, "merge_with_parent")
def _merge(merge: Callable, dc: Any, cfg: DictConfig, *args: Any, **kwargs: Any) -> DictConfig:
    """Let trainings from a configuration refuse options in the wrong group, in one line.

    fairseq fills in the defaults of a run's groups with ``add_defaults``, also after it has
    imported us. That is the first look at the whole configuration.
    """
    root: Any = cfg._get_root()
    check_groups(root)
    return merge(dc, cfg, *args, **kwargs)


def check_groups(cfg: DictConfig) -> None:
    """Check that options of our model and task have no other value outside their groups.

    Args:
        cfg: a whole configuration; one that is made of a command line is let pass.

    Raises:
        UsageError: a name stands elsewhere, with another value than in its own group.
    """
    if not isinstance(cfg.get("model"), DictConfig):
        return
    model, task = _name_in(cfg.get("model")), _name_in(cfg.get("task"))
    owners: Dict[str, str] = {}
    if _is_ours(ARCH_MODEL_REGISTRY.get(model)):
        owners.update(dict.fromkeys(_of_model(model), "model"))
    if owners or _is_ours(TASK_DATACLASS_REGISTRY.get(task)):
        fields = getattr(TASK_DATACLASS_REGISTRY.get(task), "__dataclass_fields__", {})
        # a default of "${common.seed}" is another group's
        own = (name for name, field in fields.items() if not str(field.default).startswith("${"))
        owners.update(dict.fromkeys(own, "task"))
    for group, field in FairseqConfig.__dataclass_fields__.items():
        declared = getattr(field.type, "__dataclass_fields__", {})
        for name, value in _values(cfg.get(group)).items():
            owner = owners.get(name, group)
            if owner == group or name in (*_NAMES, *declared):
                continue
            if value is not None and value != _values(cfg.get(owner)).get(name):
                raise UsageError(
                    f"{group}.{name} is not read in that group; write {owner}.{name}={value}"
                )


def _is_ours(registered: Any) -> bool:
    return getattr(registered, "__module__", "").startswith("fairseq_posenc.")


def _of_model(name: Any) -> Iterable[str]:
    """Return the names of a model's options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ARCH_MODEL_REGISTRY[name].add_args(parser)
    return [action.dest for action in parser._actions]


def _without_none(options: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _name_in(group: Any) -> Any:
    values = _values(group)
    return values.get("_name") or values.get("arch")


def _values(group: Any) -> Dict[str, Any]:
    if not OmegaConf.is_config(group):
        return {}
    values: Any = OmegaConf.to_container(group, resolve=True)
    return values
