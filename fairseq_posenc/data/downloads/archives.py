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

from fairseq_posenc.data.downloads.web import BLOCK
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing

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


def check_archive(path: str, name: str) -> None:
    """Read a compressed file to its end; ``name`` tells its kind.

    Raises:
        Damaged: it is cut off, broken, or something else (a web page, say).
    """
    is_tar, ending = suffixes(name)
    try:
        if not os.path.getsize(path):
            raise Damaged("it is empty")
        if ending == ".zip":
            with zipfile.ZipFile(path) as archive:
                broken = archive.testzip()
                count = len(archive.infolist())
            if broken:
                raise Damaged(f"{broken!r} in it is broken")
            if not 0 < count == _count_in_zip(path, count):
                raise Damaged("it lacks files that it shall have")
        elif ending in OPENERS:
            with OPENERS[ending](path) as stream:
                while stream.read(BLOCK):
                    pass
        if is_tar:
            with open_tar(path, ending) as tar:
                if not tar.getmembers():
                    raise Damaged("it holds no files")
                _check_end(tar)
    except Damaged:
        raise
    except BROKEN as error:
        raise Damaged(f"it is no whole {ending[1:]} file ({error})") from error


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
        UsageError: the archive is broken or of no known kind, the folder cannot be written, or a
            path or link leaves the archive; then no file is touched.
    """
    is_tar, ending = suffixes(path)
    members = _tar_members if is_tar else {".zip": _zip_members}.get(ending, _only_member)
    if not is_archive(path):
        raise UsageError(f"cannot unpack {path}: its name ends like no archive's")
    try:
        # what is read of a compressed tar file to unpack it does not include its checksum
        check_archive(path, path)
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack", dir=folder) as staging:
            names = [_write(staging, *member) for member in members(path)]
            for name in dict.fromkeys(names):
                target = os.path.join(folder, name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(os.path.join(staging, name), target)
    except UsageError:
        raise
    except BROKEN as error:  # Damaged among them
        raise UsageError(f"cannot unpack {path}: {error}") from error
    return len(set(names))


def _write(staging: str, name: str, size: int, stream: IO[bytes]) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    outside = name.startswith(("/", "\\")) or ".." in parts or ":" in (parts or [":"])[0]
    if outside or "\0" in name:
        raise UsageError(f"refused to unpack: the path {name!r} leaves the archive's folder")
    free = shutil.disk_usage(staging).free
    if size > free:
        raise UsageError(f"{name!r} takes {size / 1e9:.1f} GB, and only {free / 1e9:.1f} are free")
    with stream, replacing(os.path.join(staging, *parts), "wb") as target:
        shutil.copyfileobj(stream, target, BLOCK)
    return os.path.join(*parts)


def _zip_members(path: str) -> Iterator[Tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # without a name, is_dir fails
            if not member.filename or not member.is_dir():
                yield member.filename, member.file_size, archive.open(member)


def _tar_members(path: str) -> Iterator[Tuple[str, int, IO[bytes]]]:
    with open_tar(path, suffixes(path)[1]) as archive:
        for member in archive.getmembers():
            if member.isdir():
                continue
            try:
                # of a link: the file in the archive that it points to
                stream = archive.extractfile(member)
            except KeyError:
                stream = None
            if stream is None:
                raise UsageError(
                    f"refused to unpack: {member.name!r} is no file, or a link to none in {path}"
                )
            yield member.name, member.size, stream


def _only_member(path: str) -> Iterator[Tuple[str, int, IO[bytes]]]:
    stem, ending = os.path.splitext(os.path.basename(path))
    yield stem, 0, OPENERS[ending.lower()](path)
