"""Which pairs of sentences to drop, as Moses' clean-corpus-n.perl does."""

from collections import Counter
from typing import Dict, Iterable, Iterator, Optional, Tuple

from tqdm import tqdm

from fairseq_posenc.tools.prepare.parallel.corpora import Cleaning, Corpus
from fairseq_posenc.tools.prepare.parallel.pairs import (
    Counted,
    Languages,
    Pair,
    from_files,
    writing,
)

LONGEST_WORD = 1000  # characters; Moses' default


def fault(pair: Pair, cleaning: Cleaning) -> Optional[str]:
    """Return why a tokenised pair is to be dropped, or None; lengths are those of tokens.

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


def kept(pairs: Iterable[Pair], cleaning: Optional[Cleaning], dropped: Counter) -> Iterator[Pair]:
    """Yield the pairs that have no fault, and count the faults of the others in ``dropped``."""
    for pair in pairs:
        reason = cleaning and fault(pair, cleaning)
        if reason:
            dropped[reason] += 1
        else:
            yield pair


def clean(prefix: str, output: str, languages: Languages, corpus: Corpus) -> Tuple[int, Dict]:
    """Clean text with BPE as the corpus asks for; one that asks for nothing stays as it is.

    Args:
        prefix, output: before ``.<language>``.
        languages: of the two files.
        corpus: its ``after_bpe`` decides.

    Returns:
        The number of pairs that stay, and how many were dropped for which reason.

    Raises:
        UsageError: a file is missing, empty or no UTF-8, the files differ in length, or cannot be
            written.
    """
    dropped: Counter = Counter()
    pairs = tqdm(from_files(prefix, languages), desc="clean", unit=" pairs", disable=None)
    left = Counted(kept(pairs, corpus.after_bpe, dropped))
    with writing(output, languages) as write:
        write(left)
    return left.count, dict(dropped)
