"""Fresh pieces of a sentence: phrases, verb phrases and clauses, small and without ornament."""

import functools
import random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from recipes.corpus import lexicon, tree

DEEPEST = 2
_NOUNS_OF = {letter: [noun for noun in lexicon.NOUNS if noun.kind == letter] for letter in "patl"}
_SUBJECTS = (("p", 68.0), ("a", 21.0), ("t", 8.0), ("l", 3.0))
_TENSES = ((tree.PRESENT, 50.0), (tree.PERFECT, 22.0), ("modal", 28.0))
_FRAMES = {
    "intransitive": 18.0,
    "motion": 8.0,
    "transitive": 48.0,
    "ditransitive": 9.0,
    "clausal": 8.0,
    "copula": 9.0,
}
_ROLES = {
    "p": (("subject", 50.0), ("object", 28.0), ("recipient", 8.0), ("companion", 14.0)),
    "a": (("subject", 55.0), ("object", 30.0), ("companion", 15.0)),
    "t": (("subject", 20.0), ("object", 80.0)),
    "l": (("subject", 15.0), ("object", 35.0), ("place", 50.0)),
}
_SIZE_OF_CAST = (("p", 4), ("a", 2), ("t", 3), ("l", 3))


class PortableRandom:
    """Random choices that are the same under every version of Python; ``seed`` is any text."""

    def __init__(self, seed: str):
        # the only sequence that Python guarantees
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items, all equally likely."""
        return items[int(self.random() * len(items))]

    def weighted(self, items: Sequence[Tuple[Any, float]]) -> Any:
        """Return one item of ``(item, weight)`` pairs, as likely as its share of the weights."""
        remaining = self.random() * sum(weight for _, weight in items)
        for item, weight in items:
            remaining -= weight
            if remaining < 0:
                return item
        return items[-1][0]


class ClauseContext(NamedTuple):
    """What a clause must fit: its depth, what it leaves open, and whether it must be present."""

    depth: int = 0
    gap: Optional[tree.Gap] = None
    present: bool = False


class Grammar:
    """Makes the pieces of one document's sentences, mostly about the same few actors and places."""

    def __init__(self, rng: PortableRandom):
        self.rng = rng
        self._cast: Dict[str, List[lexicon.Noun]] = {}
        for noun_class, size in _SIZE_OF_CAST:
            cast = self._cast[noun_class] = []
            while len(cast) < size:
                noun = rng.pick(_NOUNS_OF[noun_class])
                cast += [noun] if noun not in cast else []
        genders = {noun.gender for noun in self._cast["p"]}
        # "they" and "we" are always there, "he" and "she" if somebody is
        self._pronouns = [word for word in lexicon.PRONOUNS if word.gender in {"", *genders}]

    def phrase(self, kinds: str, besides: Sequence[lexicon.Noun] = ()) -> tree.Phrase:
        """Return a noun phrase of one of these kinds, with none of the nouns in ``besides``."""
        rng = self.rng
        noun = None
        while noun is None or noun in besides:
            noun_class = rng.pick(kinds)
            noun = rng.pick(self._cast[noun_class] if rng.chance(0.7) else _NOUNS_OF[noun_class])
        plural = rng.chance(0.25)
        while True:
            determiner = rng.weighted(lexicon.DETERMINERS)
            if determiner.plural if plural else determiner.singular:
                return tree.Phrase(determiner, noun, plural)

    def group(
        self, kinds: str, pronoun: float = 0.0, beside: Optional[tree.Group] = None
    ) -> tree.Group:
        """Return a phrase, or with this probability a pronoun if the kinds include persons.

        ``beside`` is another group of the clause, whose words are not repeated.
        """
        taken = beside.members if beside else []
        if "p" in kinds and self.rng.chance(pronoun):
            word = self.rng.pick(self._pronouns)
            if word not in taken:
                return tree.Group([word])
        nouns = [member.noun for member in taken if isinstance(member, tree.Phrase)]
        return tree.Group([self.phrase(kinds, nouns)])

    def adjective(self, noun_class: str) -> lexicon.Adjective:
        """Return an adjective that suits nouns of this kind."""
        return self.rng.pick([word for word in lexicon.ADJECTIVES if noun_class in word.kinds])

    def companion(self, beside: tree.Group) -> tree.Adjunct:
        """Return a preposition with somebody who is not in ``beside``."""
        return tree.Adjunct(self.rng.pick(lexicon.COMPANIONS), self.group("ppa", 0.2, beside))

    def place(self, beside: tree.Group) -> tree.Adjunct:
        """Return where something happens, a place that is not in ``beside``."""
        preposition = lexicon.IN if self.rng.chance(0.6) else self.rng.pick(lexicon.SURROUNDINGS)
        return tree.Adjunct(preposition, self.group("l", beside=beside))

    def clause(self, context: ClauseContext) -> tree.Clause:
        """Return a clause of a subject and a verb with what the verb needs."""
        role, head, _ = context.gap or ("", None, None)
        subject = None
        if role == "subject":
            noun_class = head.noun.kind
        else:
            noun_class = self._subject_kind(context.gap)
            subject = self.group(noun_class, 0.25, tree.Group([head]) if head else None)
        verbs = [self.verb_phrase(noun_class, subject, context)]
        return tree.Clause(subject, verbs, context.depth, context.gap)

    def _subject_kind(self, gap: Optional[tree.Gap]) -> str:
        if gap is None:
            return self.rng.weighted(_SUBJECTS)
        head = gap.head.noun.kind
        if gap.role == "recipient" or (gap.role == "object" and head in "tl"):
            return "p"
        return self.rng.pick("ppppa" if gap.role == "object" and head == "p" else "pppa")

    def verb_phrase(
        self, noun_class: str, subject: Optional[tree.Group], context: ClauseContext
    ) -> tree.VerbPhrase:
        """Return a verb phrase for a subject of this kind; ``subject`` is not repeated in it."""
        role = context.gap.role if context.gap else ""
        verb = self._verb(noun_class, context)
        tense = tree.PRESENT
        if verb.participle and not context.present:
            tense = self.rng.weighted(_TENSES)
            tense = self.rng.pick(lexicon.MODALS) if tense == "modal" else tense
        made = tree.VerbPhrase(verb, tense)
        if role == "subject":
            subject = tree.Group([context.gap.head])
        if verb.frame == "ditransitive" and role != "recipient":
            made.recipient = self.group("p", 0.35, subject)
        if verb.objects and role != "object":
            made.object = self.group(verb.objects, 0.2, subject)
        if verb.frame == "motion":
            made.places.append(tree.Adjunct(lexicon.INTO, self.group("l")))
        if verb.frame == "clausal":
            made.complement = self.clause(ClauseContext(context.depth + 1))
        if verb.frame == "copula":
            made.adjective = self.adjective(noun_class)
        return made

    def _verb(self, noun_class: str, context: ClauseContext) -> lexicon.Verb:
        gap = context.gap
        role, gap_kind = (gap.role, gap.head.noun.kind) if gap else ("", "")
        fitting = _fitting_verbs(noun_class, context.depth >= DEEPEST, role, gap_kind)
        return self.rng.pick(
            fitting[self.rng.weighted([(name, _FRAMES[name]) for name in fitting])]
        )

    def relative(self, head: tree.Phrase, depth: int) -> tree.Clause:
        """Return a relative clause of this depth about the phrase."""
        role = self.rng.weighted(_ROLES[head.noun.kind])
        companion = self.rng.pick(lexicon.COMPANIONS)
        preposition = {"companion": companion, "place": lexicon.IN}.get(role)
        return self.clause(ClauseContext(depth, tree.Gap(role, head, preposition)))


@functools.cache
def _fitting_verbs(
    noun_class: str, is_deepest: bool, role: str, gap_kind: str
) -> Dict[str, List[lexicon.Verb]]:
    """Return the verbs that a subject of this kind may have, by frame.

    Args:
        noun_class: of the subject.
        is_deepest: whether no clause may be below the verb's.
        role, gap_kind: of what a relative clause leaves open; empty elsewhere.
    """
    fitting: Dict[str, List[lexicon.Verb]] = {}
    for frame in _FRAMES:
        verbs = [verb for verb in lexicon.VERBS if verb.frame == frame]
        verbs = [verb for verb in verbs if noun_class in verb.subjects]
        verbs = [verb for verb in verbs if _has_place(verb, role, gap_kind)]
        if verbs and not (frame == "clausal" and is_deepest):
            fitting[frame] = verbs
    return fitting


def _has_place(verb: lexicon.Verb, role: str, noun_class: str) -> bool:
    """Return whether a verb has a place for a noun of this kind in this role."""
    if role in ("", "subject"):
        return True
    if role == "object":
        return noun_class in verb.objects
    if role == "recipient":
        return verb.frame == "ditransitive"
    return role[0] in verb.adjuncts
