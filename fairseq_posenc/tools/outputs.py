"""What commands write: never what they read, and nothing in place of a file of another kind.

Each option that names what a command writes is added by :func:`add_output`; the parser of
:func:`fairseq_posenc.tools.arguments.command_parser` then checks it, before any work is done.
"""

import argparse
import glob
import os
import re
from fnmatch import fnmatch
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import is_temporary

_HEAD = 4096  # bytes of a file by which its kind is told
_FORCE = "replace, or write among, files of another kind"
Test = Callable[[bytes], bool]


class Kind(NamedTuple):
    """What an option names: one file, the files of a prefix, or a folder.

    Attributes:
        name: for messages.
        tests: by the ending of a file, whether its first bytes are of this kind; the ending "" is
            for all others. Without any, whatever is there may be replaced.
        prefix: the option's value is what the names of several files begin with.
        marks: of a folder that is not empty: patterns of names, one of which is there.
        writes: patterns of names in a folder which are replaced, and so must not be inputs.
        is_folder: the option names a folder; None: a file or a folder.
    """

    name: str
    tests: Dict[str, Test] = {}
    prefix: bool = False
    marks: Sequence[str] = ()
    writes: Sequence[str] = ()
    is_folder: Optional[bool] = False


def _begins(*starts: bytes) -> Test:
    return lambda head: head.startswith(starts)


def _is_text(head: bytes) -> bool:
    """Return whether this may be lines of plain text; JSON, HTML and XML are not."""
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(head):  # elsewhere than in a character that is cut
            return False
        text = head[: error.start].decode("utf-8")
    return "\0" not in text and not re.match(r'\s*(\{\s*"|<[!?a-zA-Z])', text)


def _is_markdown(head: bytes) -> bool:
    return _is_text(head) and any(line.startswith(b"| ") for line in head.split(b"\n")[:9])


def _is_json(first: str) -> Test:
    return lambda head: re.match(rb'\s*\{\s*"' + first.encode() + b'"', head) is not None


_IS_PICTURE = _begins(b"\x89PNG", b"%PDF", b"%!PS", b"<?xml", b"\xff\xd8", b"II*\0", b"RIFF")
CHECKPOINT = Kind("a checkpoint", {"": _begins(b"PK\x03\x04", b"\x80")})
TEXT = Kind("plain text", {"": _is_text})
TEXTS = TEXT._replace(prefix=True)
CODES = Kind("BPE codes", {"": _begins(b"#version")})
PICTURE = Kind("a picture", {"": _IS_PICTURE})
TABLE = Kind(
    "a table",
    {
        ".csv": lambda head: _is_text(head) and b"," in head,
        ".tex": lambda head: _is_text(head) and head.startswith(b"% "),
        "": _is_markdown,
    },
)
SCORE = Kind("a result of posenc score", {"": _is_json("all")})
PROFILE = Kind("a profile of posenc profile-admin", {"": _is_json("version")})
ANALYSIS = Kind(
    "of an analysis",
    {".md": _is_markdown, ".json": _is_json("title"), ".png": _IS_PICTURE},
    prefix=True,
)
# commands that look themselves at what is there
CHECKED_FILE = Kind("a file")
CHECKED_FOLDER = Kind("a folder", is_folder=True)
EXPORT = Kind("a file or folder", is_folder=None, writes=("*",))


def folder_with(*marks: str, writes: Sequence[str] = ()) -> Kind:
    """Return the kind of a folder that is new, empty, or has a file whose name is like a mark.

    ``settings`` is a mark of every such folder: recipes leave it, or one of a split, there before.
    """
    return Kind("a folder", marks=(*marks, "*settings"), writes=writes, is_folder=True)


def add_output(parser: Any, *names: str, kind: Kind, **options: Any) -> None:
    """Add an option or argument that names what is written, to a parser or a group of one."""
    parser.add_argument(*names, **options).kind = kind


class Parser(argparse.ArgumentParser):
    """A parser that refuses outputs which are inputs, or would replace files of another kind.

    It adds ``--force``, for the second, and takes it out of what it returns. An option that is
    given twice is an error unless its action keeps all values.
    """

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse and check, as ``parse_args`` does, too."""
        add_force(self)
        refuse_repeated(self)
        found, rest = super().parse_known_args(args, namespace)
        check_outputs(self, found)
        return found, rest


class _Once(argparse._StoreAction):
    """An option with a value that may be given once: of two values argparse takes the last."""

    def __call__(self, parser, namespace, values, option_string=None):  # type: ignore
        """Keep the value."""
        if self in parser.seen_actions:
            raise argparse.ArgumentError(self, "given twice, but it takes one value; give it once")
        parser.seen_actions.add(self)
        super().__call__(parser, namespace, values, option_string)


def refuse_repeated(parser: Any) -> None:
    """Make it an error of a parser to give an option twice of which it keeps the last value."""
    parser.seen_actions = set()
    for action in parser._actions:
        if type(action) is argparse._StoreAction and action.option_strings:
            action.__class__ = _Once


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, where it is for some output, and not there yet."""
    known = "--force" in parser._option_string_actions
    if not known and any(kind.tests or kind.marks for kind in _kinds(parser).values()):
        parser.add_argument(
            "--force", action="store_true", default=argparse.SUPPRESS, help=_FORCE, dest="_force"
        )


def check_outputs(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Check the outputs among parsed options.

    Raises:
        UsageError: an output is what another option names, is no file or no folder as it should,
            or would replace files of another kind without ``--force``.
    """
    force = vars(found).pop("_force", False)
    given = {action: _texts(getattr(found, action.dest, None)) for action in parser._actions}
    for action, kind in _kinds(parser).items():
        for output in given[action]:
            for other, texts in given.items():
                if other.dest != action.dest:
                    texts = [part for text in texts for part in (text, *re.split("[=,:]", text))]
                    what = f"{_flag(action)} {output} is what {_flag(other)} names"
                    refuse_inputs(output, texts, kind, what)
            _check_kind(output, kind, f"{_flag(action)} {output}", force)


def _kinds(parser: argparse.ArgumentParser) -> Dict[argparse.Action, Kind]:
    found = {action: getattr(action, "kind", None) for action in parser._actions}
    return {action: kind for action, kind in found.items() if kind}


def _flag(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar)


def refuse_inputs(
    output: str, inputs: Iterable[str], kind: Kind = CHECKED_FILE, what: str = ""
) -> None:
    """Raise :class:`UsageError` if what is written is one of the inputs.

    Names are followed through links, and files compared, so that another name is no way around. An
    input that is not there may be a prefix, of whose files the names go on with ``.<language>``.
    """
    targets = [output, *_files_of(output)] if kind.prefix else [output]
    for text in inputs:
        for name in [text] if os.path.exists(text) else _files_of(text) if text else []:
            inside = any(_is_inside(name, output, pattern) for pattern in kind.writes)
            if inside or any(_same(name, one) for one in targets):
                what = what or f"--output {output} is an input"
                raise UsageError(f"{what}, and would be lost; name another")


def _check_kind(output: str, kind: Kind, shown: str, force: bool) -> None:
    files = [output + ending for ending in kind.tests] if kind.prefix else [output]
    if kind == TEXTS:
        files = _files_of(output)
    for file in files:
        if not os.path.exists(file):
            continue
        allowed = {True: os.path.isdir, False: os.path.isfile, None: _is_either}[kind.is_folder]
        if not allowed(file):
            wanted = "a folder" if kind.is_folder else "a file"
            raise UsageError(f"{shown}: {file} is there, and not {wanted}; name another")
        if force:
            continue
        problem = _folder_problem(file, kind) if kind.is_folder else _file_problem(file, kind)
        if problem:
            raise UsageError(f"{shown}: {problem}; name another, or go on with --force")


def _folder_problem(folder: str, kind: Kind) -> Optional[str]:
    names = [name for name in os.listdir(folder) if not is_temporary(name)]
    marked = any(glob.glob(os.path.join(glob.escape(folder), mark)) for mark in kind.marks)
    if not kind.marks or not names or marked:
        return None
    return f"{folder} has other files, and no {' or '.join(kind.marks[:-1])}"


def _file_problem(file: str, kind: Kind) -> Optional[str]:
    test = kind.tests.get(os.path.splitext(file)[1], kind.tests.get(""))
    try:
        with open(file, "rb") as stream:
            head = stream.read(_HEAD)
    except OSError:  # it cannot be read, and then perhaps not written: that is told later
        return None
    if test is None or not head or test(head):
        return None
    return f"{file} is there, and not {kind.name}"


def _is_either(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _texts(value: Any) -> List[str]:
    """Return the texts of an option's value, which may be a list of pairs."""
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) and value and "\0" not in value else []


def _files_of(prefix: str) -> List[str]:
    """Return the files of a prefix, ``train.en`` and ``train.de`` of ``train``."""
    found = glob.glob(f"{glob.escape(prefix)}.*")
    return [name for name in found if "." not in name[len(prefix) + 1 :] and os.path.isfile(name)]


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _is_inside(name: str, folder: str, pattern: str) -> bool:
    path, folder = os.path.realpath(name), os.path.realpath(folder)
    return path.startswith(folder + os.sep) and fnmatch(os.path.basename(path), pattern)
