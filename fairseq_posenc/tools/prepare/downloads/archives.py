"""Checksums, integrity and unpacking of downloaded files, which a stranger may have made."""

import bz2
import gzip
import hashlib
import lzma
import os
import re
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from typing import IO, Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple, Type

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import replacing, sync

BLOCK = 1 << 20  # bytes that are read at a time
# without a mode, tarfile's errors have a line for every kind of compression
TAR_MODES = {".tar": "r:", ".gz": "r:gz", ".tgz": "r:gz", ".bz2": "r:bz2", ".xz": "r:xz"}
OPENERS: Dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".tgz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_BROKEN: Tuple[Type[Exception], ...] = (EOFError, OSError, RuntimeError, zipfile.BadZipFile)
_BROKEN += (zlib.error, lzma.LZMAError, tarfile.TarError)
# what zipfile raises for wrong bytes where it does not expect them
_BROKEN += (ValueError, IndexError, OverflowError, struct.error)

_ZIP_END = 22 + 0xFFFF  # bytes of the record at the end of a zip file with the longest comment
# text never shrinks to less than a 200th; an archive of up to 1 GiB unpacked may
_LARGEST_RATIO, _HARMLESS = 200, 1 << 30
_DEEPEST = 100  # folders in one another


class Damaged(ValueError):
    """A file that is not what it should be; the message says how."""


class Checksum(NamedTuple):
    """The digest that a file must have: name of the algorithm, hexadecimal digits."""

    algorithm: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Read ``sha256:<hex>``, or digits whose number tells MD5, SHA-1, SHA-256 and SHA-512.

        Raises:
            UsageError: that is no such checksum.
        """
        algorithms = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
        prefix, _, digits = text.strip().lower().rpartition(":")
        algorithm = algorithms.get(len(digits))
        if not re.fullmatch("[0-9a-f]+", digits) or not algorithm or prefix not in ("", algorithm):
            raise UsageError(f"{text!r} is no checksum: give md5, sha1, sha256 or sha512 in hex")
        return cls(algorithm, digits)

    @classmethod
    def from_listing(cls, lines: Iterable[str], name: str) -> Optional["Checksum"]:
        """Find a file in the output of ``sha1sum`` and its like, also ``SHA1 (name) = …``."""
        for line in lines:
            found = re.match(r"(?:\w+ \((.+)\) = )?([0-9A-Fa-f]{32,128})(?:\s+\*?(\S.*))?$", line)
            if found and os.path.basename((found[1] or found[3] or "").strip()) == name:
                return cls.parse(found[2])
        return None

    def check(self, path: str) -> None:
        """Compare with the digest of a file.

        Raises:
            Damaged: the file has another one.
        """
        digest = hashlib.new(self.algorithm)
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(BLOCK), b""):
                digest.update(block)
        if digest.hexdigest() != self.value:
            raise Damaged(f"its {self.algorithm} is {digest.hexdigest()}, not {self.value}")


def _kind(name: str) -> Tuple[bool, str]:
    """Return whether a name is that of a tar file, and its last ending."""
    stem, ending = os.path.splitext(name.lower())
    return ending in (".tar", ".tgz") or stem.endswith(".tar"), ending


def is_archive(name: str) -> bool:
    """Return whether :func:`check_archive` can tell a whole file of this name from a broken one."""
    is_tar, ending = _kind(name)
    return is_tar or ending in (*OPENERS, ".zip")


def check_archive(path: str, name: str) -> int:
    """Read an archive or compressed file to its end; ``name`` tells its kind.

    Returns:
        The number of bytes that it unpacks to.

    Raises:
        Damaged: it is cut off, broken, something else (a web page, say), or a bomb, which unpacks
            to many times its size.
    """
    is_tar, ending = _kind(name)
    total = 0
    try:
        size = os.path.getsize(path)
        if not size:
            raise Damaged("it is empty")
        if ending == ".zip":
            total = _check_zip(path, size)
        elif ending in OPENERS:
            with OPENERS[ending](path) as stream:
                for block in iter(lambda: stream.read(BLOCK), b""):
                    total = _bounded(total + len(block), size)
        if is_tar:
            with _open_tar(path) as tar:
                total = _check_tar(tar, size)
        return total
    except Damaged:
        raise
    except _BROKEN as error:
        raise Damaged(f"it is no whole {ending[1:]} file ({error})") from error


def _bounded(total: int, size: int) -> int:
    if total > max(_HARMLESS, _LARGEST_RATIO * size):
        raise Damaged(f"it unpacks to more than {_LARGEST_RATIO} times its own size")
    return total


def _check_zip(path: str, size: int) -> int:
    """Return the bytes that a zip file unpacks to, if it is whole and as long as it says."""
    with zipfile.ZipFile(path) as archive:
        total = _bounded(sum(member.file_size for member in archive.infolist()), size)
        broken = archive.testzip()
        count = len(archive.infolist())
    if broken:
        raise Damaged(f"{broken!r} in it is broken")
    with open(path, "rb") as stream:
        stream.seek(max(0, size - _ZIP_END))
        end = stream.read()
    (stated,) = struct.unpack_from("<H", end, end.rfind(b"PK\5\6") + 10)
    # larger counts do not fit into the record
    if not count or stated not in (count, 0xFFFF):
        raise Damaged(f"of its {stated} files, {count} are there")
    return total


def _check_tar(tar: tarfile.TarFile, size: int) -> int:
    """Return the bytes that all files take, where links are copies, if the tar file is whole."""
    for member in tar:
        if member.size < 0:
            raise Damaged(f"the size of {member.name!r} is negative")  # tarfile would never end
    if not tar.getmembers():
        raise Damaged("it holds no files")
    total = 0
    for member in tar.getmembers():
        stream = _open_member(tar, member) if member.islnk() or member.issym() else None
        total += stream.seek(0, os.SEEK_END) if stream else member.size
    _bounded(total, size)
    # tarfile takes a broken header for the end, behind which there are empty blocks alone
    assert tar.fileobj
    tar.fileobj.seek(tar.offset)
    rest = tar.fileobj.read(BLOCK)
    if len(rest) < tarfile.BLOCKSIZE or rest.strip(b"\0"):
        raise Damaged(f"it is broken or cut off behind {tar.offset} bytes")
    return total


def _open_tar(path: str) -> tarfile.TarFile:
    mode = TAR_MODES.get(_kind(path)[1], "r")
    return tarfile.open(path, mode)  # type: ignore[call-overload]


def _open_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Optional[IO[bytes]]:
    """Open a file in a tar file, of a link what it points to in it; None of anything else."""
    try:
        return tar.extractfile(member)
    except KeyError:
        return None


def unpack(path: str, folder: str) -> int:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` … or a single compressed file into ``folder``.

    Every file gets its name only when it is whole; what is there under that name is replaced.
    Links become copies of what they point to; ownership and modes are not restored.

    Returns:
        The number of files.

    Raises:
        UsageError: the archive is broken, a bomb or of no known kind, the folder cannot be written,
            or a path or link leaves the archive; then no file is touched.
    """
    if not is_archive(path):
        raise UsageError(f"cannot unpack {path}: its name ends like no archive's")
    try:
        # reading a compressed tar file's members does not verify its checksum; this does
        total = check_archive(path, path)
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack", dir=folder) as staging:
            free = shutil.disk_usage(folder).free
            if total > free:
                raise UsageError(
                    f"{path} takes {total / 1e9:.1f} GB unpacked, and {free / 1e9:.1f} are free"
                )
            names = [_write(staging, name, stream) for name, stream in _members(path)]
            targets = {name: os.path.join(folder, name) for name in names}
            for name, target in targets.items():
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(os.path.join(staging, name), target)
            for parent in {os.path.dirname(target) for target in targets.values()}:
                sync(parent)
    except UsageError:
        raise
    except _BROKEN as error:  # Damaged among them
        raise UsageError(f"cannot unpack {path}: {error}") from error
    return len(targets)


def _write(staging: str, name: str, stream: IO[bytes]) -> str:
    """Write a member below the folder ``staging``; return its relative path."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    outside = name.startswith(("/", "\\")) or ".." in parts or ":" in (parts or [":"])[0]
    if outside:
        raise UsageError(f"refused to unpack: the path {name!r} leaves the archive's folder")
    if len(parts) > _DEEPEST or re.search("[\0-\x1f\x7f]", name):
        raise UsageError(f"refused to unpack: {name[:100]!r} is no name for a file")
    with stream, replacing(os.path.join(staging, *parts), "wb") as target:
        shutil.copyfileobj(stream, target, BLOCK)
    return os.path.join(*parts)


def _members(path: str) -> Iterator[Tuple[str, IO[bytes]]]:
    """Yield name and content of every file of an archive."""
    is_tar, ending = _kind(path)
    if is_tar:
        with _open_tar(path) as tar:
            for member in tar.getmembers():
                stream = _open_member(tar, member)
                if stream:
                    yield member.name, stream
                elif not member.isdir():
                    raise UsageError(
                        f"refused to unpack: {member.name!r} is no file, or a link to none in "
                        f"{path}"
                    )
    elif ending == ".zip":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                # is_dir fails without a name
                if not info.filename or not info.is_dir():
                    yield info.filename, archive.open(info)
    else:
        stem = os.path.splitext(os.path.basename(path))[0]
        yield stem, OPENERS[ending](path)
