"""Damage of every kind done to files, the same in every run, and what reading them may end in."""

import os
import random
import re
import tempfile
import warnings
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError

# characters that split, join or look like others, bytes that are not UTF-8, and much of one thing
ODD = [c.encode() for c in "\0 \t \r \x0b \x1c \x85 \u2028 \u3000 \u200b \ufeff ² ٣ é 語 😀 \" \\ |"
       .split(" ")]  # fmt: skip
ODD += [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80" * 9]
ODD += [b"x" * 20_000, b"a " * 10_000, b"7" * 6000, b"[" * 100_000]
NUMBERS = [b"-1", b"0", b"1e400", b"NaN", b"9" * 30, b"9" * 5000, b"-0", b"1_0", b"0x1", b"2.5"]
OTHERS = [b"", b" \n\n", b"\n", b"\0" * 600, b"{}", b"[1]", b"PK\3\4" + bytes(40)]


def damaged(chance, data):
    """Return data with one to three kinds of damage."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        start = chance.randrange(len(data) + 1)
        end = start + chance.choice([1, 2, 7, 40, 400])
        kind = chance.randrange(20)
        if kind < 3:
            data = data[:start] + data[end:]
        elif kind < 6:
            data = data[:end] + data[start:]
        elif kind < 10:
            bit = 1 << chance.randrange(8)
            data = (
                data[:start]
                + bytes(byte ^ bit for byte in data[start : start + 1])
                + data[start + 1 :]
            )
        elif kind < 13:
            lines = data.splitlines(keepends=True) or [b"\n"]
            line = lines.pop(chance.randrange(len(lines)))
            lines[start % (len(lines) + 1) : 0] = chance.choice([[], [line], [line, line]])
            data = b"".join(lines)
        elif kind < 16:
            found = [number.span() for number in re.finditer(rb"\d+(\.\d+)?", data)]
            start, end = chance.choice(found or [(start, start)])
            data = data[:start] + chance.choice(NUMBERS) + data[end:]
        elif kind < 18:
            data = data[:start] + chance.choice(ODD) + data[start:]
        elif kind == 18:
            data = chance.choice([data[:start], b"\xef\xbb\xbf" + data, *OTHERS])
        else:
            data = data.replace(b"\n", chance.choice([b"\r\n", b"\r", b""]))
    return data


@pytest.fixture
def tmp_path(tmp_path):
    """A folder in memory, where there is such: thousands of files keep a disk busy."""
    if os.access("/dev/shm", os.W_OK):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            yield Path(folder)
    else:
        yield tmp_path


@pytest.fixture
def fuzz():
    """A function that reads a file again and again, each time with other damage.

    It must end in a right result or in one line of a :class:`UsageError`; ``wrong(result, data)``
    says what is wrong with a result for the damaged ``data``, if anything is.
    """

    def fuzz(name, path, read, wrong=None, cases=200):
        whole = path.read_bytes()
        try:
            for case in range(cases + 1):
                data = damaged(random.Random(f"{name} {case}"), whole) if case else whole
                about = f"{name}, case {case}: {data[:200]!r}…"
                # a file system may wait for its disk where a file is written over
                path.unlink()
                path.write_bytes(data)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = read()
                except UsageError:
                    assert case, about
                except BaseException as error:
                    raise AssertionError(f"{about}: {type(error).__name__}: {error}") from error
                else:
                    told = wrong and wrong(result, data)
                    assert not told, f"{about}: {told}"
        finally:
            path.write_bytes(whole)

    return fuzz
