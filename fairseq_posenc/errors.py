"""The one exception that is meant for people at a command line."""

import sys

# Hydra, if fairseq-hydra-train has started us, shows errors of this kind without a traceback.
_WITHOUT_TRACEBACK = getattr(sys.modules.get("hydra.errors"), "CompactHydraException", Exception)


class UsageError(ValueError, SystemExit, _WITHOUT_TRACEBACK):  # type: ignore[misc, valid-type]
    """Something the user can mend: a wrong option, file or checkpoint.

    Uncaught, Python prints the message alone, without a traceback, and exits with status 1,
    also from inside ``fairseq-train``; in Python code it is a :class:`ValueError` like any other.
    """

    def __init__(self, message: str):
        message = printable(message)
        super().__init__(message)
        self.code = f"fairseq_posenc: error: {message}"

    def __str__(self) -> str:
        return str(self.args[0])


class DamagedCheckpoint(UsageError):
    """A file whose content proves that it is not a whole checkpoint.

    A disk, memory or network that fails for a moment proves nothing, and is a :class:`UsageError`.
    """


def printable(text: str) -> str:
    """Return a text in one line, with line feeds and commands to a terminal written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """Return the first line of what a library says of an error, or the kind of error."""
    return (str(error).splitlines() or [type(error).__name__])[0]
