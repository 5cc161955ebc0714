"""Reading files of a test set: lines that belong together, several references of a sentence."""

import re
from typing import Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import check_no_json, read_lines


def read_text(path: str) -> List[str]:
    """Read the lines of a text, which must not be JSON."""
    lines = read_lines(path)
    check_no_json(path, lines)
    return lines


def read_aligned(path: str, count: int) -> List[str]:
    """Read a file of ``count`` lines."""
    lines = read_text(path)
    if len(lines) != count:
        raise UsageError(
            f"{path} has {len(lines)} lines, but there are {count} sentences: the files must "
            "belong to the same test set, one sentence a line"
        )
    return lines


def read_numbers(path: str, count: int) -> List[int]:
    """Read a whole number, 0 or more, for each of ``count`` sentences, one a line."""
    lines = read_aligned(path, count)
    for number, line in enumerate(lines, 1):
        if not re.fullmatch("[0-9]{1,9}", line):
            raise UsageError(f"{path}, line {number}: expected a whole number, not {line[:40]!r}")
    return [int(line) for line in lines]


def read_references(paths: Sequence[str]) -> Dict[str, List[str]]:
    """Return the references of all sentences by file and column; tabs part several in one file."""
    references: Dict[str, List[str]] = {}
    for path in paths:
        count = len(next(iter(references.values()), []))
        lines = read_aligned(path, count) if references else read_text(path)
        for name, column in _columns(path, lines).items():
            for earlier_name, earlier_column in references.items():
                if column == earlier_column:
                    raise UsageError(
                        f"{name} and {earlier_name} hold the same references: give them once"
                    )
            references[name] = column
    return references


def _columns(path: str, lines: List[str]) -> Dict[str, List[str]]:
    rows = [line.split("\t") for line in lines]
    # a tab in a few lines is text
    if 2 * sum(len(row) > 1 for row in rows) <= len(rows):
        return {path: lines}
    most = max(map(len, rows))
    for number, row in enumerate(rows, 1):
        if len(row) < most:
            raise UsageError(
                f"{path} has up to {most} references on a line, separated by tabs, and line "
                f"{number} has {len(row)}: give as many on each; a tab at its end stands for none"
            )
    return {f"{path}, column {n}": [*column] for n, column in enumerate(zip(*rows), 1)}
