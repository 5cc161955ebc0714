"""Which pairs of sentences to drop, as Moses' clean-corpus-n.perl does."""

from collections import Counter
from typing import Dict, Iterable, Iterator, NamedTuple, Optional, Tuple

from fairseq_posenc.tools.translation.pairs import Languages, Pair, pairs_of_files, write_pairs

LONGEST_WORD = 1000  # characters; Moses' default


class Cleaning(NamedTuple):
    """Pairs to keep: bounds of the lengths in tokens on both sides, and of their ratio."""

    shortest: int
    longest: int
    ratio: float


def reason_to_drop(pair: Pair, cleaning: Cleaning) -> Optional[str]:
    """Return why a tokenised pair is to be dropped, or None.

    As in Moses' script, ``shortest``, ``longest`` and ``ratio`` themselves are still allowed, and
    so are words of 1000 characters.
    """
    words = [line.split() for line in pair]
    lengths = [len(side) for side in words]
    if min(lengths) == 0:
        return "empty"
    if max(lengths) > cleaning.longest:
        return "too long"
    if min(lengths) < cleaning.shortest:
        return "too short"
    if max(lengths) / min(lengths) > cleaning.ratio:
        return "ratio"
    if any(len(word) > LONGEST_WORD for side in words for word in side):
        return "long word"
    return None


def clean_pairs(pairs: Iterable[Pair], cleaning: Cleaning, dropped: Counter) -> Iterator[Pair]:
    """Yield the pairs to keep, and count the others in ``dropped`` by reason."""
    for pair in pairs:
        reason = reason_to_drop(pair, cleaning)
        if reason:
            dropped[reason] += 1
        else:
            yield pair


def clean(
    prefix: str, output: str, languages: Languages, cleaning: Optional[Cleaning]
) -> Tuple[int, Dict[str, int]]:
    """Clean text; without ``cleaning`` it stays as it is.

    Returns:
        The number of pairs kept, and how many were dropped for which reason.
    """
    # not before: plans of recipes run without libraries
    from tqdm import tqdm

    dropped: Counter = Counter()
    pairs: Iterable[Pair] = pairs_of_files(prefix, languages)
    pairs = tqdm(pairs, desc="clean", unit=" pairs", disable=None)
    if cleaning:
        pairs = clean_pairs(pairs, cleaning, dropped)
    return write_pairs(output, languages, pairs), dict(dropped)
