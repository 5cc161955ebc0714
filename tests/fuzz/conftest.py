"""Damage of every kind done to files, the same in every run, and what reading them may end in."""

import json
import os
import random
import re
import tempfile
import warnings
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError

# characters that split, join or look like others, and bytes that are no UTF-8
ODD = [c.encode() for c in "\0 \t \r \x0b \x1c \x85 \u2028 \u3000 \u200b \ufeff ² ٣ é 語 😀 \" \\ |"
       .split(" ")]  # fmt: skip
INVALID = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80" * 9]
NUMBERS = [b"-1", b"0", b"1e400", b"NaN", b"9" * 30, b"9" * 5000, b"-0", b"1_0", b"0x1", b"2.5"]
VALUES = [None, True, -1, 0, 2.5, 10**30, 10**400, 1e308, float("nan"), float("inf"), "", "x", "3",
          "\ud800", "a\nb", [], {}, [[]], {"a": 1}, [None], ["x", 1]]  # fmt: skip
DEEP = "[" * 100_000


def _span(random, data):
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice([1, 2, 7, 40, 400]))


def _flip(random, data):
    data = bytearray(data)
    for _ in range(random.randint(1, 3) if data else 0):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def _drop(random, data):
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _repeat(random, data):
    start, end = _span(random, data)
    return data[:end] + data[start:]


def _insert(random, data, pieces):
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(pieces) + data[at:]


def _lines(random, data):
    lines = data.splitlines(keepends=True) or [b"\n"]
    one, two = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(3)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(two, lines[one])
    else:
        lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def _number(random, data):
    found = list(re.finditer(rb"\d+(\.\d+)?", data))
    if not found:
        return _flip(random, data)
    start, end = random.choice(found).span()
    return data[:start] + random.choice(NUMBERS) + data[end:]


# the common kinds of damage several times
DAMAGE = [
    *[_flip, _drop, _repeat, _lines, _number] * 3,
    lambda random, data: data[: random.randrange(len(data) + 1)],
    lambda random, data: _insert(random, data, ODD),
    lambda random, data: _insert(random, data, ODD),
    lambda random, data: _insert(random, data, INVALID),
    lambda random, data: _insert(random, data, [b"x" * 20_000, b"a " * 10_000, b"7" * 6000]),
    lambda random, data: data.replace(b"\n", random.choice([b"\r\n", b"\r", b""])),
    lambda random, data: random.choice([b"", b" \n\n", b"\n", b"\0" * 600, b"\xef\xbb\xbf" + data]),
]


def damage_bytes(random, data):
    """Return data with one to three kinds of damage."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        data = random.choice(DAMAGE)(random, data)
    return data


def _places(value, found):
    """Collect all (container, key) of a structure of JSON."""
    for key in range(len(value)) if isinstance(value, list) else list(value):
        found.append((value, key))
        if isinstance(value[key], (list, dict)):
            _places(value[key], found)
    return found


def damage_json(random, data):
    """Return the text of JSON with values of other types, missing ones, or nested too deeply."""
    content = json.loads(data)
    places = _places(content, []) if isinstance(content, (list, dict)) else []
    for _ in range(random.choice([1, 1, 2])):
        container, key = random.choice(places)
        if isinstance(container, dict) and key not in container:
            continue
        kind = random.randrange(8)
        if kind == 0 and isinstance(container, dict):
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container["other"] = container.pop(key)
        elif kind == 2:
            container[key] = [container[key]]
        elif kind == 3:
            container[key] = str(container[key])
        elif kind == 4:
            _, source = random.choice(places), random.choice(places)
            if not isinstance(source[0], dict) or source[1] in source[0]:
                container[key] = json.loads(json.dumps(source[0][source[1]]))
        else:
            container[key] = random.choice(VALUES)
    text = json.dumps(content)
    if random.random() < 0.01:
        text = text.replace(":", ": " + DEEP, 1)
    return text.encode("utf-8", errors="surrogatepass")


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
    says what is wrong with a result for the damaged ``data``, if anything is. Returns how many
    were read. One in twenty is one of ``others``, if given, altogether.
    """

    def fuzz(name, path, read, wrong=None, cases=1000, others=()):
        whole, taken = path.read_bytes(), 0
        try:
            for case in range(cases):
                data = damaged(random.Random(f"{name} {case}"), path, whole, others)
                about = f"{name}, case {case}: {data[:200]!r}…"
                # a file system may wait for its disk where a file is written over
                path.unlink()
                path.write_bytes(data)
                try:
                    result = quietly(read)
                except UsageError as error:
                    assert "\n" not in str(error), about
                except BaseException as error:
                    raise AssertionError(f"{about}: {type(error).__name__}: {error}") from error
                else:
                    taken += 1
                    told = wrong and wrong(result, data)
                    assert not told, f"{about}: {told}"
        finally:
            path.write_bytes(whole)
        quietly(read)
        return taken

    return fuzz


def damaged(chance, path, whole, others):
    """Return what shall stand in a file: damage to the whole, or in places another file."""
    if others and chance.random() < 0.05:
        return chance.choice(others)
    kinds = [damage_bytes, damage_json] if path.suffix == ".json" else [damage_bytes]
    return chance.choice(kinds)(chance, whole)


def quietly(read):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read()
