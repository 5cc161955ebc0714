"""Checksums, integrity and unpacking of downloaded files."""

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
from typing import IO, Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple, Type

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing, sync
from fairseq_posenc.tools.prepare.downloads.web import BLOCK

# tarfile's modes; without one, its errors have a line for every kind of compression
TAR_MODES = {".tar": "r:", ".gz": "r:gz", ".tgz": "r:gz", ".bz2": "r:bz2", ".xz": "r:xz"}
OPENERS: Dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".tgz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
BROKEN: Tuple[Type[Exception], ...] = (EOFError, OSError, RuntimeError, zipfile.BadZipFile)
BROKEN += (zlib.error, lzma.LZMAError, tarfile.TarError)
# what zipfile raises for wrong bytes where it does not expect them
BROKEN += (ValueError, IndexError, OverflowError, struct.error)


# the record at the end of a zip file with the longest comment
_ZIP_END = 22 + 0xFFFF
# no text is packed to less than a 200th; what unpacks to less than a GiB may be
_LARGEST_RATIO, _HARMLESS = 200, 1 << 30
_DEEPEST = 100  # folders in one another


class Damaged(ValueError):
    """A file that is not what it should be; the message says how."""


class Checksum(NamedTuple):
    """What a file's bytes must add up to."""

    algorithm: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Read ``sha256:<hex>``, or the digits alone, whose number tells MD5, SHA-1, -256, -512.

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
    def from_listing(cls, lines: Iterator[str], name: str) -> Optional["Checksum"]:
        """Find a file in the output of ``sha1sum`` and its like, also ``SHA1 (name) = …``."""
        for line in lines:
            found = re.match(r"(?:\w+ \((.+)\) = )?([0-9A-Fa-f]{32,128})(?:\s+\*?(\S.*))?$", line)
            if found and os.path.basename((found[1] or found[3] or "").strip()) == name:
                return cls.parse(found[2])
        return None

    def check(self, path: str, show: Callable[[int], None] = lambda count: None) -> None:
        """Compare; ``show`` is told how many bytes were read.

        Raises:
            Damaged: the file has another checksum.
        """
        digest = hashlib.new(self.algorithm)
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(BLOCK), b""):
                digest.update(block)
                show(len(block))
        if digest.hexdigest() != self.value:
            raise Damaged(f"its {self.algorithm} is {digest.hexdigest()}, not {self.value}")


def suffixes(name: str) -> Tuple[bool, str]:
    """Return whether a name is that of a tar file, and its last ending."""
    stem, ending = os.path.splitext(name.lower())
    return ending in (".tar", ".tgz") or stem.endswith(".tar"), ending


def is_archive(name: str) -> bool:
    """Return whether :func:`check_archive` can tell a whole file of this name from a broken one."""
    return suffixes(name)[0] or suffixes(name)[1] in (*OPENERS, ".zip")


def check_archive(path: str, name: str) -> int:
    """Read a compressed file to its end; ``name`` tells its kind.

    Returns:
        The number of bytes that it unpacks to.

    Raises:
        Damaged: it is cut off, broken, something else (a web page, say), or a bomb, which unpacks
            to many times its size.
    """
    is_tar, ending = suffixes(name)
    total = 0
    try:
        size = os.path.getsize(path)
        if not size:
            raise Damaged("it is empty")
        if ending == ".zip":
            with zipfile.ZipFile(path) as archive:
                total = _bounded(sum(member.file_size for member in archive.infolist()), size)
                broken = archive.testzip()
                count = len(archive.infolist())
            if broken:
                raise Damaged(f"{broken!r} in it is broken")
            if not 0 < count == _count_in_zip(path, count):
                raise Damaged("it lacks files that it shall have")
        elif ending in OPENERS:
            with OPENERS[ending](path) as stream:
                for block in iter(lambda: stream.read(BLOCK), b""):
                    total = _bounded(total + len(block), size)
        if is_tar:
            with open_tar(path, ending) as tar:
                total = _bounded(_tar_total(tar), size)
                _check_end(tar)
        return total
    except Damaged:
        raise
    except BROKEN as error:
        raise Damaged(f"it is no whole {ending[1:]} file ({error})") from error


def _bounded(total: int, size: int) -> int:
    if total > max(_HARMLESS, _LARGEST_RATIO * size):
        raise Damaged(f"it unpacks to more than {_LARGEST_RATIO} times its own size")
    return total


def _tar_total(tar: tarfile.TarFile) -> int:
    """Return how many bytes all files take once unpacked, where links are copies."""
    for member in tar:
        # with such, tarfile goes round in circles
        if member.size < 0:
            raise Damaged(f"the size of {member.name!r} is negative")
    if not tar.getmembers():
        raise Damaged("it holds no files")
    total = 0
    for member in tar.getmembers():
        stream = _open_member(tar, member) if member.islnk() or member.issym() else None
        total += stream.seek(0, os.SEEK_END) if stream else member.size
    return total


def _open_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Optional[IO[bytes]]:
    """Open a file in a tar file, of a link what it points to in it; None of anything else."""
    try:
        return tar.extractfile(member)
    except KeyError:
        return None


def _count_in_zip(path: str, count: int) -> int:
    """Return how many files a zip file says that it has, or ``count`` if it has too many to say."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - _ZIP_END))
        end = stream.read()
    (told,) = struct.unpack_from("<H", end, end.rfind(b"PK\5\6") + 10)
    return count if told == 0xFFFF else int(told)


def _check_end(tar: tarfile.TarFile) -> None:
    """Look for empty blocks alone at the end; tarfile takes a broken header, too, for the end."""
    stream = tar.fileobj
    assert stream
    stream.seek(tar.offset)
    rest = stream.read(BLOCK)
    if len(rest) < tarfile.BLOCKSIZE or rest.strip(b"\0"):
        raise Damaged(f"it is broken or cut off behind {tar.offset} bytes")


def open_tar(path: str, ending: str) -> tarfile.TarFile:
    """Open a tar file for reading; ``ending`` tells how it is compressed."""
    return tarfile.open(path, TAR_MODES.get(ending, "r"))  # type: ignore[call-overload]


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
    is_tar, ending = suffixes(path)
    members = _tar_members if is_tar else {".zip": _zip_members}.get(ending, _only_member)
    if not is_archive(path):
        raise UsageError(f"cannot unpack {path}: its name ends like no archive's")
    try:
        # what is read of a compressed tar file to unpack it does not include its checksum
        total = check_archive(path, path)
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack", dir=folder) as staging:
            free = shutil.disk_usage(folder).free
            if total > free:
                told = f"{total / 1e9:.1f} GB unpacked, and only {free / 1e9:.1f} are free"
                raise UsageError(f"{path} takes {told}")
            names = [_write(staging, *member) for member in members(path)]
            targets = {name: os.path.join(folder, name) for name in names}
            for name, target in targets.items():
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(os.path.join(staging, name), target)
            for place in {os.path.dirname(target) for target in targets.values()}:
                sync(place)
    except UsageError:
        raise
    except BROKEN as error:  # Damaged among them
        raise UsageError(f"cannot unpack {path}: {error}") from error
    return len(targets)


def _write(staging: str, name: str, stream: IO[bytes]) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    outside = name.startswith(("/", "\\")) or ".." in parts or ":" in (parts or [":"])[0]
    if outside:
        raise UsageError(f"refused to unpack: the path {name!r} leaves the archive's folder")
    if len(parts) > _DEEPEST or re.search("[\0-\x1f\x7f]", name):
        raise UsageError(f"refused to unpack: {name[:100]!r} is no name for a file")
    with stream, replacing(os.path.join(staging, *parts), "wb") as target:
        shutil.copyfileobj(stream, target, BLOCK)
    return os.path.join(*parts)


def _zip_members(path: str) -> Iterator[Tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # without a name, is_dir fails
            if not member.filename or not member.is_dir():
                yield member.filename, archive.open(member)


def _tar_members(path: str) -> Iterator[Tuple[str, IO[bytes]]]:
    with open_tar(path, suffixes(path)[1]) as archive:
        for member in archive.getmembers():
            if member.isdir():
                continue
            stream = _open_member(archive, member)
            if stream is None:
                raise UsageError(
                    f"refused to unpack: {member.name!r} is no file, or a link to none in {path}"
                )
            yield member.name, stream


def _only_member(path: str) -> Iterator[Tuple[str, IO[bytes]]]:
    stem, ending = os.path.splitext(os.path.basename(path))
    yield stem, OPENERS[ending.lower()](path)
