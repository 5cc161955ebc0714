"""Writing files such that half a file is never taken for a whole one.

What is not whole yet is called ``NAME.part-MACHINE-PROCESS-RANDOM``. A process that was killed
leaves it; the next one that writes NAME on that machine removes it.
"""

import errno
import functools
import glob
import hashlib
import os
import re
import secrets
import shutil
import socket
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Callable, Dict, Iterator

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import disk_error, file_error

_TEMPORARY = re.compile(r"\.(part|old)-[0-9a-f]{12}-(\d+)-[0-9a-f]{12}$")


@contextmanager
def replacing(path: str, mode: str = "w") -> Iterator:
    """Open a temporary file beside ``path`` that takes its name once the block has ended well.

    Folders on the way are made. If the block raises, the process is killed, or the machine loses
    power, ``path`` is as it was before. The temporary file's name is like no other's, so that
    machines which share a disk may write one ``path`` at the same time: the last one stays.
    """
    with replacing_all(mode) as begin:
        yield begin(path)


@contextmanager
def replacing_all(mode: str = "w") -> Iterator[Callable]:
    """Give a function that opens a file as :func:`replacing` does; any number may be begun.

    They take their names one after another, once the block has ended well and all are on the disk.
    """
    encoding = None if "b" in mode else "utf-8"
    partials: Dict[str, str] = {}
    try:
        with ExitStack() as opened:

            def begin(path: str) -> IO:
                os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
                partials[path] = _temporary(path, "part")
                _refuse_folder(path)
                # x: never a file that is there; rights are those of any new file
                exclusive = mode.replace("w", "x")
                return opened.enter_context(open(partials[path], exclusive, encoding=encoding))

            yield begin
        for partial in partials.values():
            # bytes before names: after a loss of power no name leads to half a file
            sync(partial)
        for path, partial in partials.items():
            os.replace(partial, path)
        for folder in {os.path.dirname(os.path.abspath(path)) for path in partials}:
            sync(folder)
    except Exception as error:
        failed = disk_error(error)
        written = [path for path in partials if str(failed.filename).startswith(path)]
        # without any, a folder on the way could not be made
        paths = written or list(partials)[:3] or [str(failed.filename)]
        raise file_error("write", " or ".join(paths), failed) from error
    finally:
        for partial in partials.values():
            if os.path.exists(partial):
                os.remove(partial)


@contextmanager
def replacing_folder(path: str) -> Iterator[str]:
    """Make a temporary folder beside ``path`` that takes its name once the block has ended well.

    What has that name already is moved aside first, and removed last. If the block raises, or the
    process is killed before, it stays as it was; killed between, it is called ``path.old-…``.
    """
    path = os.path.abspath(path)
    partial, old = _temporary(path, "part"), _temporary(path, "old")
    try:
        os.makedirs(partial)
        yield partial
        _sync_tree(partial)
        if os.path.lexists(path):
            # no system replaces a folder that is not empty in one step
            os.replace(path, old)
        os.replace(partial, path)
        sync(os.path.dirname(path))
    except Exception as error:
        raise file_error("write", path, disk_error(error)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if os.path.lexists(path):
            # the new one has its place; below, it has failed between the two renames
            _remove(old)
        elif os.path.lexists(old):
            os.replace(old, path)


@contextmanager
def replacing_files(
    folder: str, last: str = "", clear: Callable[[], object] = lambda: None
) -> Iterator[str]:
    """Make a temporary folder in ``folder``, whose files are moved there if the block ends well.

    Other files of ``folder`` stay. The file called ``last``, if any, is removed before the first is
    moved and is the last to come: without it, the others may be of different runs. ``clear`` is
    called before the first is moved, and may remove files that are not to stay.
    """
    partial = ""
    try:
        os.makedirs(folder, exist_ok=True)
        partial = _temporary(os.path.join(folder, ""), "part")
        os.mkdir(partial)
        yield partial
        _sync_tree(partial)
        paths = [
            os.path.join(parent, name) for parent, _, names in os.walk(partial) for name in names
        ]
        targets = {path: os.path.join(folder, os.path.relpath(path, partial)) for path in paths}
        for target in targets.values():
            _refuse_folder(target)
        final = os.path.join(folder, last)
        if os.path.isfile(final):
            os.remove(final)
            sync(folder)
        clear()
        parents = {os.path.dirname(target) for target in targets.values()}
        for source, target in sorted(targets.items(), key=lambda pair: pair[1] == final):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if target == final:
                for parent in parents:
                    sync(parent)
            os.replace(source, target)
        for parent in {folder, *parents}:
            sync(parent)
    except Exception as error:
        raise file_error("write", folder, disk_error(error)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sync(path: str) -> None:
    """Wait until a file's bytes, or the names in a folder, are on the disk.

    File systems that cannot do that, as some network disks cannot for folders, are left alone.

    Raises:
        OSError: they cannot be written.
    """
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not read; any folder on Windows
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF):
            raise
    finally:
        os.close(number)


def _sync_tree(folder: str) -> None:
    for directory, _, names in os.walk(folder):
        for name in names:
            sync(os.path.join(directory, name))
        sync(directory)


@functools.cache
def _machine() -> str:
    """Return what tells this machine, and on it this set of process numbers, from all others."""
    try:
        numbers = os.stat("/proc/self/ns/pid").st_ino  # a container has its own
    except OSError:
        numbers = 0
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:12]


def _temporary(path: str, part: str) -> str:
    """Return a name beside ``path`` that no other process, on whatever machine, will choose.

    What processes of this machine have left there that are no more is removed; but not what was
    ``path`` before, while there is nothing in its place.
    """
    for left in glob.glob(f"{glob.escape(path)}.*-{_machine()}-*"):
        match = _TEMPORARY.fullmatch(left, len(path))  # not what is beside path.something
        superseded = match and (match[1] == "part" or os.path.lexists(path))
        if match and superseded and not _is_running(int(match[2])):
            _remove(left)
    return f"{path}.{part}-{_machine()}-{os.getpid()}-{secrets.token_hex(6)}"


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # a file, or nothing any more
        os.remove(path)


def _is_running(process: int) -> bool:
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of another user
        return True
    return True


def check_folder(path: str, marker: str, content: str, force: bool) -> None:
    """Raise :class:`UsageError` if a folder is there that may not be replaced.

    It may be with ``force``, if it has the file ``marker``, which says that it is the ``content``.
    """
    if os.path.lexists(path):
        if not os.path.isfile(os.path.join(path, marker)):
            raise UsageError(f"{path} exists and is not {content}; name another folder")
        if not force:
            raise UsageError(f"{path} exists; name another folder, or replace it with --force")


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
