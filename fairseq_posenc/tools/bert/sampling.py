"""Sampling of languages: small ones are repeated, so that they are not drowned by large ones."""

import hashlib
import math
from typing import Callable, Dict, Iterable, Iterator, Optional

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.documents import Stream

# multilingual BERT, for both its data and its vocabulary; XLM-R takes 0.3
EXPONENT = 0.7


def repetitions(sizes: Dict[str, int], exponent: float = EXPONENT) -> Dict[str, float]:
    """Return how many times each language's text is to be read.

    Shares p of the languages become p^exponent / Σ p^exponent (Devlin et al., multilingual
    BERT; Lample and Conneau 2019, section 3.1). The largest language is read once, a language of n
    lines (n_max / n)^(1 - exponent) times.

    Args:
        sizes: lines of each language.
        exponent: 1 keeps the shares as they are, 0 makes all languages equal.
    """
    if not 0 <= exponent <= 1:
        raise UsageError(f"the sampling exponent must be within 0…1, not {exponent}")
    largest = max(sizes.values(), default=0)
    return {language: (largest / size) ** (1 - exponent) for language, size in sizes.items()}


def choose(documents: Iterable[Optional[str]], is_chosen: Callable[[int], bool]) -> Stream:
    """Yield the documents whose number (from 0) is wanted."""
    number, keep = 0, is_chosen(0)
    for line in documents:
        if keep:
            yield line
        if line is None:
            number += 1
            keep = is_chosen(number)


def repeat(read: Callable[[], Stream], times: float, key: str) -> Stream:
    """Yield all documents again and again, so that copies of one never stand side by side.

    Args:
        read: gives the documents.
        times: how often; of a fraction, each document has that chance to be read once more.
        key: decides which documents these are, in the same way on every machine.
    """
    full_times = math.floor(times)
    for _ in range(full_times):
        yield from read()
    if times > full_times:
        yield from choose(read(), lambda number: _chance(f"{key} {number}") < times - full_times)


def _chance(key: str) -> float:
    """Return a number in [0, 1) that looks random and depends on the key alone."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def spread(lines: Iterable[Optional[str]], total: int, limit: int) -> Iterator[str]:
    """Yield at most about ``limit`` of about ``total`` lines, at even distances; no document ends.

    Args:
        total: how many lines there are, ends of documents not counted.
        limit: 0 yields all.
    """
    keep_all = not limit or total <= limit
    number = 0
    for line in lines:
        if line is not None:
            if keep_all or number * limit // total < (number + 1) * limit // total:
                yield line
            number += 1
