"""Reading JSON, and checking that it is built as it should be.

The shape of a value is written with these:

- ``str``; ``bool``; ``int``, a whole number; ``float``, any finite number
- ``[shape]``: a list of such values
- ``{"name": shape}``: an object with at least these members
- :class:`Each`: an object whose members, of any name, are all of one shape
- :class:`OrNull`: such a value, or null
- :class:`Maybe`: such a value, or null, or a member that is missing
"""

import json
import os
import re
from typing import Any, NamedTuple, Optional

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines

_LARGEST = 1e18
_MISSING = object()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number",
    list: "a list", dict: "an object",
}  # fmt: skip


class Each(NamedTuple):
    """An object whose members are all of one shape."""

    shape: Any


class OrNull(NamedTuple):
    """A value that may be null."""

    shape: Any


class Maybe(NamedTuple):
    """A value that may be null or missing."""

    shape: Any


def read_json(path: str) -> Any:
    """Return the value in a file of JSON.

    Raises:
        UsageError: it is missing, unreadable, empty, not UTF-8 or not JSON.
    """
    # what writes into a pipe may never come
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise UsageError(f"{path} is a pipe or a device; give a file of JSON")
    return parse_json("\n".join(read_lines(path)), path)


def parse_json(text: str, name: str) -> Any:
    """Return the value of JSON; ``name`` is for messages.

    Raises:
        UsageError: it is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise UsageError(f"{name} is not JSON: nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {error}") from None


def read_shaped(path: str, shape: Any, origin: str) -> Any:
    """Return what a file of JSON holds, if it has a shape; ``origin`` is what writes such files.

    Raises:
        UsageError: as :func:`read_json`, or it has not that shape.
    """
    value = read_json(path)
    misfit = find_misfit(value, shape)
    if misfit:
        raise UsageError(f"{path} is not from {origin}, or damaged: {misfit}")
    return value


def find_misfit(value: Any, shape: Any, path: str = "") -> Optional[str]:
    """Return what is wrong with the first member that has not its shape, None if all have."""
    if value is _MISSING:
        return None if isinstance(shape, Maybe) else f"{path} is missing"
    if isinstance(shape, (OrNull, Maybe)):
        return None if value is None else find_misfit(value, shape.shape, path)
    python_type = shape if isinstance(shape, type) else list if isinstance(shape, list) else dict
    if not _is_a(value, python_type):
        return f"{path or 'it'} should be {_WORDS[python_type]}"
    if isinstance(value, dict) and not all(_is_a(name, str) for name in value):
        return f"the names in {path or 'it'} should be text"
    if isinstance(shape, type):
        return None
    if isinstance(shape, list):
        members = [(str(index), member, shape[0]) for index, member in enumerate(value)]
    elif isinstance(shape, Each):
        members = [(name, member, shape.shape) for name, member in value.items()]
    else:
        members = [(name, value.get(name, _MISSING), wanted) for name, wanted in shape.items()]
    for name, member, wanted in members:
        misfit = find_misfit(member, wanted, f"{path}.{name}" if path else name)
        if misfit:
            return misfit
    return None


def _is_a(value: Any, python_type: type) -> bool:
    if python_type is str:
        # a lone surrogate is not a character, and cannot be written
        return isinstance(value, str) and not _LONE_SURROGATE.search(value)
    if python_type in (int, float):
        is_number = isinstance(value, (python_type, int))
        return is_number and not isinstance(value, bool) and -_LARGEST < value < _LARGEST
    return isinstance(value, python_type)
