"""Fresh pieces of a sentence: phrases, verb phrases and clauses, small and without ornament."""

from typing import List, NamedTuple, Optional, Sequence, Union

from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.lexicon import (
    ADJECTIVES,
    COMPANIONS,
    DETERMINERS,
    IN,
    INTO,
    MODALS,
    NOUNS,
    PRONOUNS,
    SURROUNDINGS,
    VERBS,
    Adjective,
    Modal,
    Noun,
    Verb,
)
from fairseq_posenc.tools.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Gap,
    Group,
    Phrase,
    VerbPhrase,
)

DEEPEST = 2
_NOUNS_OF = {kind: [noun for noun in NOUNS if noun.kind == kind] for kind in "patl"}
_SUBJECTS = (("p", 68.0), ("a", 21.0), ("t", 8.0), ("l", 3.0))
_TENSES = ((PRESENT, 50.0), (PERFECT, 22.0), ("modal", 28.0))
_FRAMES = {
    "intransitive": 18.0,
    "motion": 8.0,
    "transitive": 48.0,
    "ditransitive": 9.0,
    "clausal": 8.0,
    "copula": 9.0,
}
_VERBS_OF = {
    kind: {
        frame: [verb for verb in VERBS if verb.frame == frame and kind in verb.subjects]
        for frame in _FRAMES
    }
    for kind in "patl"
}
_ROLES = {
    "p": (("subject", 50.0), ("object", 28.0), ("recipient", 8.0), ("companion", 14.0)),
    "a": (("subject", 55.0), ("object", 30.0), ("companion", 15.0)),
    "t": (("subject", 20.0), ("object", 80.0)),
    "l": (("subject", 15.0), ("object", 35.0), ("place", 50.0)),
}
_SIZE_OF_CAST = (("p", 4), ("a", 2), ("t", 3), ("l", 3))
_RECIPIENTS = "p"


class Surroundings(NamedTuple):
    """What a clause has to fit: its depth, what it leaves open, and whether it must be present."""

    depth: int = 0
    gap: Optional[Gap] = None
    plain: bool = False


class Grammar:
    """Makes the pieces of one document's sentences, mostly about the same few actors and places.

    Args:
        dice: where every choice comes from.
    """

    def __init__(self, dice: Dice):
        self.dice = dice
        self._cast = {kind: self._several(_NOUNS_OF[kind], size) for kind, size in _SIZE_OF_CAST}
        genders = {noun.gender for noun in self._cast["p"]}
        self._pronouns = [word for word in PRONOUNS if not word.gender or word.gender in genders]

    def _several(self, nouns: Sequence[Noun], size: int) -> List[Noun]:
        chosen: List[Noun] = []
        while len(chosen) < size:
            noun = self.dice.pick(nouns)
            if noun not in chosen:
                chosen.append(noun)
        return chosen

    def phrase(self, kinds: str, besides: Sequence[Noun] = ()) -> Phrase:
        """Return a noun phrase of one of these classes, with none of the nouns in ``besides``."""
        dice = self.dice
        while True:
            kind = dice.pick(kinds)
            noun = dice.pick(self._cast[kind] if dice.chance(0.7) else _NOUNS_OF[kind])
            if noun not in besides:
                break
        plural = dice.chance(0.25)
        while True:
            determiner = dice.weighted(DETERMINERS)
            if determiner.plural if plural else determiner.singular:
                return Phrase(determiner, noun, plural)

    def group(self, kinds: str, pronoun: float = 0.0, beside: Optional[Group] = None) -> Group:
        """Return a phrase, or with this probability a pronoun if the classes contain persons.

        ``beside`` is another group of the clause, whose words are not repeated.
        """
        taken = beside.members if beside else []
        if "p" in kinds and self.dice.chance(pronoun):
            word = self.dice.pick(self._pronouns)
            if word not in taken:
                return Group([word])
        nouns = [member.noun for member in taken if isinstance(member, Phrase)]
        return Group([self.phrase(kinds, nouns)])

    def adjective(self, phrase: Phrase) -> Adjective:
        """Return an adjective that suits the noun."""
        return self.dice.pick([word for word in ADJECTIVES if phrase.noun.kind in word.kinds])

    def companion(self, beside: Group) -> Adjunct:
        """Return a preposition with somebody who is not in ``beside``."""
        return Adjunct(self.dice.pick(COMPANIONS), self.group("ppa", 0.2, beside))

    def place(self, beside: Group) -> Adjunct:
        """Return where something happens, a place that is not in ``beside``."""
        preposition = IN if self.dice.chance(0.6) else self.dice.pick(SURROUNDINGS)
        return Adjunct(preposition, self.group("l", beside=beside))

    def clause(self, around: Surroundings) -> Clause:
        """Return a clause of a subject and a verb with what the verb needs."""
        if around.gap is not None and around.gap.role == "subject":
            kind, subject = around.gap.head.noun.kind, None
        else:
            kind = self._subject_kind(around)
            beside = Group([around.gap.head]) if around.gap else None
            subject = self.group(kind, 0.25, beside)
        tree = Clause(subject, [], around.depth, around.gap)
        tree.phrases.append(self.verb_phrase(kind, subject, around))
        return tree

    def _subject_kind(self, around: Surroundings) -> str:
        if around.gap is None:
            return self.dice.weighted(_SUBJECTS)
        head = around.gap.head.noun.kind
        if around.gap.role == "object":
            return "p" if head in "tl" else self.dice.pick("pppa" if head == "a" else "ppppa")
        return "p" if around.gap.role == "recipient" else self.dice.pick("pppa")

    def verb_phrase(self, kind: str, subject: Optional[Group], around: Surroundings) -> VerbPhrase:
        """Return a verb phrase for a subject of this class; ``subject`` is not repeated in it."""
        dice, gap = self.dice, around.gap
        role = gap.role if gap else ""
        verb = self._verb(kind, around)
        tree = VerbPhrase(verb, self._tense(verb, around.plain))
        if gap is not None and role == "subject":
            subject = Group([gap.head])
        if verb.frame == "ditransitive" and role != "recipient":
            tree.recipient = self.group(_RECIPIENTS, 0.35, subject)
        if verb.objects and role != "object":
            tree.object = self.group(verb.objects, 0.2, subject)
        if verb.frame == "motion":
            tree.places.append(Adjunct(INTO, self.group("l")))
        if verb.frame == "clausal":
            tree.complement = self.clause(Surroundings(around.depth + 1))
        if verb.frame == "copula":
            words = [word for word in ADJECTIVES if kind in word.kinds]
            tree.adjective = dice.pick(words)
        return tree

    def _verb(self, kind: str, around: Surroundings) -> Verb:
        fitting = {
            frame: [verb for verb in verbs if _suits(verb, around)]
            for frame, verbs in _VERBS_OF[kind].items()
        }
        frames = [(frame, _FRAMES[frame]) for frame, verbs in fitting.items() if verbs]
        return self.dice.pick(fitting[self.dice.weighted(frames)])

    def _tense(self, verb: Verb, plain: bool) -> Union[str, Modal]:
        if plain or not verb.participle:
            return PRESENT
        tense = self.dice.weighted(_TENSES)
        return self.dice.pick(MODALS) if tense == "modal" else tense

    def relative(self, head: Phrase, depth: int) -> Clause:
        """Return a relative clause of this depth about the phrase."""
        role = self.dice.weighted(_ROLES[head.noun.kind])
        preposition = {"companion": self.dice.pick(COMPANIONS), "place": IN}.get(role)
        return self.clause(Surroundings(depth, Gap(role, head, preposition)))


def _suits(verb: Verb, around: Surroundings) -> bool:
    if verb.frame == "clausal" and around.depth >= DEEPEST:
        return False
    if around.gap is None or around.gap.role == "subject":
        return True
    role, kind = around.gap.role, around.gap.head.noun.kind
    if role == "object":
        return kind in verb.objects
    if role == "recipient":
        return verb.frame == "ditransitive"
    return role[0] in verb.adjuncts
