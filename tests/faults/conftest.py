"""Disks that are full or break, and processes that are killed, at any point of a program's work."""

import builtins
import errno
import io
import os
import re
import resource
import shutil
import signal
import sys
import threading
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from fairseq_posenc.errors import UsageError


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


def in_child(work):
    """Return how a forked process ended: "done: …", "told: …", "failed: …", or "killed"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # what pytest has put there is a file, too
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        try:
            outcome = f"done: {work()}"
        except UsageError as error:
            outcome = f"told: {error}"
        except BaseException as error:
            outcome = f"failed: {error!r}"
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        outcome = stream.read().decode()
    os.waitpid(child, 0)
    return outcome or "killed"


def fill(folder, content):
    """Write what :func:`files` returns."""
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)


def files(folder):
    """What is in a folder, by relative name."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def is_temporary(name):
    parts = name.split("/")
    return any(part[0] == "." or ".part" in part or ".old" in part for part in parts)


def faulty(work, folder, number=None, kill=False, largest=None):
    """Do some work in another process, with a fault; return how that ended.

    With ``number``, a write or rename in the folder fails, or the process is killed there; with
    ``largest``, files do not become larger. "done: …" has the number of writes and renames.
    """

    def watched():
        disk = Faults(folder, number, kill)
        if largest is None:
            disk.install()
        else:
            # the kernel itself sees to it
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
        work()
        return disk.count

    return in_child(watched)


def chosen(outcome, most):
    """Return the numbers of all writes and renames of work that was done, or some between."""
    last = int(outcome.split()[1]) - 1
    if last < most:
        return range(last + 1)
    return sorted({round(index * last / (most - 1)) for index in range(most)})


@pytest.fixture(scope="module")
def faults():
    """The functions :func:`faulty` and :func:`chosen`."""
    with pytest.MonkeyPatch.context() as patch:
        # a lock that processes share would be held for ever by one that was killed
        tqdm.set_lock(threading.RLock())
        patch.setattr(tqdm, "monitor_interval", 0)
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        yield SimpleNamespace(faulty=faulty, chosen=chosen)


@pytest.fixture(scope="module")
def written(faults, tmp_path_factory):
    """A function that makes a :class:`Written` of a writer."""
    return lambda *arguments: Written(tmp_path_factory.mktemp("written"), *arguments)


class Written:
    """A folder that a writer has written once, and that it shall write anew.

    Args:
        home: for the folder.
        write: function of the folder and a version, 1 or 2, of what to write.
        again: whether there can be two versions, or the folder must be empty first.
        together: whether the files must all be of one version.
    """

    def __init__(self, home, write, again, together):
        self.folder, self.write = home / "out", write
        self.version, self.together = 2 if again else 1, together
        self.before, self.unbroken = {}, ""
        self.reset()
        if again:
            write(self.folder, 1)
            self.before = files(self.folder)
        self.run()
        self.after = files(self.folder)
        self.names = sorted(self.after)
        assert self.after != self.before and not any(map(is_temporary, self.names))

    def reset(self):
        """Make the folder as it is before the second time."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        fill(self.folder, self.before)

    def run(self):
        """Write anew."""
        self.write(self.folder, self.version)

    def attempt(self, number=None, kill=False, largest=None):
        """Write anew in another process, with a fault; return how that ended."""
        self.reset()
        return faulty(self.run, self.folder, number, kill, largest)

    def points(self, most):
        """Return where faults can happen, ``most`` at all."""
        self.unbroken = self.unbroken or self.attempt()
        return chosen(self.unbroken, most)

    def check(self, killed=False, mixed=False):
        """All that bears a final name is whole, of either version; nothing else has come."""
        found = files(self.folder)
        for name, content in found.items():
            if killed and is_temporary(name):
                continue
            assert name in self.after or name in self.before, name
            whole = {self.before.get(name), self.after.get(name)}
            if name == "text/dict.txt":
                # its types are there before they can be counted
                whole.add(re.sub(rb" \d+\n", b" 1\n", self.after[name]))
            assert content in whole, name
        if self.together and not (killed or mixed):
            assert found in (self.before, self.after)

    def check_again(self):
        """It succeeds after all."""
        self.run()
        found = files(self.folder)
        assert {name: found.get(name) for name in self.after} == self.after
