"""Reading and writing of text files, such that half a file is never taken for a whole one."""

import gzip
import os
from contextlib import contextmanager
from typing import Iterator, List, Optional

from fairseq_posenc.errors import UsageError


@contextmanager
def replacing(path: str, mode: str = "w", encoding: Optional[str] = None) -> Iterator:
    """Open a temporary file beside ``path`` that takes its name once the block has ended well.

    Folders on the way are made. If the block raises, or the process is killed, ``path`` is as it
    was before.

    Raises:
        UsageError: the folder cannot be made or written, or the disk is full.
    """
    if encoding is None and "b" not in mode:
        encoding = "utf-8"
    partial = f"{path}.part{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(partial, mode, encoding=encoding) as stream:
            yield stream
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def read_lines(path: str) -> List[str]:
    """Return the lines of a UTF-8 text file, plain or ``.gz``, without their ends.

    Only ``\\n`` and ``\\r\\n`` end a line, as for fairseq; exotic separators inside a line stay.

    Raises:
        UsageError: the file is missing or unreadable, is empty, or holds invalid UTF-8 (the
            line's number is named).
    """
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as stream:
            raw = stream.read()
    except (OSError, EOFError) as error:
        raise UsageError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not raw:
        raise UsageError(f"{path} is empty")
    lines = raw.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [_decode(line, path, number) for number, line in enumerate(lines, 1)]


def _decode(line: bytes, path: str, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}, line {number}: invalid UTF-8; convert the file first") from error
