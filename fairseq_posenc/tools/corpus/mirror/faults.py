"""What a server may do wrong, on demand."""

import fnmatch
import re
import threading
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError

# kind -> times for each file unless told otherwise; None: always
KINDS: Dict[str, Optional[int]] = {
    "cut": 1,
    "500": 1,
    "404": None,
    "wrong": None,
    "truncated": None,
}


class Fault(NamedTuple):
    """A kind of fault, the paths that have it, and how many requests of each (None: all).

    Kinds: ``cut`` (the connection ends after half of what was asked for), ``404`` and ``500``,
    ``wrong`` (a web page with status 200), ``truncated`` (half the file as if that were all).
    """

    kind: str
    pattern: str
    times: Optional[int]

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read ``KIND=PATTERN`` or ``KIND=PATTERN@TIMES``; the pattern is a shell's, of a path.

        Raises:
            UsageError: that is no fault.
        """
        found = re.fullmatch(r"(\w+)=(.+?)(?:@(\d+))?", text)
        if not found or found[1] not in KINDS:
            raise UsageError(
                f"{text!r} is no fault: give KIND=PATTERN or KIND=PATTERN@TIMES, and one of "
                f"{', '.join(KINDS)} as KIND"
            )
        return cls(found[1], found[2].lstrip("/"), int(found[3]) if found[3] else KINDS[found[1]])


class Faults:
    """Says of every request what shall go wrong with it."""

    def __init__(self, faults: Sequence[Fault]):
        self._faults, self._lock = faults, threading.Lock()
        self._counts: Dict[Tuple[Fault, str], int] = {}

    def next(self, path: str) -> str:
        """Return the kind of fault for this request of ``path``, the first that is due, or ""."""
        with self._lock:
            for fault in self._faults:
                count = self._counts.get((fault, path), 0)
                due = fault.times is None or count < fault.times
                if due and fnmatch.fnmatchcase(path, fault.pattern):
                    self._counts[fault, path] = count + 1
                    return fault.kind
        return ""
