"""Downloads by curl that may be cut at any time: continued, verified, and only then named.

While it grows, a file is called ``NAME.part``.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_digest, file_error
from fairseq_posenc.tools.downloads.archives import check_archive, is_archive
from fairseq_posenc.tools.locks import locked
from fairseq_posenc.tools.writing import sync

TRIES = 5  # that bring no byte
LONGEST_PAUSE = 60  # seconds
# silence of a minute ends a try
_CURL = """curl --disable --globoff --fail --location --proto =http,https --proto-redir =http,https
    --connect-timeout 60 --speed-time 60 --speed-limit 1 --continue-at - --write-out %{errormsg}
    --show-error""".split()
_NO_RANGES, _CANNOT_WRITE = 33, 23  # curl's exit codes
# another try would not help: bad addresses, protocols, redirections and certificates
_LASTING_EXITS, _LASTING_ERRORS = (1, 3, 47, 60), "error: (?!408|425|429)4"


class Checksum(NamedTuple):
    """The digest that a file must have: name of the algorithm, hexadecimal digits."""

    algorithm: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Read hexadecimal digits, whose number tells MD5, SHA-1, SHA-256 and SHA-512."""
        algorithms = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
        digits = text.strip().lower()
        if not re.fullmatch("[0-9a-f]+", digits) or len(digits) not in algorithms:
            raise UsageError(f"{text!r} is not a checksum: give md5, sha1, sha256 or sha512 in hex")
        return cls(algorithms[len(digits)], digits)

    def check(self, path: str) -> None:
        """Compare with the digest of a file."""
        digest = file_digest(path, self.algorithm)
        if digest != self.value:
            raise UsageError(f"the {self.algorithm} of {path} is {digest}, not {self.value}")


def download(
    urls: Sequence[str], path: str, checksum: Optional[Checksum] = None, quiet: bool = False
) -> None:
    """Fetch a file from the first of several mirrors that has it whole.

    Its checksum is verified; without one, archives are read to their end. A file that is there
    under its own name is only compared with the checksum. A second process that wants the same file
    waits for the first, where the file system has locks.

    Args:
        urls: ``http`` or ``https`` addresses of the same file.
    """
    for url in urls:
        if not re.match(r"https?://[^/@]+(/|$)", url):
            raise UsageError(
                f"cannot download {url}: give an http or https address, without name and password"
            )
    part = f"{os.path.abspath(path)}.part"
    try:
        os.makedirs(os.path.dirname(part), exist_ok=True)
        with contextlib.ExitStack() as opened:
            # a file that is there needs no lock: nobody writes to it
            if not os.path.exists(path):
                opened.enter_context(locked(part))
            if os.path.exists(path):  # perhaps another process has loaded it meanwhile
                with contextlib.suppress(FileNotFoundError):
                    os.remove(part)
                return checksum.check(path) if checksum else None
            _from_any(urls, path, part, checksum, quiet)
            sync(part)
            os.replace(part, path)
            sync(os.path.dirname(part))
    except OSError as error:
        raise file_error("write", path, error) from error


def _from_any(
    urls: Sequence[str], path: str, part: str, checksum: Optional[Checksum], quiet: bool
) -> None:
    """Complete the part from the first address that gives it whole."""
    problems = []
    for url in urls:
        if not (checksum or is_archive(path)):
            os.truncate(part, 0)  # nothing would tell whether two versions were joined
        # a part that was continued may be of another version: once more from the start
        for continued in (os.path.getsize(part) > 0, False):
            problem = _fetch(url, part, quiet)
            if problem:
                break
            try:
                if checksum:
                    checksum.check(part)
                elif is_archive(path):
                    check_archive(part, path)
                return
            except UsageError as error:
                problem = str(error)
                os.truncate(part, 0)
            if not continued:
                break
        problems.append(f"{url}: {problem}")
    raise UsageError(f"cannot download {os.path.basename(path)}: {'; '.join(problems)}")


def _fetch(url: str, part: str, quiet: bool) -> str:
    """Run curl until it has the end of the file; return what went wrong for good, or nothing.

    Its own --retry would throw away what a try that was cut has brought. Each try here is a new
    curl, which continues. Tries are counted anew when one has brought something.
    """
    failures, furthest = 0, os.path.getsize(part)
    show = not quiet and sys.stderr.isatty()
    command = [*_CURL, "--progress-bar" if show else "--silent", "--output", part, "--url", url]
    while True:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, errors="replace",
                                  stderr=None if show else subprocess.DEVNULL)  # fmt: skip
        except FileNotFoundError:
            raise UsageError("downloads need the program curl, which is not installed") from None
        if done.returncode == 0:
            return ""
        problem = f"{done.stdout.strip()[:200]} (curl's error {done.returncode})"
        if done.returncode == _CANNOT_WRITE:
            raise UsageError(f"cannot write {part}: {problem}")
        size = os.path.getsize(part)
        failures = 1 if size > furthest else failures + 1
        furthest = max(size, furthest)
        lasting = done.returncode in _LASTING_EXITS or re.search(_LASTING_ERRORS, problem)
        if lasting or failures > TRIES:
            return problem
        if done.returncode == _NO_RANGES:
            os.truncate(part, 0)
        time.sleep(min(LONGEST_PAUSE, 2 ** (failures - 1)))
