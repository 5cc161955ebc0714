"""Pairs of sentences: from two files or an archive, and to two files, always as streams."""

import gzip
import os
import posixpath
import tarfile
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any, Callable, Iterable, Iterator, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import (
    PAIRS_OF_HUGGING_FACE,
    check_plain,
    decode_lines,
    existing,
    reading,
    stream_lines,
)
from fairseq_posenc.tools.downloads.archives import BLOCK, OPENERS
from fairseq_posenc.tools.writing import replacing_all

Pair = Tuple[str, str]
Languages = Tuple[str, str]


def aligned(first: Iterable[str], second: Iterable[str], names: Tuple[str, str]) -> Iterator[Pair]:
    """Yield the lines of two sides of a text."""
    number = 0
    for number, pair in enumerate(zip_longest(first, second), 1):
        if None in pair:
            short, long = names if pair[0] is None else reversed(names)
            raise UsageError(f"{short} has {number - 1} lines, and {long} has more")
        yield pair


def find_files(prefix: str, languages: Languages) -> Tuple[str, str]:
    """Return ``prefix.<language>`` for both languages, or compressed where only that is there."""
    first, second = (existing(f"{prefix}.{language}") for language in languages)
    if os.path.isfile(prefix) and not (os.path.exists(first) or os.path.exists(second)):
        line = next(stream_lines(prefix))  # which says more of a TMX file
        advice = ""
        if line.startswith("{"):
            lines = f'read_json("{prefix}", lines=True)'
            advice = f"; of JSON: {PAIRS_OF_HUGGING_FACE.format(prefix, lines)}"
        elif "\t" in line:
            advice = "; cut -f 1 takes the first column of a table"
        files = f"{first}, {second}"
        raise UsageError(f"{prefix} is one file: give two of a sentence a line, {files}{advice}")
    return first, second


def pairs_of_files(prefix: str, languages: Languages) -> Iterator[Pair]:
    """Yield the lines of ``prefix.<language>``, plain, ``.gz``, ``.bz2`` or ``.xz``."""
    first, second = find_files(prefix, languages)
    for path in (first, second):
        check_plain(path)
    return aligned(stream_lines(first), stream_lines(second), (first, second))


def pairs_of_archive(
    path: str,
    members: Tuple[str, str],
    sentences: Callable[[Iterable[str]], Iterator[str]] = iter,
) -> Iterator[Pair]:
    """Yield the lines of two members of a tar archive; those called ``.gz`` are unpacked.

    The archive is read twice at the same time, and to its end, so that damage is noticed wherever
    it is. The folders of members do not count. ``sentences`` takes those that count from the lines
    of each.
    """
    first, second = (f"{path}: {member}" for member in members)
    sides = [sentences(_member_lines(path, member)) for member in members]
    return aligned(sides[0], sides[1], (first, second))


def pairs_of_tables(path: str, pattern: str, columns: Sequence[int]) -> Iterator[Pair]:
    """Yield two columns, from 0, of all tables in a tar archive whose names fit a pattern.

    Columns are divided by tabs. Lines without one are left out, as Tensor2Tensor does.
    """
    for number, line in enumerate(_member_lines(path, pattern), 1):
        cells = line.split("\t")
        if 1 < len(cells) <= max(columns):
            raise UsageError(f"{path}: {pattern}, line {number} has {len(cells)} columns only")
        if len(cells) > 1:
            yield cells[columns[0]], cells[columns[1]]


def _member_lines(path: str, pattern: str) -> Iterator[str]:
    """Yield the lines of the members whose names, without folders, fit a pattern."""
    name_pattern, has_member = posixpath.basename(pattern), False
    with reading(path), ExitStack() as opened:
        opener: Callable = OPENERS.get(os.path.splitext(path)[1].lower(), open)
        stream = opened.enter_context(opener(path, "rb"))
        # as a stream: otherwise tarfile first reads the whole archive to list it
        archive = opened.enter_context(tarfile.open(fileobj=stream, mode="r|", bufsize=BLOCK))
        for info in archive:
            if info.isfile() and fnmatchcase(posixpath.basename(info.name), name_pattern):
                content: Any = archive.extractfile(info)
                if name_pattern.endswith(".gz"):
                    content = opened.enter_context(gzip.open(content))
                yield from decode_lines(content, f"{path}: {pattern}")
                has_member = True
                if "*" not in name_pattern:
                    break
        if not has_member:
            raise UsageError(f"{path} holds no {pattern}")
        while stream.read(BLOCK):
            pass


@contextmanager
def writing(prefix: str, languages: Languages) -> Iterator[Callable[[Iterable[Pair]], int]]:
    """Give a function that writes pairs to ``prefix.<language>``, both files or none.

    The function may be called several times; it returns the number of pairs that it wrote.
    """
    with replacing_all() as begin:
        streams = [begin(f"{prefix}.{language}") for language in languages]

        def write(pairs: Iterable[Pair]) -> int:
            count = 0
            for pair in pairs:
                count += 1
                for stream, line in zip(streams, pair):
                    stream.write(line + "\n")
            return count

        yield write


def write_pairs(prefix: str, languages: Languages, pairs: Iterable[Pair]) -> int:
    """Write pairs to ``prefix.<language>``, both files or none; return their number."""
    with writing(prefix, languages) as write:
        return write(pairs)
