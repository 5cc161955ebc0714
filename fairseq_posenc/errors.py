"""The exceptions that are meant for people at a command line."""


class UsageError(ValueError, SystemExit):
    """Something the user can mend: a wrong option, file or checkpoint.

    Uncaught, Python prints the message alone, without a traceback, and exits with status 1,
    also from inside ``fairseq-train``; in Python code it is a :class:`ValueError` like any other.
    """

    def __init__(self, message: str):
        # a name or value in it may hold line feeds, and it shall be one line
        message = message.replace("\r", "\\r").replace("\n", "\\n")
        super().__init__(message)
        self.code = f"fairseq_posenc: error: {message}"

    def __str__(self) -> str:
        return str(self.args[0])


class DamagedCheckpoint(UsageError):
    """A checkpoint that was read and is proven to be damaged: cut off, or of a wrong checksum.

    Whatever may be over in a moment, such as a lack of memory or a disk that does not answer, is no
    proof and raises another :class:`UsageError`.
    """


def first_line(error: BaseException) -> str:
    """Return the first line of what a library says of an error, or the kind of error."""
    return (str(error).splitlines() or [type(error).__name__])[0]
