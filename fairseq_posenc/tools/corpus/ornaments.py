"""Growth by ornaments: adjectives, adverbs and adjuncts, each given to a clause of a draft.

Every function tries one addition at a place drawn by chance and returns whether it was made.
"""

from typing import List, Optional, Tuple, Union

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.draft import Draft
from fairseq_posenc.tools.corpus.lexicon import FREQUENCIES, LATER, MANNERS, NOW, TODAY, Word
from fairseq_posenc.tools.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Group,
    Phrase,
    VerbPhrase,
)

_MOST_PLACES = 2


def adjective(draft: Draft) -> bool:
    """Give a noun an adjective."""
    bare = [phrase for phrase in _noun_phrases(draft.clause()) if not phrase.adjective]
    if not bare or not draft.affords(1):
        return False
    phrase = draft.dice.pick(bare)
    phrase.adjective = draft.grammar.adjective(phrase)
    return True


def very(draft: Draft) -> bool:
    """Strengthen an adjective."""
    clause = draft.clause()
    described: List[Union[Phrase, VerbPhrase]] = [*_noun_phrases(clause), *clause.phrases]
    weak = [
        phrase
        for phrase in described
        if phrase.adjective and phrase.adjective.gradable and not phrase.very
    ]
    if not weak or not draft.affords(1):
        return False
    draft.dice.pick(weak).very = True
    return True


def frequency(draft: Draft) -> bool:
    """Say how often."""
    phrase = _timeless_phrase(draft)
    if phrase is None or not draft.affords(1):
        return False
    phrase.frequency = draft.dice.pick(FREQUENCIES)
    return True


def time(draft: Draft) -> bool:
    """Say when, at the end of a verb phrase."""
    phrase = _timeless_phrase(draft)
    if phrase is None or phrase.closed or not draft.affords(1):
        return False
    phrase.time = point_in_time(draft, phrase)
    return True


def manner(draft: Draft) -> bool:
    """Say how."""
    _, phrase = _extensible_phrase(draft, "m")
    if phrase is None or phrase.manner or not draft.affords(1):
        return False
    phrase.manner = draft.dice.pick(MANNERS)
    return True


def companion(draft: Draft) -> bool:
    """Say with whom, for whom or without whom."""
    clause, phrase = _extensible_phrase(draft, "c")
    if phrase is None or phrase.companion:
        return False
    companion = draft.grammar.companion(members(clause))
    if not draft.affords(len(english.adjunct(companion))):
        return False
    phrase.companion = companion
    return True


def place(draft: Draft) -> bool:
    """Say where, at the end of a verb phrase."""
    clause, phrase = _extensible_phrase(draft, "p")
    if phrase is None or len(phrase.places) == _MOST_PLACES:
        return False
    if isinstance(clause.front, Adjunct):
        return False
    place = draft.grammar.place(members(clause))
    if not draft.affords(len(english.adjunct(place))):
        return False
    phrase.places.append(place)
    return True


def _timeless_phrase(draft: Draft) -> Optional[VerbPhrase]:
    """Return a verb phrase about which neither time nor frequency is said, or None."""
    clause = draft.clause()
    phrase = draft.dice.pick(clause.phrases)
    timed = phrase.frequency or phrase.time or isinstance(clause.front, Word)
    return None if timed else phrase


def _extensible_phrase(draft: Draft, adjunct: str) -> Tuple[Clause, Optional[VerbPhrase]]:
    """Return a clause and its verb phrase that can take this adjunct (m, c or p), or None."""
    clause = draft.clause()
    phrase = draft.dice.pick(clause.phrases)
    fits = adjunct in phrase.verb.adjuncts and not phrase.closed
    if clause.gap is not None and clause.gap.role[0] == adjunct:
        fits = False
    return clause, phrase if fits else None


def _noun_phrases(clause: Clause) -> List[Phrase]:
    groups = [group for group in clause.groups() if not group.pronominal]
    return [phrase for group in groups for phrase in group.members]


def members(clause: Clause) -> Group:
    """Return all who and what a clause speaks of."""
    return Group([member for group in clause.groups() for member in group.members])


def point_in_time(draft: Draft, phrase: VerbPhrase) -> Word:
    """Return an adverb of time that goes with the tense."""
    if phrase.tense == PERFECT:
        return TODAY
    if phrase.tense == PRESENT:
        return draft.dice.pick((TODAY, NOW))
    return draft.dice.pick((TODAY, NOW, *LATER))
