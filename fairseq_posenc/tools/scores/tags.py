"""Tags of languages in what ``fairseq-generate`` prints: no words of the text, and not counted.

Tasks of several languages put them there (``__de__``, ``[de_DE]``), and so do users (``<2de>``,
``>>deu<<``, ``eng_Latn``). fairseq takes them out of H- and T-lines of some tasks, of no S-lines.
"""

import re
from typing import List, NamedTuple, Optional, Sequence

_CODE = r"[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?"
_SHAPES = (
    rf"__\w+__|<(?!<?unk>)[A-Za-z][\w-]*>|\[{_CODE}\]|<2{_CODE}>|<to[-_]?{_CODE}>|>>{_CODE}<<",
    r"<[A-Za-z]{2,3}[-_][A-Za-z]{2,4}>|[a-z]{2,3}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}",
    # symbols of a dictionary that has types of their names
    r"<s>|</s>|<pad>",
)
_TAG = re.compile("|".join(_SHAPES))
_UNKNOWN = ("<unk>", "<<unk>>")  # as fairseq prints it, and in T-lines
_FEW = 5  # lines, of which an equal first token proves nothing
_MOST = 2  # languages of source and target, one after the other
_PIECE = "\u2581"  # SentencePiece may leave the mark of a word's beginning before a tag


class Untagged(NamedTuple):
    """Lines without tags, how many tags each had at its beginning and end, and which they were."""

    lines: List[str]
    first: int
    last: int
    tags: List[str]


def without_tags(lines: Optional[Sequence[str]], is_source: bool = False) -> Untagged:
    """Return lines without the tags with which every line begins or ends.

    A line that is empty tells nothing. The same first token of every source is a tag, too, but not
    where it is unknown, or the sources are few or all the same.
    """
    words = [line.split() for line in lines or ()]
    filled = [line for line in words if line]
    first = last = 0
    while filled and first < _MOST and all(_is_tag(line, first) for line in filled):
        first += 1
    while filled and last < _MOST and all(_is_tag(line, -1 - last) for line in filled):
        last += 1
    if is_source and not first and len(filled) > _FEW and len({line[0] for line in filled}) == 1:
        first = int(filled[0][0] not in _UNKNOWN and len({*map(tuple, filled)}) > 1)
    if not first + last:
        return Untagged(list(lines or ()), 0, 0, [])
    tags = {line[n] for line in filled for n in (*range(first), *range(-last, 0))}
    untagged = [" ".join(line[first : len(line) - last]) for line in words]
    return Untagged(untagged, first, last, sorted(tags))


def cut_tags(line: str, first: int, last: int) -> str:
    """Return a line without up to so many tags at its beginning and end, if they are there."""
    words = line.split()
    left, right = 0, len(words)
    while left < min(first, len(words)) and _is_tag(words, left):
        left += 1
    while right > left and len(words) - right < last and _is_tag(words, right - 1):
        right -= 1
    return line if right - left == len(words) else " ".join(words[left:right])


def _is_tag(line: Sequence[str], index: int) -> bool:
    at = index if index >= 0 else len(line) + index
    return 0 <= at < len(line) and bool(_TAG.fullmatch(line[at].lstrip(_PIECE)))
