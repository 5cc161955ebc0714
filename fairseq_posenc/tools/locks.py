"""A lock of a file or folder, which one process has at a time."""

import fcntl
import math
import os
import time
from contextlib import contextmanager, suppress
from typing import Callable, Iterator, Optional

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error

_PAUSE = 0.05  # seconds


@contextmanager
def locked(
    path: str,
    seconds: float = math.inf,
    busy: str = "",
    on_wait: Optional[Callable[[], object]] = None,
) -> Iterator[bool]:
    """Hold the lock of a file, which is made where it is missing, or of a folder.

    Programs that are started meanwhile inherit it, unless they close the files of their parent: if
    this process is killed, the kernel frees it when all that have it have ended. The end of the
    block frees it for all. ``filelock`` would leave a file beside a folder, and in some versions
    falls back to a lock that a killed process leaves.

    Args:
        busy: the message after that.
        on_wait: called once if there is something to wait for.

    Yields:
        Whether the file system has locks; without, nothing keeps another process out.
    """
    flags = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise file_error("write", path, error) from None
    try:
        has_locks = _acquire(descriptor, seconds, busy, on_wait or (lambda: None))
        os.set_inheritable(descriptor, True)
        yield has_locks
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also of what has inherited it
        os.close(descriptor)


def _acquire(descriptor: int, seconds: float, busy: str, on_wait: Callable[[], object]) -> bool:
    """Wait for the lock of an open file, and return whether its file system has locks."""
    end, waits = time.monotonic() + seconds, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except (BlockingIOError, PermissionError):  # the latter from some file systems
            if time.monotonic() >= end:
                raise UsageError(busy) from None
        except OSError:
            return False
        if not waits:
            on_wait()
        waits = True
        time.sleep(_PAUSE)
