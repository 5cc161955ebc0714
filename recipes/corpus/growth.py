"""Growth of a sentence to an exact length, one small addition at a time.

What is added never makes the English ambiguous where German is not: a clause that ends with another
clause takes nothing more that could belong to either.
"""

from typing import Callable, List, Optional, Tuple

from recipes.corpus import english, lexicon, tree
from recipes.corpus.grammar import DEEPEST, ClauseContext, Grammar

_MOST_FAILURES = 60
_MOST_PLACES = _MOST_FOLLOWERS = 2
_LONGEST_LIST = 4


def grow(grammar: Grammar, length: int) -> Optional[tree.Sentence]:
    """Return a sentence of exactly ``length`` English tokens, or None if this start misses it.

    The steps have the same probabilities however long the sentence is, so that long sentences are
    made of the same constructions as short ones, only of more.
    """
    draft = Draft(grammar, length)
    failures = 0
    while draft.rest > 0 and failures < _MOST_FAILURES:
        before = draft.rest
        grammar.rng.weighted(_STEPS)(draft)
        # many steps in a row that find no room: what is left may be too short for any
        failures = 0 if draft.rest < before else failures + 1
    return draft.sentence if draft.rest == 0 else None


class Draft:
    """A sentence that may still grow by ``rest`` English tokens, punctuation included.

    Every step tries one addition at a place drawn by chance; some places or lengths have no room.
    """

    def __init__(self, grammar: Grammar, length: int):
        self.grammar, self.rng = grammar, grammar.rng
        first = grammar.clause(ClauseContext())
        self.sentence = [tree.Linked(None, first)]
        self.rest = length - len(english.clause(first)) - 1
        self.clauses = list(first.clauses())

    def spend(self, tokens: int, clause: Optional[tree.Clause] = None) -> bool:
        """Use this many tokens of the rest, for a new clause perhaps; return whether they fit."""
        if tokens > self.rest:
            return False
        self.rest -= tokens
        self.clauses += clause.clauses() if clause else []
        return True

    def adjective(self) -> None:
        """Give a noun an adjective."""
        bare = [phrase for phrase in _phrases(self.rng.pick(self.clauses)) if not phrase.adjective]
        if bare and self.spend(1):
            phrase = self.rng.pick(bare)
            phrase.adjective = self.grammar.adjective(phrase.noun.kind)

    def very(self) -> None:
        """Strengthen an adjective."""
        clause = self.rng.pick(self.clauses)
        described = [phrase for phrase in [*_phrases(clause), *clause.phrases] if phrase.adjective]
        weak = [phrase for phrase in described if phrase.adjective.gradable and not phrase.very]
        if weak and self.spend(1):
            self.rng.pick(weak).very = True

    def frequency(self) -> None:
        """Say how often."""
        phrase = self._without_time()
        if phrase and self.spend(1):
            phrase.frequency = self.rng.pick(lexicon.FREQUENCIES)

    def time(self) -> None:
        """Say when, at the end of a verb phrase."""
        phrase = self._without_time()
        if phrase and not phrase.closed and self.spend(1):
            phrase.time = self._point_in_time(phrase)

    def _without_time(self) -> Optional[tree.VerbPhrase]:
        """Return a verb phrase about which neither time nor frequency is said, or None."""
        clause = self.rng.pick(self.clauses)
        phrase = self.rng.pick(clause.phrases)
        said = phrase.frequency or phrase.time or isinstance(clause.front, lexicon.Word)
        return None if said else phrase

    def _point_in_time(self, phrase: tree.VerbPhrase) -> lexicon.Word:
        """Return an adverb that goes with the tense."""
        if phrase.tense == tree.PERFECT:
            return lexicon.TODAY
        later = () if phrase.tense == tree.PRESENT else lexicon.LATER
        return self.rng.pick((lexicon.TODAY, lexicon.NOW, *later))

    def manner(self) -> None:
        """Say how."""
        _, phrase = self._open_to("m")
        if phrase and not phrase.manner and self.spend(1):
            phrase.manner = self.rng.pick(lexicon.MANNERS)

    def companion(self) -> None:
        """Say with whom, for whom or without whom."""
        clause, phrase = self._open_to("c")
        if phrase and not phrase.companion:
            companion = self.grammar.companion(_members(clause))
            if self.spend(len(english.adjunct(companion))):
                phrase.companion = companion

    def place(self) -> None:
        """Say where, at the end of a verb phrase."""
        clause, phrase = self._open_to("p")
        full = phrase is None or len(phrase.places) == _MOST_PLACES
        if not full and not isinstance(clause.front, tree.Adjunct):
            adjunct = self.grammar.place(_members(clause))
            if self.spend(len(english.adjunct(adjunct))):
                phrase.places.append(adjunct)

    def _open_to(self, adjunct: str) -> Tuple[tree.Clause, Optional[tree.VerbPhrase]]:
        """Return a clause and its verb phrase that can take this adjunct (m, c or p), or None."""
        clause = self.rng.pick(self.clauses)
        phrase = self.rng.pick(clause.phrases)
        fits = adjunct in phrase.verb.adjuncts and not phrase.closed
        # the gap of a relative clause already is its companion or place
        left_open = clause.gap and clause.gap.role[0] == adjunct
        return clause, phrase if fits and not left_open else None

    def front(self) -> None:
        """Open a main clause with a time, a place or a subordinate clause."""
        clause = self.rng.pick(self.sentence).clause
        phrase = clause.phrases[0]
        if clause.front or len(clause.phrases) > 1:
            return
        opening = self.rng.pick(("time", "place", "clause"))
        if opening == "clause":
            front = self._subordinate(clause)
            if self.spend(len(english.linked(front)) + 1, front.clause):
                clause.front = front
        elif opening == "time":
            if not phrase.frequency and not phrase.time and self.spend(1):
                clause.front = self._point_in_time(phrase)
        else:
            adjunct = self.grammar.place(_members(clause))
            free = "p" in phrase.verb.adjuncts and not phrase.places
            if free and self.spend(len(english.adjunct(adjunct))):
                clause.front = adjunct

    def follower(self) -> None:
        """Close a main clause with a subordinate one."""
        clause = self.rng.pick(self.sentence).clause
        if len(clause.followers) < _MOST_FOLLOWERS:
            follower = self._subordinate(clause)
            if self.spend(len(english.linked(follower)), follower.clause):
                clause.followers.append(follower)

    def _subordinate(self, main: tree.Clause) -> tree.Linked:
        """Return a clause for the main one, with a conjunction that it does not have yet."""
        used = [conjunction for conjunction, _ in main.followers]
        used += [main.front.conjunction] if isinstance(main.front, tree.Linked) else []
        unused = [word for word in lexicon.OCCASIONS + lexicon.REASONS if word not in used]
        conjunction = self.rng.pick(unused)
        context = ClauseContext(main.depth + 1, present=conjunction in lexicon.OCCASIONS)
        return tree.Linked(conjunction, self.grammar.clause(context))

    def main(self) -> None:
        """Join another main clause."""
        conjunction = lexicon.AND if self.rng.chance(0.7) else lexicon.BUT
        main = tree.Linked(conjunction, self.grammar.clause(ClauseContext()))
        if self.spend(len(english.linked(main)) + 1, main.clause):
            self.sentence.append(main)

    def list_member(self) -> None:
        """Join a noun phrase to another, in any role but that of a place."""
        clause = self.rng.pick(self.clauses)
        groups = [clause.subject]
        for verbs in clause.phrases:
            groups += [verbs.object, verbs.companion.group if verbs.companion else None]
        groups = [group for group in groups if group and not group.pronominal]
        short = [group for group in groups if len(group.members) < _LONGEST_LIST]
        extensible = [group for group in short if not group.relative]
        if extensible:
            group = self.rng.pick(extensible)
            nouns = [member.noun for member in group.members]
            phrase = self.grammar.phrase(nouns[0].kind, nouns)
            if self.spend(len(english.noun_phrase(phrase)) + 1):
                group.members.append(phrase)

    def relative(self) -> None:
        """Give the subject or the last phrase of a clause a relative clause."""
        clause = self.rng.pick(self.clauses)
        last = clause.subject is None or self.rng.chance(0.6)
        group = _last(clause.phrases[-1]) if last else clause.subject
        # behind a subject it stands in the middle of the clause, where one reads less nesting
        deepest = DEEPEST if last else DEEPEST - 1
        if group is None or group.pronominal or group.relative or len(group.members) > 1:
            return
        if clause.depth < deepest:
            relative = self.grammar.relative(group.members[0], clause.depth + 1)
            if self.spend(len(english.clause(relative)), relative):
                group.members[0].relative = relative

    def second_verb(self) -> None:
        """Join a second verb phrase to the first one."""
        clause = self.rng.pick(self.clauses)
        first = clause.phrases[0]
        if clause.front or len(clause.phrases) > 1 or first.closed:
            return
        if clause.gap and clause.gap.role != "subject":
            return
        owner = clause.gap.head if clause.gap else clause.subject.members[0]
        noun_class = owner.noun.kind if isinstance(owner, tree.Phrase) else "p"
        context = ClauseContext(clause.depth, clause.gap, first.tense == tree.PRESENT)
        second = self.grammar.verb_phrase(noun_class, clause.subject, context)
        # "they must wait and sing": the second verb would share the modal, and German show it
        bare = second.tense == tree.PRESENT and second.verb.frame != "copula"
        if second.verb == first.verb or (bare and first.tense != tree.PRESENT):
            return
        if self.spend(len(english.verb_phrase(second, clause.plural)) + 1, second.complement):
            clause.phrases.append(second)


def _phrases(clause: tree.Clause) -> List[tree.Phrase]:
    return [member for member in _members(clause).members if isinstance(member, tree.Phrase)]


def _members(clause: tree.Clause) -> tree.Group:
    """Return all who and what a clause speaks of."""
    return tree.Group([member for group in clause.groups() for member in group.members])


def _last(phrase: tree.VerbPhrase) -> Optional[tree.Group]:
    """Return the group at the end of a verb phrase, if one is and may take a relative clause."""
    if phrase.closed or phrase.places or phrase.time or phrase.adjective:
        return None
    if phrase.companion:
        return phrase.companion.group
    return None if phrase.manner else phrase.object


_STEPS: List[Tuple[Callable[[Draft], None], float]] = [
    (Draft.adjective, 5.0),
    (Draft.very, 0.8),
    (Draft.frequency, 1.0),
    (Draft.time, 1.0),
    (Draft.manner, 1.0),
    (Draft.companion, 1.2),
    (Draft.place, 1.5),
    (Draft.front, 1.2),
    (Draft.follower, 1.5),
    (Draft.list_member, 1.2),
    (Draft.relative, 3.0),
    (Draft.second_verb, 1.2),
    (Draft.main, 1.5),
]
