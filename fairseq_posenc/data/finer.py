"""Cuts pieces finer where an answer to a question may begin or end inside them.

Answers are stretches of pieces, so that ``1185`` cannot be answered where SentencePiece has the
piece ``(1185–1``, nor ``1,5`` in ``1,500``. Which pieces are cut depends on the text alone, never
on the answers: letters, digits and other characters are parted, and numbers with separators are
cut to single digits. The new pieces are pieces of the vocabulary too.
"""

import re
import unicodedata
from typing import Container, List, Optional, Set, Tuple

from fairseq_posenc.data.subwords import UNKNOWN, Subwords, WordPiece

_GROUPED_NUMBER = re.compile(r"\d+(?:[.,]\d+)+")

Span = Tuple[int, int]


class Finer:
    """A subword model whose pieces are cut finer.

    Args:
        subwords: the model.
    """

    def __init__(self, subwords: Subwords):
        self._subwords = subwords
        self._known = frozenset(subwords.vocabulary())
        self._parts = _of_word_piece if isinstance(subwords, WordPiece) else _of_sentence_piece

    def pieces_with_offsets(self, text: str) -> Tuple[List[str], List[Span]]:
        """Return pieces and the characters each stands for, as the model does, but finer.

        A piece stays whole if the vocabulary has no pieces for its parts, or if normalisation
        changed its length.
        """
        pieces: List[str] = []
        spans: List[Span] = []
        cuts = _cuts(text)
        for piece, (start, end) in zip(*self._subwords.pieces_with_offsets(text)):
            inner = [cut for cut in range(start + 1, end) if cut in cuts and piece != UNKNOWN]
            finer = self._cut(piece, start, end, inner) if inner else None
            pieces += [name for name, _ in finer] if finer else [piece]
            spans += [span for _, span in finer] if finer else [(start, end)]
        return pieces, spans

    def _cut(
        self, piece: str, start: int, end: int, cuts: List[int]
    ) -> Optional[List[Tuple[str, Span]]]:
        body, lead, prefix = self._parts(piece)
        if len(body) - lead != end - start:
            return None
        found: List[Tuple[str, Span]] = []
        edges = [0, *(cut - start + lead for cut in cuts), len(body)]
        for first, stop in zip(edges, edges[1:]):
            while first < stop:
                mark = prefix if found else piece[: len(piece) - len(body)]
                last = _longest(body, first, stop, mark, self._known)
                if last is None:
                    return None
                span = (start + max(first - lead, 0), start + max(last - lead, 1))
                found.append((mark + body[first:last], span))
                first = last
        return found


def _of_word_piece(piece: str) -> Tuple[str, int, str]:
    """Return what to cut, how much of it stands for no character, and the mark of later parts."""
    continues = piece.startswith("##") and len(piece) > 2
    return piece[2:] if continues else piece, 0, "##"


def _of_sentence_piece(piece: str) -> Tuple[str, int, str]:
    return piece, int(piece.startswith("▁")), ""


def _longest(body: str, first: int, stop: int, mark: str, known: Container) -> Optional[int]:
    for last in range(stop, first, -1):
        if mark + body[first:last] in known:
            return last
    return None


def _cuts(text: str) -> Set[int]:
    kinds = [_kind(character) for character in text]
    cuts = {i for i in range(1, len(text)) if kinds[i] != kinds[i - 1]}
    for number in _GROUPED_NUMBER.finditer(text):
        cuts.update(range(number.start(), number.end() + 1))
    return cuts


def _kind(character: str) -> str:
    """Return L for letters and the marks on them, N for digits, P for all others."""
    category = unicodedata.category(character)[0]
    return {"L": "L", "M": "L", "N": "N"}.get(category, "P")
