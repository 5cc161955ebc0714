"""Training text: normalised, tokenised, cleaned, and some of it held out."""

import functools
from collections import Counter
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

from tqdm import tqdm

from fairseq_posenc.tools.prepare.parallel.cleaning import kept
from fairseq_posenc.tools.prepare.parallel.corpora import Corpus
from fairseq_posenc.tools.prepare.parallel.pairs import Pair
from fairseq_posenc.tools.prepare.parallel.tokens import Moses, tokenise_lines
from fairseq_posenc.tools.workers import chunked, in_order


class Prepared(NamedTuple):
    """What became of some training pairs; ``dropped`` has the numbers of pairs by reason."""

    kept: List[Pair]
    held_out: List[Pair]
    dropped: Counter

    @property
    def read(self) -> int:
        """Number of pairs."""
        return len(self.kept) + len(self.held_out) + sum(self.dropped.values())


def tokenise_pairs(corpus: Corpus, pairs: List[Pair], moses: Moses) -> List[Pair]:
    """Tokenise both sides of at least one pair, each in its language of the corpus."""
    sides = [
        tokenise_lines(list(lines), moses._replace(language=language))
        for language, lines in zip((corpus.source, corpus.target), zip(*pairs))
    ]
    return list(zip(*sides))


def prepare(numbered: List[Tuple[int, Pair]], corpus: Corpus) -> Prepared:
    """Prepare pairs that come with their numbers in the whole training text, from 1.

    Every ``hold_out``-th is held out, and not cleaned.
    """
    moses = Moses(corpus.source, corpus.normalise, corpus.normalise, corpus.aggressive)
    tokenised = tokenise_pairs(corpus, [pair for _, pair in numbered], moses)
    remaining: List[Pair] = []
    held_out: List[Pair] = []
    for (number, _), pair in zip(numbered, tokenised):
        out = corpus.hold_out and number % corpus.hold_out == 0
        (held_out if out else remaining).append(pair)
    dropped: Counter = Counter()
    return Prepared(list(kept(remaining, corpus.before_bpe, dropped)), held_out, dropped)


class Part:
    """A part of the training text on its way, and what became of its pairs so far."""

    def __init__(self, name: str, pairs: Iterable[Pair]):
        self.name, self._pairs = name, pairs
        self.read = self.kept = self.held_out = 0
        self.dropped: Counter = Counter()

    def prepared(self, corpus: Corpus, first: int, workers: int) -> Iterator[Prepared]:
        """Yield what became of the pairs, in order; the first one has the number ``first``."""
        work = functools.partial(prepare, corpus=corpus)
        numbered = chunked(enumerate(self._pairs, first))
        with tqdm(desc=self.name, unit=" pairs", disable=None) as progress:
            for some in in_order(work, numbered, workers):
                self.read += some.read
                self.kept += len(some.kept)
                self.held_out += len(some.held_out)
                self.dropped.update(some.dropped)
                yield some
                progress.update(some.read)

    def counts(self) -> Dict:
        """Return the numbers of pairs, for ``counts.json``."""
        return {
            "name": self.name,
            "read": self.read,
            "kept": self.kept,
            "held_out": self.held_out,
            "dropped": dict(self.dropped),
        }
