"""Documents: runs of sentences about the same few actors."""

from typing import Iterator, NamedTuple, Optional, Set, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus import english, german
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.grammar import Grammar
from fairseq_posenc.tools.corpus.growth import grow

SHORTEST = 3
SENTENCES = 8
_ATTEMPTS = 5000


class Pair(NamedTuple):
    """One line of the corpus: a sentence, its translation, and the number of its document."""

    english: str
    german: str
    document: int


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
            marks (:func:`~fairseq_posenc.tools.corpus.english.count_tokens`). Lengths are spread
            evenly between them.
        document_size: sentences in a document; the last document may have fewer.
        exclude: English sentences that must not come out.
        unique: no English sentence comes twice.

    Raises:
        UsageError: a number is out of range, or the grammar has no more sentences to give.
    """
    _check(pairs, min_length, max_length, document_size)
    refused = set(exclude or ())
    return _pairs(pairs, Dice(str(seed)), (min_length, max_length), document_size, refused, unique)


def _pairs(
    pairs: int,
    dice: Dice,
    lengths: Tuple[int, int],
    document_size: int,
    refused: Set[str],
    unique: bool,
) -> Iterator[Pair]:
    for number in range(pairs):
        document, sentence = divmod(number, document_size)
        if sentence == 0:
            grammar = Grammar(dice)
        pair = _pair(grammar, lengths, document, refused)
        if pair is None:
            raise UsageError(
                f"found only {number} of {pairs} different sentences of "
                f"{lengths[0]}-{lengths[1]} tokens; ask for fewer or for a wider range of lengths"
            )
        if unique:
            refused.add(pair.english)
        yield pair


def _check(pairs: int, min_length: int, max_length: int, document_size: int) -> None:
    if pairs < 0:
        raise UsageError(f"the number of sentence pairs must not be negative, not {pairs}")
    if document_size < 1:
        raise UsageError(f"a document needs at least one sentence, not {document_size}")
    if min_length > max_length:
        raise UsageError(f"empty range of lengths: {min_length} is more than {max_length}")
    if min_length < SHORTEST:
        raise UsageError(
            f"no sentence is as short as {min_length} tokens; lengths start at {SHORTEST}, "
            "words and punctuation marks together"
        )


def _pair(
    grammar: Grammar, lengths: Tuple[int, int], document: int, refused: Set[str]
) -> Optional[Pair]:
    for attempt in range(_ATTEMPTS):
        if attempt % 50 == 0:
            target = grammar.dice.between(*lengths)
        tree = grow(grammar, target)
        if tree is not None:
            text = english.sentence(tree)
            if text not in refused:
                return Pair(text, german.sentence(tree), document)
    return None
