"""Documents, which are runs of sentences about the same few actors, and the files of a corpus."""

import os
import re
from typing import Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import replacing_all
from recipes.corpus import english, german
from recipes.corpus.grammar import Grammar, PortableRandom
from recipes.corpus.growth import grow
from recipes.corpus.tree import Sentence, count_clauses

SHORTEST = 3
SENTENCES = 8
SHOW_PROGRESS_FROM = 5000
_ENDINGS = ("en", "de", "docs", "clauses")
_ATTEMPTS = 5000
_ATTEMPTS_PER_LENGTH = 50


class Pair(NamedTuple):
    """A sentence, its translation, and what is known of them.

    ``document`` is the number of the document that they belong to, ``clauses`` how many they have
    (:func:`count_clauses`).
    """

    english: str
    german: str
    document: int
    clauses: int


class Range(NamedTuple):
    """Bounds of a sentence's length in English tokens, both included."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Read ``4-20``."""
        numbers = re.fullmatch(r"\s*(\d+)-(\d+)\s*", text)
        if not numbers:
            raise UsageError(f"a range of lengths is written like 4-20, not {text!r}")
        return cls(int(numbers.group(1)), int(numbers.group(2)))


class Split(NamedTuple):
    """One split: its name, lines for each range, and the ranges of sentence lengths."""

    name: str
    lines: int
    ranges: Sequence[Range]


def generate(
    pairs: int,
    seed: object,
    min_length: int,
    max_length: int,
    *,
    exclude: Optional[Set[str]] = None,
    unique: bool = False,
) -> Iterator[Pair]:
    """Yield sentence pairs; the same arguments give the same text under every version of Python.

    Args:
        pairs: how many.
        seed: a number or text.
        min_length, max_length: bounds of the English sentence's length, in words and punctuation
            marks. Lengths are spread evenly between them.
        exclude: English sentences that must not come out.
        unique: no English sentence comes twice.

    Raises:
        UsageError: a number is out of range, or the grammar has no more sentences to give.
    """
    if pairs < 0:
        raise UsageError(f"the number of sentence pairs must not be negative, not {pairs}")
    if min_length > max_length:
        raise UsageError(f"empty range of lengths: {min_length} is more than {max_length}")
    if min_length < SHORTEST:
        raise UsageError(
            f"no sentence is as short as {min_length} tokens; lengths start at {SHORTEST}, "
            "words and punctuation marks together"
        )
    rng = PortableRandom(str(seed))
    refused = set(exclude or ())
    for number in range(pairs):
        document, sentence = divmod(number, SENTENCES)
        # a grammar draws its actors once, and a document is about the same ones
        if sentence == 0:
            grammar = Grammar(rng)
        drawn = _new_sentence(grammar, min_length, max_length, refused)
        if drawn is None:
            raise UsageError(
                f"found only {number} of {pairs} different sentences of {min_length}-{max_length} "
                "tokens; ask for fewer or for a wider range of lengths"
            )
        text, tree = drawn
        if unique:
            refused.add(text)
        translation = english.to_text(german.sentence(tree))
        yield Pair(text, translation, document, count_clauses(tree))


def _new_sentence(
    grammar: Grammar, low: int, high: int, refused: Set[str]
) -> Optional[Tuple[str, Sentence]]:
    """Return a sentence that is not refused, as English text and as a tree."""
    for attempt in range(_ATTEMPTS):
        # another length now and then, as of short ones all sentences may be refused
        if attempt % _ATTEMPTS_PER_LENGTH == 0:
            length = low + int(grammar.rng.random() * (high - low + 1))
        tree = grow(grammar, length)
        if tree is not None:
            text = english.sentence(tree)
            if text not in refused:
                return text, tree
    return None


def write_corpus(folder: str, seed: int, splits: Sequence[Split], *, quiet: bool = True) -> None:
    """Write ``<split>.en`` and ``.de``, one sentence a line, and numbers of each line.

    ``.docs`` holds the number of its document, counted from 0 in each split, and ``.clauses`` how
    many it has (:func:`count_clauses`). No English sentence of a split occurs in another one. The
    split named "train" may repeat its own sentences, the others do not; these come out the same
    whatever the size of "train". All files take their names together, once all are complete.

    Args:
        folder: made if missing.
        seed: equal seeds and splits give equal files.
        splits: what to write, the one with the most sentences last, since those before leave it
            what they do not use.
        quiet: show no progress bar, else one for each large part where errors go to a terminal.

    Raises:
        UsageError: a number is out of range, sentences run out, or a file cannot be written.
    """
    taken: Set[str] = set()
    with replacing_all() as begin:
        for name, lines, ranges in splits:
            streams = [begin(os.path.join(folder, f"{name}.{ending}")) for ending in _ENDINGS]
            unique = name != "train"
            own: Set[str] = set()
            first_document = 0
            for low, high in ranges:
                seed_text, refused = f"{seed}/{name}/{low}-{high}", taken | own if unique else taken
                pairs = generate(lines, seed_text, low, high, exclude=refused, unique=unique)
                hidden = True if quiet or lines < SHOW_PROGRESS_FROM else None
                document = first_document
                for pair in tqdm(pairs, name, lines, unit=" sentences", disable=hidden):
                    own.add(pair.english)
                    document = first_document + pair.document
                    values = pair.english, pair.german, document, pair.clauses
                    for stream, value in zip(streams, values):
                        stream.write(f"{value}\n")
                first_document = document + 1
            taken |= own
