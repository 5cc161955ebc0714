"""Asking web servers: what is worth another try, and what is not.

What a server says is not believed: numbers, addresses and words are looked at before they are used.
Proxies are taken from the environment (``http_proxy`` and its like).
"""

import http.client
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, TypeVar

from fairseq_posenc.errors import UsageError
from fairseq_posenc.version import __version__

# Wikimedia turns away programs that do not say who they are
AGENT = f"fairseq_posenc/{__version__} (Python-urllib)"
PASSING = (408, 425, 429, 500, 502, 503, 504)
LONGEST_PAUSE = 60.0
BLOCK = 1 << 20
LARGEST_TEXT = 1 << 24  # bytes of a list of checksums; Wikimedia's have some 20,000
_LONGEST_WORDS = 200

Result = TypeVar("Result")


class Patience(NamedTuple):
    """How long to go on: tries without a byte, first pause and silence of a server in seconds."""

    attempts: int = 5
    pause: float = 1.0
    timeout: float = 60.0


PATIENCE = Patience()


class Refused(Exception):
    """This server will not give the file."""


class Cut(Exception):
    """The connection failed; another try may succeed, ``pause`` seconds later."""

    def __init__(self, message: str, pause: float = 0.0):
        super().__init__(message)
        self.pause = pause


class Changed(Cut):
    """The server has another version of the file than the one begun."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to other addresses of the web; Python's own would follow to ftp as well."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Optional[urllib.request.Request]:
        problem = misfit(newurl)
        if problem:
            raise Refused(f"it sends on to {_printable(newurl)}: {problem}")
        # or Python reads what comes with it to its end, if it has one
        fp.close()
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def misfit(url: str) -> Optional[str]:
    """Return why an address is not asked for, None if it is."""
    try:
        parts = urllib.parse.urlsplit(url)
        named, _ = parts.username is None, parts.port
    except ValueError as error:
        return f"it is no address ({error})"
    if parts.scheme not in ("http", "https"):
        return "it is no http or https address"
    return None if named else "names and passwords in addresses are not sent"


def number(text: Optional[str]) -> Optional[int]:
    """Return the whole number that a header holds, None if it holds none."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text or "") else None  # type: ignore[arg-type]


def ask(url: str, timeout: float, **headers: str) -> http.client.HTTPResponse:
    """Open an address, and follow where the server sends on to another one of the web.

    Raises:
        Refused, Cut, Changed: it did not work out.
    """
    fields: Dict[str, str] = {"User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=fields)
    try:
        # urlopen would keep the proxies that were there when it was first called
        return urllib.request.build_opener(_Redirects).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        message = f"{error.code} {_words(error)}"
        if error.code == 416:
            raise Changed(message) from error
        if error.code not in PASSING:
            raise Refused(message) from error
        # a date in place of seconds is left alone
        raise Cut(message, number(error.headers.get("Retry-After")) or 0) from error
    except (ValueError, OverflowError, http.client.InvalidURL) as error:
        raise Refused(f"it is no address ({_words(error)})") from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
            raise Refused(_words(error)) from error
        raise Cut(_words(error)) from error


def blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield what the server sends, as it comes.

    Raises:
        Cut: the connection failed, or ended before the length that was told.
    """
    try:
        yield from iter(lambda: response.read1(BLOCK), b"")
        if response.length:
            raise Cut("the connection ended early")
    except (OSError, http.client.HTTPException) as error:
        raise Cut(_words(error)) from error


def insist(
    action: Callable[[], Result],
    patience: Patience,
    progress: Callable[[], int] = lambda: 0,
    say: Callable[[str], None] = lambda message: None,
) -> Result:
    """Repeat ``action`` while it is :class:`Cut`, after growing pauses.

    Tries are counted anew whenever ``progress`` (bytes so far) has grown.

    Raises:
        Refused: too many tries brought nothing.
    """
    failures = 0
    while True:
        before = progress()
        try:
            return action()
        except Cut as cut:
            failures = 1 if progress() > before else failures + 1
            if failures > patience.attempts:
                raise Refused(f"{cut} ({failures} times)") from cut
            pause = min(LONGEST_PAUSE, max(cut.pause, patience.pause * 2 ** (failures - 1)))
            say(f"{cut}; trying again in {pause:g} s")
            time.sleep(pause)


def fetch_text(url: str, patience: Patience = PATIENCE) -> str:
    """Return a small UTF-8 file.

    Raises:
        UsageError: the server does not give it, or it is no small one.
    """

    def load() -> str:
        found = b""
        with ask(url, patience.timeout) as response:
            for block in blocks(response):
                found += block
                if len(found) > LARGEST_TEXT:
                    raise Refused(f"it has more than the {LARGEST_TEXT:,} bytes allowed")
        return found.decode("utf-8", errors="replace")

    problem = misfit(url)
    try:
        if problem:
            raise Refused(problem)
        return insist(load, patience)
    except Refused as error:
        raise UsageError(f"cannot download {url}: {error}") from error


def _words(error: Exception) -> str:
    inner = getattr(error, "reason", None) or error
    return _printable(getattr(inner, "strerror", None) or str(inner)) or type(inner).__name__


def _printable(text: str) -> str:
    """Return the first line of what a server may have said, as far as it can be shown."""
    line = (text.splitlines() or [""])[0][:_LONGEST_WORDS]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
