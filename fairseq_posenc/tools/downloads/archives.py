"""Unpacking what a stranger may have packed: zip and tar files, and single compressed files."""

import copy
import gzip
import lzma
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple, Type

from fairseq_posenc import files
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import replacing_files

BLOCK = 1 << 20  # bytes that are read at a time
OPENERS: Dict[str, Callable[..., Any]] = {**files.OPENERS, ".tgz": gzip.open}
# text never shrinks to less than a 200th; an archive of up to 1 GiB unpacked may
_LARGEST_RATIO, _HARMLESS = 200, 1 << 30
_MOST_MEMBERS = 100_000  # each takes memory
_DEEPEST = 100  # folders in one another
# the last three: of wrong bytes that zipfile and tarfile do not expect
_BROKEN: Tuple[Type[Exception], ...] = (EOFError, OSError, RuntimeError, zipfile.BadZipFile)
_BROKEN += (tarfile.TarError, zlib.error, lzma.LZMAError, ValueError, IndexError, struct.error)


def _is_tar(name: str) -> bool:
    stem, ending = os.path.splitext(name.lower())
    return ending in (".tar", ".tgz") or stem.endswith(".tar")


def is_archive(name: str) -> bool:
    """Return whether :func:`check_archive` can tell a whole file of this name from a broken one."""
    return _is_tar(name) or os.path.splitext(name.lower())[1] in (*OPENERS, ".zip")


def check_archive(path: str, name: str) -> int:
    """Read an archive or compressed file to its end; ``name`` tells its kind.

    Returns:
        The number of bytes that it unpacks to.

    Raises:
        UsageError: it is cut off, broken, something else (a web page, say), a bomb, which unpacks
            to many times its size, or holds what no archive of data does.
    """
    ending, total = os.path.splitext(name.lower())[1], 0
    with _unpacking(path):
        size = os.path.getsize(path)
        if not size:
            raise ValueError("it is empty")
        most = max(_HARMLESS, _LARGEST_RATIO * size)
        if ending in OPENERS:  # before tarfile, which believes the sizes that it reads
            with OPENERS[ending](path) as stream:
                for block in iter(lambda: stream.read(BLOCK), b""):
                    total = _bounded(total + len(block), most)
        if _is_tar(name):
            with tarfile.open(path) as tar:
                return _bounded(sum(member.size for member in _tar_members(tar)), most)
        if ending == ".zip":
            with zipfile.ZipFile(path) as archive:
                members = _zip_members(archive)
                total = _bounded(sum(member.file_size for member in members), most)
                broken = archive.testzip()
                if broken:
                    raise ValueError(f"{broken!r} in it is broken")
        return total


@contextmanager
def _unpacking(path: str) -> Iterator[None]:
    """Turn the errors of a broken archive, or of the disk, into one line."""
    try:
        yield
    except UsageError:
        raise
    except _BROKEN as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"cannot unpack {path}: {reason}") from error


def _bounded(total: int, most: int) -> int:
    if total > most:
        raise ValueError(f"it unpacks to more than {_LARGEST_RATIO} times its own size")
    return total


def unpack(path: str, folder: str) -> int:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` … or a single compressed file into ``folder``.

    Every file gets its name only when it is whole; what is there under that name is replaced.
    Links become copies of the files that they point to.

    Raises:
        UsageError: as :func:`check_archive`, or the file has no known kind, a path leaves the
            folder, or the folder cannot be written; then no file is touched.
    """
    if not is_archive(path):
        raise UsageError(f"cannot unpack {path}: its name ends like no archive's")
    total = check_archive(path, path)
    with _unpacking(path):
        os.makedirs(folder, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if total > free:
            raise UsageError(
                f"{path} takes {total / 1e9:.1f} GB unpacked, and {free / 1e9:.1f} are free"
            )
    with replacing_files(folder) as staging:
        with _unpacking(path):
            _extract(path, staging)
        return sum(len(names) for _, _, names in os.walk(staging))


def _extract(path: str, folder: str) -> None:
    ending = os.path.splitext(path.lower())[1]
    if _is_tar(path):
        with tarfile.open(path) as tar:
            tar.extractall(folder, _tar_members(tar), filter="data")
    elif ending == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder, _zip_members(archive))
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        with OPENERS[ending](path) as source, open(os.path.join(folder, name), "xb") as stream:
            shutil.copyfileobj(source, stream, BLOCK)


def _zip_members(archive: zipfile.ZipFile) -> List[zipfile.ZipInfo]:
    for member in archive.infolist():
        _check_name(member.filename)
    return archive.infolist()


def _tar_members(tar: tarfile.TarFile) -> List[tarfile.TarInfo]:
    """Return the files of a tar file; links are replaced by the files that they lead to.

    Links to links, devices and the like are refused.
    """
    members: List[tarfile.TarInfo] = []
    for member in tar:
        if member.size < 0 or len(members) == _MOST_MEMBERS:  # tarfile would go back, for ever
            raise ValueError(f"a size in it is negative, or it has over {_MOST_MEMBERS} members")
        _check_name(member.name)
        members.append(member)
    # tarfile takes a broken header for the end, behind which there are empty blocks alone
    assert tar.fileobj
    tar.fileobj.seek(tar.offset)
    trailer = tar.fileobj.read(BLOCK)
    if len(trailer) < tarfile.BLOCKSIZE or trailer.strip(b"\0") or not members:
        raise ValueError(f"it is empty, or broken or cut off behind {tar.offset} bytes")
    # a link to one of these becomes its copy; extracting a link could write through it
    files = {os.path.normpath(member.name): member for member in members if member.isreg()}
    regular_files = []
    for member in members:
        beside = os.path.dirname(member.name) if member.issym() else ""
        target = os.path.normpath(os.path.join(beside, member.linkname))
        if member.isreg():
            regular_files.append(member)
        elif (member.issym() or member.islnk()) and target in files:
            regular_files.append(copy.copy(files[target]))
            regular_files[-1].name = member.name
        elif not member.isdir():
            raise ValueError(f"{member.name!r} is refused: not a file, nor a link to one in it")
    return regular_files


def _check_name(name: str) -> None:
    """Refuse a path that leaves the folder, which zipfile would change without a word."""
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "" or ".." in parts or ":" in parts[0] or len(parts) > _DEEPEST:
        raise ValueError(f"the path {name[:100]!r} leaves the archive's folder, or is too deep")
