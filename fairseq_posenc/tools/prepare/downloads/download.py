"""Downloads by curl that may be cut at any time: continued, verified, and only then named.

While it grows, a file is called ``NAME.part``. It is continued only where a checksum, or an archive
that is whole, proves afterwards that no two versions of the file were joined.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from typing import BinaryIO, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads.archives import (
    Checksum,
    Damaged,
    check_archive,
    is_archive,
)
from fairseq_posenc.tools.writing import sync
from fairseq_posenc.version import __version__

# Wikimedia turns away programs that do not say who they are
AGENT = f"fairseq_posenc/{__version__} (curl)"
LARGEST_LISTING = 1 << 24  # bytes of a list of checksums; Wikimedia's have some 20,000
LONGEST_PAUSE = 60.0  # seconds
# curl's exit codes and HTTP's errors that another try would not change; curl's for a server that
# cannot continue, and for a file that cannot be written
_LASTING_EXITS, _LASTING_ERRORS = (1, 3, 47, 60, 63), "error: (?!408|425|429)4"
_CANNOT_CONTINUE, _CANNOT_WRITE = 33, 23


class RetryPolicy(NamedTuple):
    """How often and how long to try.

    Attributes:
        attempts: tries that bring no byte.
        pause: seconds before the second try, then doubled.
        timeout: seconds that a server may be silent.
    """

    attempts: int = 5
    pause: float = 1.0
    timeout: float = 60.0


RETRIES = RetryPolicy()


class _Refused(Exception):
    """This address does not give the file."""


def download(
    urls: Sequence[str],
    path: str,
    checksum: Optional[Checksum] = None,
    quiet: bool = False,
    retries: RetryPolicy = RETRIES,
    largest: Optional[int] = None,
) -> None:
    """Fetch a file from the first of several mirrors that has it whole.

    The length that the server states is checked, then the checksum; without one, archives (``.gz
    .bz2 .xz .zip .tar``) are read to their end. A file that is there under its own name is only
    compared with the checksum. A second process that wants the same file waits for the first, or on
    a file system without locks loads it, too.

    Args:
        urls: ``http`` or ``https`` addresses of the same file.
        path: the file to write; folders on the way are made.
        checksum: what the file must have.
        quiet: show no progress and no message about connections that were lost.
        retries: how often and how long to try.
        largest: bytes that the file may have.

    Raises:
        UsageError: no mirror gives the file whole, the file that is there has another checksum,
            the file cannot be written, or curl is not installed.
    """
    for url in urls:
        if not re.match(r"https?://[^/@]+(/|$)", url):
            raise UsageError(
                f"cannot download {url}: give an http or https address, without name and password"
            )
    if os.path.exists(path):
        try:
            if checksum:
                checksum.check(path)
        except Damaged as error:
            raise UsageError(f"{path} is there already, but {error}; remove it") from error
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
        return
    with _open_part(path) as part:
        if os.path.exists(path):  # another process has loaded it meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.remove(part.name)
            return
        problems: List[str] = []
        for url in urls:
            try:
                _fetch_whole(url, path, part, checksum, quiet, retries, largest)
                break
            except _Refused as problem:
                problems.append(f"{url}: {problem}")
                _say(problems[-1], quiet)
        else:
            raise UsageError(f"cannot download {os.path.basename(path)}: {'; '.join(problems)}")
        sync(part.name)
        os.replace(part.name, path)
        sync(os.path.dirname(part.name))


@contextlib.contextmanager
def _open_part(path: str) -> Iterator[BinaryIO]:
    """Open the growing file, as soon as no other process has it open.

    On a file system without locks it is a file of this process alone, with what an earlier one has
    left: of several processes that rename the same file, one gets it.
    """
    part = f"{os.path.abspath(path)}.part"
    own = f"{part}.{secrets.token_hex(4)}"
    try:
        os.makedirs(os.path.dirname(part), exist_ok=True)
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(open(part, "ab"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    os.replace(part, own)
                stream = opened.enter_context(open(own, "ab"))
            yield stream
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.replace(own, part)


def _fetch_whole(
    url: str,
    path: str,
    part: BinaryIO,
    checksum: Optional[Checksum],
    quiet: bool,
    retries: RetryPolicy,
    largest: Optional[int],
) -> None:
    """Complete the growing file from one address; what turns out damaged is begun once more."""
    if not (checksum or is_archive(path)):
        part.truncate(0)
    while True:
        continued = os.path.getsize(part.name) > 0
        _with_retries(url, part, quiet, retries, largest)
        try:
            if checksum:
                checksum.check(part.name)
            elif is_archive(path):
                check_archive(part.name, path)
            return
        except Damaged as error:
            part.truncate(0)
            if not continued:
                raise _Refused(f"what it gave is damaged: {error}") from error
            _say(f"{path} is damaged ({error}); loading it afresh", quiet)


def _with_retries(
    url: str, part: BinaryIO, quiet: bool, retries: RetryPolicy, largest: Optional[int]
) -> None:
    """Run curl until it has the end of the file; tries are counted anew when it gets further.

    Raises:
        _Refused: it never does.
        UsageError: the file cannot be written, or curl is not installed.
    """
    failures, furthest = 0, os.path.getsize(part.name)
    while True:
        code, message = _run_curl(url, part, quiet, retries.timeout, largest)
        size = os.path.getsize(part.name)
        if largest is not None and size > largest:
            part.truncate(0)
            raise _Refused(f"it has more than the {largest:,} bytes allowed")
        if code == 0:
            return
        if code == _CANNOT_WRITE:
            raise UsageError(f"cannot write {part.name}: {message}")
        failures = 1 if size > furthest else failures + 1
        furthest = max(size, furthest)
        if code in _LASTING_EXITS or re.search(_LASTING_ERRORS, message):
            raise _Refused(message)
        if failures > retries.attempts:
            raise _Refused(f"{message} ({failures} times)")
        if code == _CANNOT_CONTINUE:
            part.truncate(0)
        pause = min(LONGEST_PAUSE, retries.pause * 2 ** (failures - 1))
        _say(f"{url}: at byte {size:,}: {message}; trying again in {pause:g} s", quiet)
        time.sleep(pause)


def _run_curl(
    url: str, part: BinaryIO, quiet: bool, timeout: float, largest: Optional[int]
) -> Tuple[int, str]:
    """Let curl append to the growing file; return its exit code and its error message."""
    free = shutil.disk_usage(os.path.dirname(part.name)).free
    seconds = str(max(1, round(timeout)))
    command = ["curl", "--disable", "--globoff", "--fail", "--location", "--silent", "--show-error"]
    command += ["--proto", "=http,https", "--max-filesize", str(min(free, largest or free))]
    command += ["--connect-timeout", seconds, "--speed-time", seconds, "--speed-limit", "1"]
    command += ["--user-agent", AGENT, "--continue-at", "-", "--output", part.name, "--url", url]
    bar = tqdm(
        desc=os.path.basename(part.name)[: -len(".part")], initial=os.path.getsize(part.name),
        unit="B", unit_scale=True, disable=True if quiet else None,
    )  # fmt: skip
    try:
        # if this process is killed, curl goes on and keeps the lock until it ends
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
            pass_fds=[part.fileno()],
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError("downloads need the program curl, which is not installed") from None
    with bar, process:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            size = os.path.getsize(part.name)
            bar.update(size - bar.n)
            if largest is not None and size > largest:
                process.kill()
        assert process.stderr
        said = process.stderr.read().strip().splitlines()
    message = re.sub(r"^curl: \(\d+\) ", "", said[-1])[:200] if said else ""
    return process.returncode, message or f"curl ended with {process.returncode}"


def _say(message: str, quiet: bool) -> None:
    if not quiet:
        tqdm.write(f"download: {message}", file=sys.stderr)
