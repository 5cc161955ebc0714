"""Downloads that may be cut at any time: continued, verified, and only then given their name.

While it grows, a file is called ``NAME.part``; ``NAME.part.note`` says where its bytes came from,
so that two versions of a file are never joined.
"""

import http.client
import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing, sync
from fairseq_posenc.json_files import OrNull, read_shaped
from fairseq_posenc.tools.prepare.downloads.archives import (
    Checksum,
    Damaged,
    check_archive,
    is_archive,
)
from fairseq_posenc.tools.prepare.downloads.web import (
    PATIENCE,
    Changed,
    Cut,
    Patience,
    Refused,
    ask,
    blocks,
    insist,
    misfit,
    number,
)

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


def download(
    urls: Sequence[str],
    path: str,
    checksum: Optional[Checksum] = None,
    quiet: bool = False,
    patience: Patience = PATIENCE,
    most: Optional[int] = None,
) -> None:
    """Fetch a file from the first of several mirrors that has it whole.

    What was loaded earlier is continued where the server can do that. The length that the server
    told is checked, then the checksum; without one, archives (``.gz .bz2 .xz .zip .tar``) are read
    to their end. A file that is there under its own name is only compared with the checksum.

    Args:
        urls: ``http`` or ``https`` addresses of the same file.
        path: the file to write; folders on the way are made.
        checksum: what its bytes must add up to.
        quiet: show no progress and no word of connections that were lost.
        patience: how often and how long to try.
        most: bytes that the file may have.

    Raises:
        UsageError: no mirror gave the file whole, the file that is there has another checksum,
            another process is loading it, or it cannot be written.
    """
    for url in urls:
        problem = misfit(url)
        if problem:
            raise UsageError(f"cannot download {url}: {problem}")
    if os.path.exists(path):
        _check_existing(path, checksum, quiet)
        return
    with _open_part(path) as part:
        loading = _Loading(part, path, checksum, quiet, patience, most)
        if not loading.from_any(urls):
            problems = "; ".join(loading.problems)
            raise UsageError(f"cannot download {os.path.basename(path)}: {problems}")
        sync(part.path)
        os.replace(part.path, path)
        sync(os.path.dirname(os.path.abspath(path)))
        os.remove(part.note_path)


_NOTE = {"url": str, "version": str, "size": OrNull(int)}


class _Part:
    """The growing file, locked while it is open, and the note on its origin."""

    def __init__(self, path: str, stream: BinaryIO):
        self.path, self.note_path, self.stream = f"{path}.part", f"{path}.part.note", stream
        self.note: Dict = {}
        try:
            self.note = read_shaped(self.note_path, _NOTE, "download.py")
        except UsageError:
            self.clear()

    @property
    def size(self) -> int:
        self.stream.flush()
        return os.fstat(self.stream.fileno()).st_size

    def clear(self) -> None:
        self.stream.truncate(0)
        self.note = {}

    def write_note(self, **note: Any) -> None:
        self.note = note
        with replacing(self.note_path) as stream:
            json.dump(note, stream)


@contextmanager
def _open_part(path: str) -> Iterator[_Part]:
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(f"{path}.part", "ab") as stream:
            if fcntl:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise UsageError(f"another process is downloading {path}") from error
                except OSError:
                    pass  # a file system without locks; the size tells when another one writes
            yield _Part(path, stream)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


class _Loading:
    """One file on its way; ``problems`` tells what the mirrors did wrong."""

    def __init__(
        self,
        part: _Part,
        path: str,
        checksum: Optional[Checksum],
        quiet: bool,
        patience: Patience,
        most: Optional[int],
    ):
        self.part, self.path, self.checksum = part, path, checksum
        self.quiet, self.patience, self.most = quiet, patience, most
        self.problems: List[str] = []

    def from_any(self, urls: Sequence[str]) -> bool:
        for url in urls:
            try:
                self._from_one(url)
                return True
            except Refused as problem:
                self.problems.append(f"{url}: {problem}")
                self._say(self.problems[-1])
        return False

    def _from_one(self, url: str) -> None:
        # what another mirror gave is continued only where the result can be verified
        if not (self.checksum or is_archive(self.path)) and self.part.note.get("url") != url:
            self.part.clear()
        for continued in (self.part.size > 0, False):
            insist(
                lambda: self._transfer(url),
                self.patience,
                lambda: self.part.size,
                lambda message: self._say(f"{url}: at byte {self.part.size}: {message}"),
            )
            try:
                _check(self.part.path, self.path, self.checksum, self.quiet)
                return
            except Damaged as error:
                self.part.clear()
                if not continued:
                    raise Refused(f"what it gave is damaged: {error}") from error
                self._say(f"{self.path} is damaged ({error}); loading it afresh")

    def _transfer(self, url: str) -> None:
        part = self.part
        headers = {}
        if part.size:
            if part.size == part.note.get("size"):
                return
            headers["Range"] = f"bytes={part.size}-"
            if part.note.get("url") == url and part.note.get("version"):
                headers["If-Range"] = part.note["version"]
        try:
            with ask(url, self.patience.timeout, **headers) as response:
                size, total = self._begin(url, response)
                with _bar(os.path.basename(self.path), self.quiet, total, size) as bar:
                    for block in blocks(response):
                        size += len(block)
                        self._limit(size, total)
                        part.stream.write(block)
                        bar.update(len(block))
                        if part.size != size:
                            raise UsageError(f"another process is downloading {self.path}")
        except Changed:
            part.clear()
            raise
        if total is not None and size < total:
            raise Cut("the connection ended early")

    def _limit(self, size: int, total: Optional[int]) -> None:
        """Refuse more bytes than the server told of, or than there may be."""
        if total is not None and size > total:
            self.part.clear()
            raise Refused(f"it sent more than the {total:,} bytes that it told of")
        if self.most is not None and size > self.most:
            self.part.clear()
            raise Refused(f"it has more than the {self.most:,} bytes allowed")

    def _begin(self, url: str, response: http.client.HTTPResponse) -> Tuple[int, Optional[int]]:
        """Decide whether to continue; return the first byte to come and the whole file's size."""
        part = self.part
        if response.status == 206:
            told = response.headers.get("Content-Range") or ""
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", told)
            begun = (part.size, part.note.get("size"))
            if not found or (number(found[1]), number(found[2])) != begun:
                raise Changed("the file has changed on the server")
            return begun
        total = number(response.headers.get("Content-Length"))
        packed = response.headers.get("Content-Encoding") or "identity"
        # of archives, servers say so that are not asked to pack anything
        if packed.lower() != "identity" and not (self.checksum or is_archive(self.path)):
            raise Refused("it sent the file packed, which it was not asked for")
        self._limit(total or 0, total)
        version = response.headers.get("ETag") or ""
        if not version.startswith('"'):
            # a weak tag does not promise the same bytes
            version = response.headers.get("Last-Modified") or ""
        if not version.isprintable():
            version = ""  # no header can send it back
        part.clear()
        part.write_note(url=url, version=version, size=total)
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(part.path))).free
        if total is not None and total > free:
            raise UsageError(
                f"{url} has {total / 1e9:.1f} GB, and only {free / 1e9:.1f} GB of disk are free"
            )
        return 0, total

    def _say(self, message: str) -> None:
        if not self.quiet:
            tqdm.write(f"download: {message}", file=sys.stderr)


def _check_existing(path: str, checksum: Optional[Checksum], quiet: bool) -> None:
    if checksum is None:
        return
    try:
        _check(path, path, checksum, quiet)
    except Damaged as error:
        raise UsageError(f"{path} is there already, but {error}; remove it") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def _check(path: str, name: str, checksum: Optional[Checksum], quiet: bool) -> None:
    if checksum is None:
        check_archive(path, name)
        return
    title = f"{os.path.basename(name)}: {checksum.algorithm}"
    with _bar(title, quiet, os.path.getsize(path)) as bar:
        checksum.check(path, bar.update)


def _bar(title: str, quiet: bool, total: Optional[int], start: int = 0) -> tqdm:
    disable = True if quiet else None
    return tqdm(desc=title, total=total, initial=start, unit="B", unit_scale=True, disable=disable)
