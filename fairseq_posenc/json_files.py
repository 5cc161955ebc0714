"""Reading JSON, validating it against a schema, and writing it.

The schema of a value is written with these:

- ``str``; ``bool``; ``int``, a whole number; ``float``, any finite number
- ``[schema]``: a list of such values
- ``{"name": schema}``: an object with at least these members
- :class:`Each`: an object whose members, of any name, all have one schema
- :class:`OrNull`: such a value, or null
- :class:`Maybe`: such a value, or null, or a member that is missing
"""

import json
import os
import re
from collections import abc
from dataclasses import MISSING, fields, is_dataclass
from typing import (
    IO,
    Any,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines

_LARGEST = 1e18
_MISSING = object()
NAMES = "names"
"""A field of a dataclass with these ``metadata`` stands in JSON as members of these names."""
_Record = TypeVar("_Record")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number",
    list: "a list", dict: "an object",
}  # fmt: skip


class Each(NamedTuple):
    """An object whose members all have one schema."""

    schema: Any


class OrNull(NamedTuple):
    """A value that may be null."""

    schema: Any


class Maybe(NamedTuple):
    """A value that may be null or missing."""

    schema: Any


def read_json(path: str) -> Any:
    """Return the value in a file of JSON.

    Raises:
        UsageError: it is missing, unreadable, empty, not UTF-8 or not JSON.
    """
    # the other end of a pipe may never write
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


def load_json(path: str, schema: Any, origin: str) -> Any:
    """Return the value in a file of JSON with this schema; ``origin`` is the writer of such files.

    Raises:
        UsageError: as :func:`read_json`, or it has another schema.
    """
    value = read_json(path)
    check_schema(value, schema, path, origin)
    return value


def check_schema(value: Any, schema: Any, path: str, origin: str) -> None:
    """Check the value in a file of JSON against a schema; ``origin`` writes such files.

    Raises:
        UsageError: it has another schema.
    """
    error = schema_error(value, schema)
    if error:
        raise UsageError(f"{path} is not from {origin}, or damaged: {error}")


def from_json(record: Type[_Record], value: Any, path: str, origin: str) -> _Record:
    """Return the dataclass whose fields are the members of an object of JSON.

    Members may be missing or null where the field has a default, and others are left out.

    Args:
        record: its fields are ``str``, ``bool``, ``int``, ``float``, dataclasses, and ``Optional``,
            ``Sequence`` and ``Mapping`` of these.
        value: of the file ``path``.
        origin: what writes such files.

    Raises:
        UsageError: a member has another type, or the dataclass refuses it with a ``ValueError``.
    """
    try:
        return _of_type(record, value, "")
    except ValueError as error:
        raise UsageError(f"{path} is not from {origin}, or damaged: {error}") from None


def _of_type(python_type: Any, value: Any, path: str) -> Any:
    """Return a member, whose ``path`` is for messages, as a type that :func:`from_json` takes."""
    container, arguments = get_origin(python_type), get_args(python_type)
    if container is Union:  # Optional
        return None if value is None else _of_type(arguments[0], value, path)
    is_list, is_record = container is abc.Sequence, is_dataclass(python_type)
    schema = list if is_list else dict if container or is_record else python_type
    if is_list and arguments[0] in _WORDS:
        schema = [arguments[0]]
    error = schema_error(value, schema, path)
    if error:
        raise ValueError(error)

    def member(member_type: Any, name: Any) -> Any:
        return _of_type(member_type, value[name], f"{path}.{name}" if path else f"{name}")

    if is_list and arguments[0] in _WORDS:
        return value  # statistics are many numbers
    if is_list:
        return [member(arguments[0], number) for number in range(len(value))]
    if container:
        return {name: member(arguments[1], name) for name in value}
    if not is_record:
        return value
    hints, members = get_type_hints(python_type), {}
    for field in fields(python_type):
        name, names = field.name, field.metadata.get(NAMES)
        is_required = field.default is MISSING and field.default_factory is MISSING
        if names:
            figure_type = get_args(hints[name])[1]
            members[name] = {key: member(figure_type, key) for key in names if key in value}
        elif is_required and name not in value:
            raise ValueError(f"{path}.{name} is missing" if path else f"{name} is missing")
        elif is_required or value.get(name) is not None:
            members[name] = member(hints[name], name)
    return python_type(**members)


def schema_error(value: Any, schema: Any, path: str = "") -> Optional[str]:
    """Return the fault of the first member with another schema, ``None`` if there is none."""
    if value is _MISSING:
        return None if isinstance(schema, Maybe) else f"{path} is missing"
    if isinstance(schema, (OrNull, Maybe)):
        return None if value is None else schema_error(value, schema.schema, path)
    python_type = schema if isinstance(schema, type) else list if isinstance(schema, list) else dict
    if not _is_a(value, python_type):
        return f"{path or 'it'} should be {_WORDS[python_type]}"
    if isinstance(value, dict) and not all(_is_a(name, str) for name in value):
        return f"the names in {path or 'it'} should be text"
    if isinstance(schema, type):
        return None
    if isinstance(schema, list):
        members = [(str(index), member, schema[0]) for index, member in enumerate(value)]
    elif isinstance(schema, Each):
        members = [(name, member, schema.schema) for name, member in value.items()]
    else:
        members = [
            (name, value.get(name, _MISSING), member_schema)
            for name, member_schema in schema.items()
        ]
    for name, member, member_schema in members:
        error = schema_error(member, member_schema, f"{path}.{name}" if path else name)
        if error:
            return error
    return None


def write_json(value: Any, stream: IO[str]) -> None:
    """Write JSON to read of a value: a member a line, but lists of numbers on one."""
    stream.writelines(_json_chunks(value))
    stream.write("\n")


def _json_chunks(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the text of :func:`write_json` in parts: as a whole, it is a multiple of the value."""
    inner = f"{indent}  "
    if isinstance(value, Mapping) and value:
        names = [json.dumps(str(name), ensure_ascii=False) for name in value]
        ends, members = "{}", [*zip((f"{name}: " for name in names), value.values())]
    elif isinstance(value, (list, tuple)) and not all(map(_is_number, value)):
        ends, members = "[]", [("", member) for member in value]
    else:
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return
    for number, (name, member) in enumerate(members):
        yield f"{',' if number else ends[0]}\n{inner}{name}"
        yield from _json_chunks(member, inner)
    yield f"\n{indent}{ends[1]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_a(value: Any, python_type: type) -> bool:
    if python_type is str:
        # a lone surrogate is not a character, and cannot be written
        return isinstance(value, str) and not _LONE_SURROGATE.search(value)
    if python_type in (int, float):
        is_number = isinstance(value, (python_type, int))
        return is_number and not isinstance(value, bool) and -_LARGEST < value < _LARGEST
    return isinstance(value, python_type)
