"""The ceiling of a score: what a model would get whose translations are the references.

Translations come out of the model in the form that its training text had: cut into subwords, maybe
tokenised and normalised. What that has changed, joining and detokenising cannot always undo. So the
references go the way of the training text and back, and are scored against themselves.
"""

import os
from collections import Counter
from functools import partial
from typing import Any, Dict, Iterable, List, Mapping, Optional

from fairseq.data.data_utils import post_process

from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.data.segmentation import (
    CODES,
    TOKENIZER,
    BytePairEncoder,
    SentencePieces,
    detokenise_lines,
    read_moses,
    tokenise_lines,
)
from fairseq_posenc.data.subwords import UNKNOWN, SentencePiece
from fairseq_posenc.errors import printable
from fairseq_posenc.tools.scores.data_folder import first_folder
from fairseq_posenc.tools.scores.result import RoundTripScore
from fairseq_posenc.tools.scores.scorer import Scorer
from fairseq_posenc.tools.scores.texts import RoundTrip, TestSet

LOW = 99.0  # in BLEU; below, what is lost is named
_NAMED = 10  # characters


def read_round_trip(
    data: str, references: List[str], language: str, tokens_back: Optional[List[str]] = None
) -> Optional[RoundTrip]:
    """Return references after the preparation that a folder records; None where it records none.

    Args:
        data: the folder; of several, joined by colons, the first counts.
        tokens_back: the references in the form that fairseq-generate prints, as text again: taken
            where the folder records no preparation.
    """
    folder = first_folder(data)
    model, tokenizer, codes = (
        os.path.join(folder, name) for name in (SentencePiece.name, TOKENIZER, CODES)
    )
    has_pieces = os.path.exists(model)
    if has_pieces:
        subwords: Any = SentencePieces(model)
        join, lines = subwords.decode, references
    elif os.path.exists(tokenizer) and os.path.exists(codes):
        subwords, join = BytePairEncoder(codes), partial(post_process, symbol="@@ ")
        lines = tokenise_lines(references, read_moses(tokenizer, language, training=True))
    else:
        return RoundTrip(references, tokens_back, tokens_back) if tokens_back else None

    def decode(encoded: Iterable[str]) -> List[str]:
        joined = [join(line) for line in encoded]
        return joined if has_pieces else detokenise_lines(joined, language)

    lines = [subwords.encode(line) for line in lines]
    dictionary = os.path.join(folder, f"dict.{language}.txt")
    symbols = set(read_dictionary(dictionary).symbols) if lines else set()
    left = [" ".join(p if p in symbols else UNKNOWN for p in line.split()) for line in lines]
    return RoundTrip(references, decode(lines), decode(left))


def set_round_trip(texts: TestSet, data: str) -> None:
    """Set the round trip of the references, or remark that it is not known.

    Tokenised BLEU has none: its references are tokens as the model's are.
    """
    target = texts.names.target or ""
    texts.round_trip = read_round_trip(data, texts.reference, target, texts.tokens_back)
    if texts.round_trip is None:
        texts.remarks.append(
            f"{data} does not say how its text was prepared: the ceiling of scores is not known"
        )


def round_trip_score(round_trip: RoundTrip, scorer: Scorer) -> RoundTripScore:
    """Return the ceiling of models whose training text was prepared so."""
    references, restored, with_unknown = round_trip
    same = sum(back.strip() == line.strip() for back, line in zip(restored, references))
    lost = lost_characters(references, restored)
    unknown = Counter(lost_characters(references, with_unknown)) - Counter(lost)
    figures = least = scorer.plain_scores(restored, references)
    if with_unknown != restored:
        least = scorer.plain_scores(with_unknown, references)
    return RoundTripScore(
        figures, same, len(references), lost, dict(unknown.most_common()), least["sacrebleu"]
    )


def lost_characters(before: Iterable[str], after: Iterable[str]) -> Dict[str, int]:
    """Return how often each character of lines is not in the lines after; most frequent first."""
    lost: Counter = Counter()
    for line, restored in zip(before, after):
        lost.update(Counter(line) - Counter(restored))
    return dict(lost.most_common())


def ceiling_lines(round_trip: Optional[RoundTripScore]) -> List[str]:
    """Return what to say of a ceiling; nothing of one that is not known."""
    if not round_trip:
        return []
    value, least = round_trip.figures["sacrebleu"], round_trip.with_unknown
    lines = [
        f"ceiling: sacreBLEU {value:.2f}, of the references themselves after the preparation of "
        f"the training text and back; {round_trip.exact} of {round_trip.references} references "
        "come back exactly"
    ]
    if value < LOW:
        lost = _named(round_trip.lost) or "nothing but order; spaces are added"
        lines.append(f"lost by the preparation: {lost}")
    if round_trip.unknown:
        lines.append(
            f"not in the dictionary, so that no model writes them (ceiling {least:.2f}): "
            + _named(round_trip.unknown)
        )
    return lines


def _named(counts: Mapping[str, int]) -> str:
    shown = list(counts.items())[:_NAMED]
    named = [f"{'space' if c == ' ' else printable(c)} ({count:,})" for c, count in shown]
    return ", ".join(named) + (f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else "")
