"""What commands write: never what they read.

Each option that names what a command writes is added by :func:`add_output`; the parser of
:func:`fairseq_posenc.tools.arguments.command_parser` then checks it, before any work is done.
"""

import argparse
import glob
import os
import re
from fnmatch import fnmatch
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError


class OutputType(NamedTuple):
    """What an option names: one file, the files of a prefix, or a folder.

    Attributes:
        is_folder: the option names a folder; None: a file or a folder.
        prefix: the option's value is what the names of several files begin with.
        writes: patterns of names in a folder which are replaced, and so must not be inputs.
    """

    is_folder: Optional[bool] = False
    prefix: bool = False
    writes: Sequence[str] = ()


FILE, FOLDER, PREFIX = OutputType(), OutputType(is_folder=True), OutputType(prefix=True)


def add_output(
    parser: Any, output_type: OutputType, name: str = "--output", **options: Any
) -> None:
    """Add an option that names what is written, to a parser or a group of one."""
    parser.add_argument(name, **options).output_type = output_type


class Parser(argparse.ArgumentParser):
    """A parser that refuses outputs which are inputs.

    An option that is given twice is an error unless its action keeps all values.
    """

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse and check, as ``parse_args`` does, too."""
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
        flags: these options alone, or else all of the parser's.
    """
    for action in parser._actions:
        is_chosen = not flags or set(flags) & set(action.option_strings)
        if is_chosen and type(action) is argparse._StoreAction and action.option_strings:
            action.__class__ = _Once


def check_outputs(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Check the outputs among parsed options."""
    named = {action: _texts(getattr(arguments, action.dest, None)) for action in parser._actions}
    for action in parser._actions:
        output_type: Any = getattr(action, "output_type", None)
        for output in named[action] if output_type else ():
            for action_of_input, texts in named.items():
                if action_of_input.dest != action.dest:
                    texts = [part for text in texts for part in (text, *re.split("[=,:]", text))]
                    problem = f"{_flag(action)} {output} is what {_flag(action_of_input)} names"
                    refuse_inputs(output, texts, output_type, problem)
            _check_type(output, output_type, f"{_flag(action)} {output}")


def _flag(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar)


def refuse_inputs(
    output: str, inputs: Iterable[str], output_type: OutputType = FILE, problem: str = ""
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


def _check_type(output: str, output_type: OutputType, shown: str) -> None:
    is_file, is_folder = os.path.isfile(output), os.path.isdir(output)
    is_allowed = {True: is_folder, False: is_file, None: is_file or is_folder}
    if not output_type.prefix and os.path.exists(output) and not is_allowed[output_type.is_folder]:
        expected = "a folder" if output_type.is_folder else "a file"
        raise UsageError(f"{shown} is there, and not {expected}; name another")


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
