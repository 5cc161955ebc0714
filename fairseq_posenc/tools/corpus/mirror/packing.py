"""Archives whose bytes depend on nothing but what is in them: no times, no owners."""

import gzip
import io
import tarfile
from contextlib import ExitStack
from typing import BinaryIO, Iterable, Tuple

MOMENT = 1_400_000_000


def pack(stream: BinaryIO, compress: bool, members: Iterable[Tuple[str, bytes]]) -> None:
    """Write a tar file, with ``compress`` a tgz; members called ``.gz`` are compressed in it.

    Args:
        stream: open for writing.
        compress: whether the whole is compressed.
        members: names and contents (those of ``.gz`` members not compressed yet).
    """
    with ExitStack() as opened:
        target = opened.enter_context(_gzip(stream)) if compress else stream
        archive = opened.enter_context(tarfile.open(fileobj=target, mode="w"))
        for name, content in members:
            if name.endswith(".gz"):
                content = _compressed(content)
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), MOMENT
            archive.addfile(member, io.BytesIO(content))


def _gzip(stream: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0)


def _compressed(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with _gzip(buffer) as stream:
        stream.write(content)
    return buffer.getvalue()
