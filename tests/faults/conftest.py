"""Disks that are full or break, and processes that are killed, at any point of a program's work."""

import builtins
import errno
import io
import os
import shutil
import signal
import threading

import pytest
from tqdm import tqdm

KILLED = f"ended with status {int(signal.SIGKILL)}"


class Faults:
    """Has the n-th write, sync or rename in a folder, from 0, fail, or kills the process there.

    A disk that is full (ENOSPC) stays full; a sync or rename fails once (EIO).
    """

    def __init__(self, folder, number, kill):
        self.folder, self.number, self.kill = str(folder), number, kill
        self.count, self.full = 0, False

    def meet(self, code):
        hit = self.count == self.number
        self.count += 1
        if hit and self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if hit or (self.full and code == errno.ENOSPC):
            self.full = code == errno.ENOSPC
            raise OSError(code, os.strerror(code))

    def install(self):
        """Stand between Python and the disk, in this process for good."""
        really = {name: getattr(os, name) for name in ("replace", "rename")}
        really_open, really_sync = builtins.open, os.fsync

        class File(io.FileIO):
            def write(own, data):
                self.meet(errno.ENOSPC)
                return super().write(data)

        def opening(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
            if not set(mode) & set("wax") or not str(file).startswith(self.folder):
                return really_open(file, mode, buffering, encoding, errors, newline, **more)
            buffered = io.BufferedWriter(File(file, mode.replace("b", "")))
            return (
                buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)
            )

        def renaming(name):
            def rename(source, target):
                self.meet(errno.EIO)
                return really[name](source, target)

            return rename

        def sync(number):
            self.meet(errno.EIO)
            really_sync(number)

        builtins.open = io.open = opening
        os.fsync = sync
        for name in really:
            setattr(os, name, renaming(name))
        # copies that the kernel makes are no writes of ours
        shutil._USE_CP_SENDFILE = False


def chosen(outcome, most):
    """Return the numbers of all writes and renames of work that was done, or some between."""
    last = int(outcome.split()[1]) - 1
    if last < most:
        return range(last + 1)
    return sorted({round(index * last / (most - 1)) for index in range(most)})


@pytest.fixture(scope="module")
def faulty(outcome):
    """A function that does some work in another process, with a fault; it returns how that ended.

    With ``number``, a write or rename in the folder fails, or the process is killed there; with
    ``largest``, files do not become larger. "done …" has the number of writes and renames.
    """

    def faulty(work, folder, number=None, kill=False, largest=None):
        def watched():
            disk = Faults(folder, number, kill)
            if largest is None:  # else the kernel itself sees to it
                disk.install()
            work()
            return disk.count

        return outcome(watched, 4000, 60, largest)

    with pytest.MonkeyPatch.context() as patch:
        # a lock that processes share would be held for ever by one that was killed
        tqdm.set_lock(threading.RLock())
        patch.setattr(tqdm, "monitor_interval", 0)
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        yield faulty
