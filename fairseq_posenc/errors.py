"""The one exception that is meant for people at a command line, and how they see it."""

import errno
import importlib
import os
import sys
from types import TracebackType
from typing import Any, Optional, Type

# a disk, a quota or a limit of size: what is printed may go into a file
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UsageError(ValueError):
    """Something the user can mend: a wrong option, file or checkpoint.

    In Python code it is a :class:`ValueError` like any other. Our programs print its message in one
    line, without a traceback, and exit with status 1: see :func:`print_errors_in_one_line`. What
    reads or writes files of users in the toolbox may raise it anywhere; docstrings do not list it.
    """

    def __init__(self, message: str):
        super().__init__(printable(message))


class DamagedCheckpoint(UsageError):
    """A file whose content proves that it is not a whole checkpoint.

    A disk, memory or network that fails for a moment proves nothing, and is a :class:`UsageError`.
    """


def printable(text: str) -> str:
    """Return a text in one line, with line feeds and commands to a terminal written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error message, or the kind of error if it is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def import_optional(module: str, problem: str, package: str = "") -> Any:
    """Return a module of a library that not everybody has; ``package`` if it comes in another.

    Raises:
        UsageError: it cannot be imported: ``problem``, in which ``{error}`` stands for the reason,
            and how to get it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        problem = problem.replace("{error}", str(error))
        raise UsageError(f"{problem}: pip install {package or module.partition('.')[0]}") from None


def printing_failed(error: BaseException) -> str:
    """Return why a program cannot print, where a full disk ends it; what is left is dropped."""
    if not isinstance(error, OSError) or error.errno not in _FULL or error.filename:
        return ""
    # Python would say it at its end, too
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"cannot print: {error.strerror}"


def print_errors_in_one_line() -> None:
    """Let a program that a UsageError ends print it in one line; other errors as they were before.

    The models call this, which fairseq's programs import, and so do ``posenc`` and recipes.
    """
    previous_hook = sys.excepthook

    def hook(
        error_type: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]
    ) -> None:
        message = str(error) if isinstance(error, UsageError) else printing_failed(error)
        if message:
            print(f"fairseq_posenc: error: {message}", file=sys.stderr)
        else:
            previous_hook(error_type, error, traceback)

    sys.excepthook = hook
    # Hydra (fairseq-hydra-train) would print errors itself; so it lets them pass to the hook.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
