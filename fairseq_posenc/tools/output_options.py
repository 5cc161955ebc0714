"""What commands write: never what they read, and nothing in place of a file of another kind.

Each option that names what a command writes is added by :func:`add_output`; the parser of
:func:`fairseq_posenc.tools.arguments.command_parser` then checks it, before any work is done.
"""

import argparse
import codecs
import glob
import os
import re
from fnmatch import fnmatch
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import is_temporary

_HEAD = 4096  # bytes of a file by which its kind is told
_FORCE = "replace, or write among, files of another kind"
# what the first characters match of plain text, which JSON, HTML and XML are not; and of tables
_TEXT = r'(?!\s*(\{\s*"|<[!?a-zA-Z]))'
_MARKDOWN = _TEXT + r"(.*\n){0,8}\| "
_PICTURE = rb"\x89PNG|%PDF|%!PS|<\?xml|\xff\xd8|II\*\0|RIFF"


class OutputType(NamedTuple):
    """What an option names: one file, the files of a prefix, or a folder.

    Attributes:
        name: for messages.
        heads: by the ending of a file, a regular expression that its first bytes match, or, if
            it is a text, its first characters; the ending "" is for all others. Without any,
            whatever is there may be replaced.
        prefix: the option's value is what the names of several files begin with.
        marks: of a folder that is not empty: patterns of names, one of which is there.
        writes: patterns of names in a folder which are replaced, and so must not be inputs.
        is_folder: the option names a folder; None: a file or a folder.
    """

    name: str
    heads: Mapping[str, Union[str, bytes]] = {}
    prefix: bool = False
    marks: Sequence[str] = ()
    writes: Sequence[str] = ()
    is_folder: Optional[bool] = False


CHECKPOINT = OutputType("a checkpoint", {"": rb"PK\x03\x04|\x80"})
TEXT = OutputType("plain text", {"": _TEXT})
TEXTS = TEXT._replace(prefix=True)
CODES = OutputType("BPE codes", {"": rb"#version"})
PICTURE = OutputType("a picture", {"": _PICTURE})
TABLE = OutputType("a table", {".csv": _TEXT + r"(.|\n)*,", ".tex": "% ", "": _MARKDOWN})
SCORE = OutputType("a result of posenc score", {"": r'\s*\{\s*"all"'})
PROFILE = OutputType("a profile of posenc profile-admin", {"": r'\s*\{\s*"version"'})
ANALYSIS = OutputType(
    "of an analysis",
    {".md": _MARKDOWN, ".json": r'\s*\{\s*"title"', ".png": _PICTURE},
    prefix=True,
)
# commands that look themselves at what is there
CHECKED_FILE = OutputType("a file")
CHECKED_FOLDER = OutputType("a folder", is_folder=True)
EXPORT = OutputType("a file or folder", is_folder=None, writes=("*",))


def folder_with(*marks: str, writes: Sequence[str] = ()) -> OutputType:
    """Return the kind of a folder that is new, empty, or has a file whose name is like a mark.

    ``settings`` is a mark of every such folder: recipes leave it, or one of a split, there before.
    """
    return OutputType("a folder", marks=(*marks, "*settings"), writes=writes, is_folder=True)


def add_output(
    parser: Any, output_type: OutputType, name: str = "--output", **options: Any
) -> None:
    """Add an option that names what is written, to a parser or a group of one."""
    parser.add_argument(name, **options).output_type = output_type


class Parser(argparse.ArgumentParser):
    """A parser that refuses outputs which are inputs, or would replace files of another kind.

    It adds ``--force``, for the second, and takes it out of what it returns. An option that is
    given twice is an error unless its action keeps all values.
    """

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse and check, as ``parse_args`` does, too."""
        add_force(self)
        refuse_repeated(self)
        arguments, unparsed = super().parse_known_args(args, namespace)
        check_outputs(self, arguments)
        return arguments, unparsed


class _Once(argparse._StoreAction):
    """An option with a value that may be given once: of two values argparse takes the last."""

    # of the last value: fairseq parses several times, each time into another
    namespace: Optional[argparse.Namespace] = None

    def __call__(self, parser, namespace, values, option_string=None):  # type: ignore
        """Keep the value."""
        if self.namespace is namespace:
            raise argparse.ArgumentError(self, "given twice, but it takes one value; give it once")
        self.namespace = namespace
        super().__call__(parser, namespace, values, option_string)


def refuse_repeated(parser: Any, *flags: str) -> None:
    """Make it an error of a parser to give an option twice of which it keeps the last value.

    Args:
        parser: any.
        flags: these options alone, or else all of the parser's.
    """
    for action in parser._actions:
        is_chosen = not flags or set(flags) & set(action.option_strings)
        if is_chosen and type(action) is argparse._StoreAction and action.option_strings:
            action.__class__ = _Once


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, where it is for some output, and not there yet."""
    is_there = "--force" in parser._option_string_actions
    if not is_there and any(
        output_type.heads or output_type.marks for output_type in _output_types(parser).values()
    ):
        parser.add_argument(
            "--force", action="store_true", default=argparse.SUPPRESS, help=_FORCE, dest="_force"
        )


def check_outputs(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Check the outputs among parsed options.

    Raises:
        UsageError: an output is what another option names, is no file or no folder as it should,
            or would replace files of another kind without ``--force``.
    """
    force = vars(arguments).pop("_force", False)
    named = {action: _texts(getattr(arguments, action.dest, None)) for action in parser._actions}
    for action, output_type in _output_types(parser).items():
        for output in named[action]:
            for action_of_input, texts in named.items():
                if action_of_input.dest != action.dest:
                    texts = [part for text in texts for part in (text, *re.split("[=,:]", text))]
                    problem = f"{_flag(action)} {output} is what {_flag(action_of_input)} names"
                    refuse_inputs(output, texts, output_type, problem)
            _check_type(output, output_type, f"{_flag(action)} {output}", force)


def _output_types(parser: argparse.ArgumentParser) -> Dict[argparse.Action, OutputType]:
    output_types = {action: getattr(action, "output_type", None) for action in parser._actions}
    return {action: output_type for action, output_type in output_types.items() if output_type}


def _flag(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar)


def refuse_inputs(
    output: str, inputs: Iterable[str], output_type: OutputType = CHECKED_FILE, problem: str = ""
) -> None:
    """Raise :class:`UsageError` if what is written is one of the inputs.

    Names are followed through links, and files compared, so that another name is no way around. An
    input that is not there may be a prefix, of whose files the names go on with ``.<language>``.
    """
    targets = [output, *_files_of(output)] if output_type.prefix else [output]
    for text in inputs:
        for name in [text] if os.path.exists(text) else _files_of(text) if text else []:
            inside = any(_is_inside(name, output, pattern) for pattern in output_type.writes)
            if inside or any(_same(name, target) for target in targets):
                problem = problem or f"--output {output} is an input"
                raise UsageError(f"{problem}, and would be lost; name another")


def _check_type(output: str, output_type: OutputType, shown: str, force: bool) -> None:
    files = [output + ending for ending in output_type.heads] if output_type.prefix else [output]
    if output_type == TEXTS:
        files = _files_of(output)
    for file in files:
        if not os.path.exists(file):
            continue
        allowed = {True: os.path.isdir, False: os.path.isfile, None: _is_either}[
            output_type.is_folder
        ]
        if not allowed(file):
            expected = "a folder" if output_type.is_folder else "a file"
            raise UsageError(f"{shown}: {file} is there, and not {expected}; name another")
        if force:
            continue
        problem = (
            _folder_problem(file, output_type)
            if output_type.is_folder
            else _file_problem(file, output_type)
        )
        if problem:
            raise UsageError(f"{shown}: {problem}; name another, or go on with --force")


def _folder_problem(folder: str, output_type: OutputType) -> Optional[str]:
    names = [name for name in os.listdir(folder) if not is_temporary(name)]
    marked = any(glob.glob(os.path.join(glob.escape(folder), mark)) for mark in output_type.marks)
    if not output_type.marks or not names or marked:
        return None
    return f"{folder} has other files, and no {' or '.join(output_type.marks[:-1])}"


def _file_problem(file: str, output_type: OutputType) -> Optional[str]:
    pattern = output_type.heads.get(os.path.splitext(file)[1], output_type.heads.get(""))
    try:
        with open(file, "rb") as stream:
            head = stream.read(_HEAD)
    except OSError:  # it cannot be read, and then perhaps not written: that is told later
        return None
    if pattern is None or not head or _begins_with(pattern, head):
        return None
    return f"{file} is there, and not {output_type.name}"


def _begins_with(pattern: Union[str, bytes], head: bytes) -> bool:
    if isinstance(pattern, bytes):
        return re.match(pattern, head) is not None
    try:  # the last character may be cut
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and re.match(pattern, text) is not None


def _is_either(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _texts(value: Any) -> List[str]:
    """Return the texts of an option's value, which may be a list of pairs."""
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) and value and "\0" not in value else []


def _files_of(prefix: str) -> List[str]:
    """Return the files of a prefix, ``train.en`` and ``train.de`` of ``train``."""
    names = glob.glob(f"{glob.escape(prefix)}.*")
    return [name for name in names if "." not in name[len(prefix) + 1 :] and os.path.isfile(name)]


def _same(path: str, second: str) -> bool:
    try:
        return os.path.samefile(path, second)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(second)


def _is_inside(name: str, folder: str, pattern: str) -> bool:
    path, folder = os.path.realpath(name), os.path.realpath(folder)
    return path.startswith(folder + os.sep) and fnmatch(os.path.basename(path), pattern)
