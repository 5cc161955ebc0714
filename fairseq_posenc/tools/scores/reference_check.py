"""Do references belong to the sentences that were translated?

A file of as many lines may be another test set, one line off, or the sources. The texts to compare
are the same sentences in other forms: tokenised, in lower case, with normalised punctuation and
unknown words. So letters and digits are compared, three at a time, and a line is held for another
one only if it resembles lines of other sentences no less. Another human translation passes.
"""

import html
import os
import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.scores.texts import Languages, TestSet

# of an unknown word, \0 stays
_NO_LETTERS = re.compile(r"[^\w\0]|_")
_UNKNOWN = re.compile("<?<unk>>?")
_ALIKE = 0.5  # what lines share that are surely the same sentence, and more
_SAME = 0.8
_MOST = 0.1  # share of lines that may be other sentences: someone may have mended some
_LEAST_MOVED = 2  # lines that stand elsewhere
_NEAR = (-3, -2, -1, 1, 2, 3)
_FAR = 8  # lines at equal distances in the text
_SHIFTS = (-2, -1, 1, 2)
_FEW = 5  # sentences, of which means prove nothing
_OTHERS = 0.5  # share of a further translation's lines; where people translate freely it is 0.2


class Misfit(NamedTuple):
    """Lines, from 0, whose sentences are others, and how many of them stand elsewhere."""

    lines: List[int]
    moved: int

    def refused(self, count: int) -> bool:
        """Return whether the texts do not belong together."""
        return self.moved >= _LEAST_MOVED or len(self.lines) > _MOST * count


def check_reference(
    path: str,
    reference: Sequence[str],
    output_references: Optional[Sequence[str]],
    sources: Optional[Sequence[str]],
    hypotheses: Sequence[str],
    languages: Languages,
) -> List[str]:
    """Check the references of a test set, line by line; return what the user should know.

    Args:
        output_references: the references of the same sentences in another form, if there are
            some: T-lines.
    """
    if sources and (output_references or languages.source != languages.target):
        _check_sources(path, reference, sources, output_references)
    if not output_references:
        _check_shift(path, reference, hypotheses)
        return []
    differing = misfit(reference, output_references)
    if not differing.lines:
        return []
    first = differing.lines[0]
    words = f"{len(differing.lines)} of {len(reference)} lines, the first is line {first + 1}"
    if differing.refused(len(reference)):
        raise UsageError(
            f"{path} has other sentences than the output ({words}: {reference[first][:60]!r} "
            f"there, {output_references[first][:60]!r} in the output): "
            "give the references of these sentences"
        )
    return [f"{path} differs from the references in the output: {words}"]


def check_further(path: str, lines: Sequence[str], texts: TestSet) -> List[str]:
    """Check further references of a test set; return a remark if they seem to be of another.

    Args:
        texts: hypotheses, sources, and references that were checked.
    """
    sources = texts.source or texts.source_tokens
    check_reference(path, lines, None, sources, texts.hypothesis, texts.languages)
    differing = len(misfit(lines, texts.reference).lines)
    if len(lines) < _FEW or differing <= _OTHERS * len(lines):
        return []
    return [
        f"{differing} of {len(lines)} lines of {path} are no nearer to the first reference of "
        "their sentence than to that of another: are they of this test set?"
    ]


def raw_references(
    prefix: str, languages: Languages, sources: Optional[Sequence[str]]
) -> Optional[List[str]]:
    """Return the raw references that a folder keeps of its test set, if that was translated.

    Args:
        prefix: of the files; a language comes behind it.
    """
    paths = [f"{prefix}.{language}" for language in languages]
    if not (sources and prefix and all(map(os.path.exists, paths))):
        return None
    raw_sources, references = map(read_lines, paths)
    if not len(raw_sources) == len(references) == len(sources):
        return None
    differing = misfit(raw_sources, sources)
    return None if differing.refused(len(raw_sources)) else references


def misfit(first: Sequence[str], second: Sequence[str]) -> Misfit:
    """Return which lines are of other sentences than the lines beside them."""
    count, lines, moved = len(first), [], 0
    step = max(1, count // (_FAR + 1))
    for number, (line, beside) in enumerate(zip(first, second)):
        own = _alike(line, beside)
        if own >= _ALIKE or not _grams(beside):  # of nothing but unknown words nothing is known
            continue
        # a lost line shifts the next ones; another order is seen in the far ones
        indices = {number + n for n in _NEAR} | {(number + n * step) % count for n in range(_FAR)}
        elsewhere = max(
            (_alike(first[index], beside) for index in indices - {number} if 0 <= index < count),
            default=0.0,
        )
        if own <= elsewhere:
            lines.append(number)
            moved += elsewhere >= _SAME
    return Misfit(lines, moved)


def _check_sources(
    path: str,
    references: Sequence[str],
    sources: Sequence[str],
    output_references: Optional[Sequence[str]],
) -> None:
    """Refuse references that are the sources, where these are not their own translation."""
    alike = [_alike(*pair) for pair in zip(references, sources)]
    own = (
        [_alike(*pair) for pair in zip(references, output_references)]
        if output_references
        else [_ALIKE] * len(references)
    )
    closer = [n for n, (a, b) in enumerate(zip(alike, own)) if a >= _SAME and a > b]
    if len(closer) > len(references) / 2:
        raise UsageError(
            f"{path} holds the sources of the output, from line {closer[0] + 1} on: give the "
            "references"
        )


def _check_shift(path: str, references: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Refuse references of which each belongs to the hypothesis of another line nearby."""
    count = len(references)
    if count < _FEW:
        return

    shifts = (0, *_SHIFTS)
    totals = dict.fromkeys(shifts, 0.0)
    for number in range(count):
        for shift in shifts:
            if 0 <= number + shift < count:
                totals[shift] += _alike(hypotheses[number], references[number + shift])
    means = {shift: total / (count - abs(shift)) for shift, total in totals.items()}
    best = max(_SHIFTS, key=means.__getitem__)
    # hypotheses of a bad model resemble nothing: a shift must be clearly better than none
    if means[best] > 2 * means[0] + 0.1:
        raise UsageError(
            f"{path} is shifted: hypothesis {1 + max(0, -best)} belongs to its line "
            f"{1 + max(0, best)}, and so on; a line is missing or was added"
        )


@lru_cache(maxsize=64)  # those of all lines would take gigabytes
def _grams(line: str) -> Counter:
    """Return the sequences of three letters or digits of a line, without case and marks."""
    text = unicodedata.normalize("NFKD", html.unescape(_UNKNOWN.sub("\0", line)).casefold())
    letters = _NO_LETTERS.sub("", text)
    grams: Counter = Counter()
    parts = letters.split("\0")
    if len(parts) == 1 and letters and len(letters) < 3:
        parts = [f" {letters} "]  # of a short text, its ends count too
    for part in parts:
        grams.update(map("".join, zip(part, part[1:], part[2:])))
    return grams


def _alike(line: str, other_line: str) -> float:
    """Return the share of sequences that two lines have in common, 0 to 1."""
    first, second = _grams(line), _grams(other_line)
    total = sum(first.values()) + sum(second.values())
    count_of = second.get
    common = sum(min(count, count_of(gram, 0)) for gram, count in first.items())
    return 2 * common / total if total else 1.0
