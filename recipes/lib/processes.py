"""Programs that a recipe starts: they end when it ends, whatever ends it.

On SIGINT, SIGTERM and SIGHUP a recipe ends its programs, waits for their end, and ends. When it is
killed, Linux sends each of them SIGTERM. A signal that the recipe was started to ignore, as SIGHUP
with nohup, stays ignored.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set, Tuple

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h

_running: Set[subprocess.Popen] = set()
_received: List[int] = []


class Interrupted(KeyboardInterrupt):
    """A signal that ends the recipe."""


def end_on_signals() -> None:
    """Have :data:`SIGNALS` end all programs, and then raise :class:`Interrupted`."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_all)
    sys.unraisablehook = _say_unraisable


def _say_unraisable(unraisable: Any) -> None:
    """Say nothing of Interrupted where Python lets no error out, as in hooks of a fork.

    The program that is started next is ended at once.
    """
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)


def _end_all(number: int, frame: Optional[FrameType]) -> None:
    for process in list(_running):
        # whoever asks again does not want to wait
        process.kill() if _received else process.terminate()
    _received.append(number)
    raise Interrupted


def exit_status() -> int:
    """Return the exit status of a recipe that a signal ends, as shells have it; 0 without one."""
    return 128 + _received[0] if _received else 0


@contextmanager
def started(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen]:
    """Start a program, which has the recipe's locks, too; wait for its end.

    It is ended if the block raises.

    Args:
        words: of the command.
        options: of :class:`subprocess.Popen`.
    """
    process = subprocess.Popen(words, close_fds=False, preexec_fn=_end_with(os.getpid()), **options)
    with process:
        _running.add(process)
        try:
            if _received:  # between its start and this
                process.terminate()
            yield process
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
            _running.discard(process)


def _end_with(parent: int) -> Callable[[], None]:
    """Return what makes a new process end when the parent does."""
    set_death_signal = ctypes.CDLL(None).prctl

    def prepare() -> None:
        set_death_signal(_SET_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:  # it has ended before
            os._exit(1)

    return prepare


def call(words: Sequence[str], **options: Any) -> int:
    """Run a program, and return its exit status; see :func:`started`."""
    with started(words, **options) as process:
        return process.wait()


def printed(words: Sequence[str], **options: Any) -> Tuple[str, int]:
    """Run a program, and return what it prints and its exit status; see :func:`started`."""
    with started(words, stdout=subprocess.PIPE, encoding="utf-8", **options) as process:
        return process.communicate()[0], process.returncode
