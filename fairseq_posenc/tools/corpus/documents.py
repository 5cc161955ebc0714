"""Documents, which are runs of sentences about the same few actors, and the files of a corpus."""

import os
import re
from typing import Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus import english, german
from fairseq_posenc.tools.corpus.grammar import Dice, Grammar
from fairseq_posenc.tools.corpus.growth import grow
from fairseq_posenc.tools.corpus.tree import Sentence, count_clauses
from fairseq_posenc.tools.writing import replacing_all

SHORTEST = 3
SENTENCES = 8
SEPARATOR = "<sep>"
SHOW_PROGRESS_FROM = 5000
_ENDINGS = ("en", "de", "docs", "clauses", "agreement")
_ATTEMPTS = 5000
_ATTEMPTS_PER_LENGTH = 50


class Pair(NamedTuple):
    """A sentence, its translation, and what is known of them.

    ``clauses``: see :func:`count_clauses`; ``agreement``: see :func:`agreement_distance`;
    ``document``: the number of the document that they belong to.
    """

    english: str
    german: str
    clauses: int
    agreement: int
    document: int


class Range(NamedTuple):
    """Bounds of a sentence's length in English tokens, both included."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Read ``4-20``.

        Raises:
            UsageError: the text looks otherwise.
        """
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
    document_size: int = SENTENCES,
    exclude: Optional[Set[str]] = None,
    unique: bool = False,
) -> Iterator[Pair]:
    """Yield sentence pairs; the same arguments give the same text under every version of Python.

    Args:
        pairs: how many.
        seed: a number or text.
        min_length, max_length: bounds of the English sentence's length, in words and punctuation
            marks. Lengths are spread evenly between them.
        document_size: sentences in a document; the last document may have fewer.
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
    dice = Dice(str(seed))
    refused = set(exclude or ())
    for number in range(pairs):
        document, sentence = divmod(number, document_size)
        if sentence == 0:
            grammar = Grammar(dice)
        found = _new_sentence(grammar, min_length, max_length, refused)
        if found is None:
            raise UsageError(
                f"found only {number} of {pairs} different sentences of {min_length}-{max_length} "
                "tokens; ask for fewer or for a wider range of lengths"
            )
        text, tree = found
        if unique:
            refused.add(text)
        tokens = german.sentence(tree)
        numbers = count_clauses(tree), german.agreement_distance(tokens), document
        yield Pair(text, english.join(tokens), *numbers)


def _new_sentence(
    grammar: Grammar, low: int, high: int, refused: Set[str]
) -> Optional[Tuple[str, Sentence]]:
    """Return a sentence that is not refused, as English text and as a tree."""
    for attempt in range(_ATTEMPTS):
        if attempt % _ATTEMPTS_PER_LENGTH == 0:
            length = low + int(grammar.dice.random() * (high - low + 1))
        tree = grow(grammar, length)
        if tree is not None:
            text = english.sentence(tree)
            if text not in refused:
                return text, tree
    return None


def write_corpus(
    folder: str,
    seed: int,
    splits: Sequence[Split],
    *,
    join: int = 1,
    separator: str = SEPARATOR,
    quiet: bool = True,
) -> None:
    """Write ``<split>.en`` and ``.de``, one sentence (or ``join`` of them) a line, and its numbers.

    Of each line, ``.docs`` holds the number of its document, counted from 0 in each split,
    ``.clauses`` how many it has (:func:`count_clauses`), and ``.agreement`` its largest distance of
    a German subject and verb (:func:`agreement_distance`). No English sentence of a split occurs in
    another one. The split named "train" may repeat its own sentences, the others do not; these come
    out the same whatever the size of "train". All files take their names together, once all are
    complete.

    Args:
        folder: made if missing.
        seed: equal seeds and splits give equal files.
        splits: what to write, the one with the most sentences last, since those before leave it
            what they do not use.
        join: so many neighbouring sentences of a document make one line.
        separator: the token between them.
        quiet: show no progress bar, else one for each large part where errors go to a terminal.

    Raises:
        UsageError: a number is out of range, sentences run out, or a file cannot be written.
    """
    if join < 1:
        raise UsageError(f"a line needs at least one sentence, not {join}")
    if not separator or separator.split() != [separator]:
        raise UsageError(f"the separator must be one token without blanks, not {separator!r}")
    taken: Set[str] = set()
    with replacing_all() as begin:
        for split in splits:
            streams = [begin(os.path.join(folder, f"{split.name}.{end}")) for end in _ENDINGS]
            own: Set[str] = set()
            first_document = 0
            for lengths in split.ranges:
                pairs = _pairs(split, lengths, seed, join, taken, own)
                total = split.lines * join
                hidden = True if quiet or total < SHOW_PROGRESS_FROM else None
                bar = tqdm(pairs, desc=split.name, total=total, unit=" sentences", disable=hidden)
                document = first_document
                for line in zip(*[iter(bar)] * join):
                    own.update(pair.english for pair in line)
                    document = first_document + line[0].document
                    *sides, clauses, agreement, _ = zip(*line)
                    texts = [f" {separator} ".join(side) for side in sides]
                    values = [*texts, document, sum(clauses), max(agreement)]
                    for stream, text in zip(streams, values):
                        stream.write(f"{text}\n")
                first_document = document + 1
            taken |= own


def _pairs(
    split: Split, lengths: Range, seed: int, join: int, taken: Set[str], own: Set[str]
) -> Iterator[Pair]:
    """Return the pairs of a range, in documents of whole lines, without those of other splits."""
    unique = split.name != "train"
    return generate(
        split.lines * join,
        f"{seed}/{split.name}/{lengths.low}-{lengths.high}",
        *lengths,
        document_size=join * max(1, SENTENCES // join),
        exclude=taken | own if unique else taken,
        unique=unique,
    )
