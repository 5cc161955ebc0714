"""Writing files such that half a file is never taken for a whole one."""

import errno
import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from typing import IO, Callable, Dict, Iterator

from fairseq_posenc.files import file_error


@contextmanager
def replacing(path: str, mode: str = "w") -> Iterator:
    """Open a temporary file beside ``path`` that takes its name once the block has ended well.

    Folders on the way are made. If the block raises, the process is killed, or the machine loses
    power, ``path`` is as it was before. The temporary file's name is like no other's, so that
    machines which share a disk may write one ``path`` at the same time: the last one stays.

    Args:
        mode: ``w`` or ``wb``.

    Raises:
        UsageError: the folder cannot be made or written, or the disk is full.
    """
    with replacing_all(mode) as begin:
        yield begin(path)


@contextmanager
def replacing_all(mode: str = "w") -> Iterator[Callable]:
    """Give a function that opens a file as :func:`replacing` does; any number may be begun.

    They take their names together, once the block has ended well and all are on the disk.
    """
    encoding = None if "b" in mode else "utf-8"
    partials: Dict[str, str] = {}
    try:
        with ExitStack() as opened:

            def begin(path: str) -> IO:
                partials[path] = _temporary(path, "part")
                os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
                _refuse_folder(path)
                # x: never a file that is there; rights are those of any new file
                exclusive = mode.replace("w", "x")
                return opened.enter_context(open(partials[path], exclusive, encoding=encoding))

            yield begin
        for partial in partials.values():
            sync(partial)
        for path, partial in partials.items():
            os.replace(partial, path)
        for folder in {os.path.dirname(os.path.abspath(path)) for path in partials}:
            sync(folder)
    except OSError as error:
        written = [path for path in partials if str(error.filename).startswith(path)]
        raise file_error("write", " or ".join(written or list(partials)[:3]), error) from error
    finally:
        for partial in partials.values():
            if os.path.exists(partial):
                os.remove(partial)


@contextmanager
def replacing_folder(path: str) -> Iterator[str]:
    """Make a temporary folder beside ``path`` that takes its name once the block has ended well.

    What has that name already is moved aside first, and removed last. If the block raises, or the
    process is killed before, it stays as it was; killed between, it is called ``path.old…``.

    Raises:
        UsageError: the folder cannot be made or written, or the disk is full.
    """
    path = os.path.abspath(path)
    partial, old = _temporary(path, "part"), _temporary(path, "old")
    try:
        os.makedirs(partial)
        yield partial
        _sync_tree(partial)
        if os.path.lexists(path):
            os.replace(path, old)
        os.replace(partial, path)
        sync(os.path.dirname(path))
    except OSError as error:
        raise file_error("write", path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if os.path.lexists(path):
            shutil.rmtree(old, ignore_errors=True)
        elif os.path.lexists(old):
            os.replace(old, path)


@contextmanager
def replacing_files(
    folder: str, last: str, clear: Callable[[], object] = lambda: None
) -> Iterator[str]:
    """Make a temporary folder in ``folder``, whose files are moved there if the block ends well.

    Other files of ``folder`` stay. The file called ``last`` is removed before the first is moved
    and is the last to come: without it, the others are of different runs. ``clear`` is called
    in between, and may remove files that are not to stay.

    Raises:
        UsageError: the folder cannot be made or written, or the disk is full.
    """
    partial = ""
    try:
        os.makedirs(folder, exist_ok=True)
        partial = tempfile.mkdtemp(prefix=".part", dir=folder)
        yield partial
        _sync_tree(partial)
        final = os.path.join(folder, last)
        targets = {}
        for place, _, names in os.walk(partial):
            for name in names:
                source = os.path.join(place, name)
                targets[source] = os.path.join(folder, os.path.relpath(source, partial))
                _refuse_folder(targets[source])
        if os.path.exists(final):
            os.remove(final)
            sync(folder)
        clear()
        for source, target in sorted(targets.items(), key=lambda pair: pair[1] == final):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if target == final:
                for place in {os.path.dirname(moved) for moved in targets.values()}:
                    sync(place)
            os.replace(source, target)
        sync(folder)
    except OSError as error:
        raise file_error("write", folder, error) from error
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
    for place, _, names in os.walk(folder):
        for name in names:
            sync(os.path.join(place, name))
        sync(place)


def _temporary(path: str, kind: str) -> str:
    """Return a name beside ``path`` that no other process, on whatever machine, will choose."""
    return f"{path}.{kind}{secrets.randbits(48)}"


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
