"""Options in a checkpoint: up to fairseq 0.10 one namespace for all, since then groups."""

from argparse import Namespace
from typing import Any, Dict, Mapping


def as_dict(options: Any) -> Dict[str, Any]:
    """Return the options themselves, to be read or changed; none if they are of another type."""
    options = vars(options) if isinstance(options, Namespace) else options
    return options if isinstance(options, dict) else {}


def group_options(state: Any, group: str) -> Dict[str, Any]:
    """Return the options of a group, such as ``model``, to be read or changed; none without it.

    Args:
        state: a checkpoint, as it was read.
        group: of fairseq's configuration. Where one namespace has all options, it is that.
    """
    state = as_dict(state)
    return as_dict(state.get("args")) or as_dict(as_dict(state.get("cfg")).get(group))


def name_of(options: Mapping[str, Any], key: str) -> str:
    """Return the name of a model (``arch``) or a task, by either of its keys; empty without one."""
    names = (options.get(key), options.get("_name"))
    return next((name for name in names if isinstance(name, str)), "")
