"""The tree of a sentence, which holds what both languages say and no word order."""

from dataclasses import dataclass, field
from typing import Any, Iterator, List, NamedTuple, Optional, Union

from recipes.corpus import lexicon

PRESENT, PERFECT = "present", "perfect"


@dataclass(eq=False)
class Phrase:
    """A noun with its determiner, perhaps an adjective and a relative clause."""

    determiner: lexicon.Determiner
    noun: lexicon.Noun
    plural: bool
    adjective: Optional[lexicon.Adjective] = None
    very: bool = False
    relative: Optional["Clause"] = None


@dataclass(eq=False)
class Group:
    """One pronoun, or one or more noun phrases joined by commas and "and"."""

    members: List[Any]

    @property
    def plural(self) -> bool:
        """Whether its verb is in the plural."""
        return len(self.members) > 1 or self.members[0].plural

    @property
    def pronominal(self) -> bool:
        """Whether it is a pronoun."""
        return isinstance(self.members[0], lexicon.Pronoun)

    @property
    def relative(self) -> Optional["Clause"]:
        """The relative clause of its last phrase, if there is one."""
        return None if self.pronominal else self.members[-1].relative


class Adjunct(NamedTuple):
    """A preposition with what it governs."""

    preposition: lexicon.Preposition
    group: Group


@dataclass(eq=False)
class VerbPhrase:
    """A verb with all that belongs to it, but for the subject.

    ``tense`` is "present", "perfect" or a modal verb. What is missing in a relative clause (see
    :class:`Gap`) is None here.
    """

    verb: lexicon.Verb
    tense: Union[str, lexicon.Modal] = PRESENT
    recipient: Optional[Group] = None
    object: Optional[Group] = None
    adjective: Optional[lexicon.Adjective] = None
    very: bool = False
    frequency: Optional[lexicon.Word] = None
    time: Optional[lexicon.Word] = None
    manner: Optional[lexicon.Word] = None
    companion: Optional[Adjunct] = None
    places: List[Adjunct] = field(default_factory=list)
    complement: Optional["Clause"] = None

    def groups(self) -> List[Group]:
        """Return its groups in the order in which both languages say them."""
        companion = self.companion.group if self.companion else None
        places = [adjunct.group for adjunct in self.places]
        groups = [self.recipient, self.object, companion, *places]
        return [group for group in groups if group]

    @property
    def closed(self) -> bool:
        """Whether a clause ends it, after which nothing may follow that could belong to either."""
        return self.complement is not None or any(group.relative for group in self.groups())


class Gap(NamedTuple):
    """What a relative clause leaves open for the noun before it, ``head``.

    ``role`` is subject, object, recipient, companion or place; the last two have a preposition.
    """

    role: str
    head: Phrase
    preposition: Optional[lexicon.Preposition] = None


@dataclass(eq=False)
class Clause:
    """A subject and one or two verb phrases; main, subordinate or relative.

    ``front`` comes before everything else: a time, a place or a subordinate clause. ``followers``
    are subordinate clauses at the end. ``depth`` counts the clauses around it.
    """

    subject: Optional[Group]
    phrases: List[VerbPhrase]
    depth: int = 0
    gap: Optional[Gap] = None
    front: Union[None, lexicon.Word, Adjunct, "Linked"] = None
    followers: List["Linked"] = field(default_factory=list)

    @property
    def plural(self) -> bool:
        """Whether its verbs are in the plural."""
        return self.gap.head.plural if self.subject is None else self.subject.plural

    def groups(self) -> List[Group]:
        """Return the groups of this clause, not those of clauses inside it."""
        front = [self.front.group] if isinstance(self.front, Adjunct) else []
        subject = [self.subject] if self.subject else []
        return sum((phrase.groups() for phrase in self.phrases), front + subject)

    def clauses(self) -> Iterator["Clause"]:
        """Yield this clause and every clause inside it."""
        yield self
        inside = [group.relative for group in self.groups()]
        inside += [phrase.complement for phrase in self.phrases]
        inside += [follower.clause for follower in self.followers]
        inside += [self.front.clause] if isinstance(self.front, Linked) else []
        for clause in inside:
            if clause is not None:
                yield from clause.clauses()


class Linked(NamedTuple):
    """A clause and the conjunction before it, None before the first main clause."""

    conjunction: Optional[lexicon.Word]
    clause: Clause


Sentence = List[Linked]
"""Main clauses."""


def count_clauses(sentence: Sentence) -> int:
    """Return how many clauses a sentence has: main, subordinate and relative ones.

    Two verb phrases of one subject are one clause.
    """
    return sum(1 for main in sentence for _ in main.clause.clauses())
