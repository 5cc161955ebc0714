"""Growth by further verbs and nouns: clauses before, after and inside a clause, lists.

Every function tries one addition at a place drawn by chance and returns whether it was made.
What is added never makes the English ambiguous where German is not: a clause that ends with
another clause takes nothing more that could belong to either.
"""

from typing import List, Optional

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.draft import Draft
from fairseq_posenc.tools.corpus.grammar import DEEPEST, Surroundings
from fairseq_posenc.tools.corpus.lexicon import AND, BUT, OCCASIONS, REASONS
from fairseq_posenc.tools.corpus.ornaments import members, point_in_time
from fairseq_posenc.tools.corpus.tree import PRESENT, Clause, Group, Phrase, Subordinate, VerbPhrase

_LONGEST_LIST = 4
_MOST_FOLLOWERS = 2


def front(draft: Draft) -> bool:
    """Open a main clause with a time, a place or a subordinate clause."""
    clause = draft.main()
    phrase = clause.phrases[0]
    if clause.front is not None or len(clause.phrases) > 1:
        return False
    kind = draft.dice.pick(("time", "place", "clause"))
    if kind == "clause":
        return _front_clause(draft, clause)
    if kind == "time":
        if phrase.frequency or phrase.time or not draft.affords(1):
            return False
        clause.front = point_in_time(draft, phrase)
        return True
    place = draft.grammar.place(members(clause))
    free = "p" in phrase.verb.adjuncts and not phrase.places
    if not free or not draft.affords(len(english.adjunct(place))):
        return False
    clause.front = place
    return True


def _front_clause(draft: Draft, clause: Clause) -> bool:
    front = _subordinate(draft, clause)
    if not draft.affords(len(english.subordinate(front)) + 1):
        return False
    clause.front = front
    return draft.grown_by(front.clause)


def _subordinate(draft: Draft, main: Clause) -> Subordinate:
    """Return a clause for the main one, with a conjunction that it does not have yet."""
    used = [follower.conjunction for follower in main.followers]
    if isinstance(main.front, Subordinate):
        used.append(main.front.conjunction)
    conjunctions = [word for word in (*OCCASIONS, *REASONS) if word not in used]
    conjunction = draft.dice.pick(conjunctions)
    around = Surroundings(main.depth + 1, plain=conjunction in OCCASIONS)
    return Subordinate(conjunction, draft.grammar.clause(around))


def follower(draft: Draft) -> bool:
    """Close a main clause with a subordinate one."""
    clause = draft.main()
    if len(clause.followers) == _MOST_FOLLOWERS:
        return False
    follower = _subordinate(draft, clause)
    if not draft.affords(len(english.subordinate(follower))):
        return False
    clause.followers.append(follower)
    return draft.grown_by(follower.clause)


def list_member(draft: Draft) -> bool:
    """Join a noun phrase to another."""
    groups = _extensible(draft.clause())
    if not groups:
        return False
    group = draft.dice.pick(groups)
    kind = group.members[0].noun.kind
    phrase = draft.grammar.phrase(kind, [member.noun for member in group.members])
    if not draft.affords(len(english.noun_phrase(phrase)) + 1):
        return False
    group.members.append(phrase)
    return True


def relative(draft: Draft) -> bool:
    """Give the subject or the last phrase of a clause a relative clause."""
    clause = draft.clause()
    subject = clause.subject
    last = _last(clause.phrases[-1])
    group = last if subject is None or draft.dice.chance(0.6) else subject
    deep = clause.depth >= (DEEPEST - 1 if group is subject else DEEPEST)
    if group is None or deep or not _lone(group):
        return False
    relative = draft.grammar.relative(group.members[0], clause.depth + 1)
    if not draft.affords(len(english.clause(relative))):
        return False
    group.members[0].relative = relative
    return draft.grown_by(relative)


def second_verb(draft: Draft) -> bool:
    """Join a second verb phrase to the first one."""
    clause = draft.clause()
    if clause.front is not None or len(clause.phrases) > 1 or clause.phrases[0].closed:
        return False
    if clause.gap is not None and clause.gap.role != "subject":
        return False
    first = clause.phrases[0]
    owner = clause.gap.head if clause.gap else clause.subject.members[0]
    kind = owner.noun.kind if isinstance(owner, Phrase) else "p"
    around = Surroundings(clause.depth, clause.gap, first.tense == PRESENT)
    phrase = draft.grammar.verb_phrase(kind, clause.subject, around)
    # "they must wait and sing": the second verb would share the modal, and German show it
    shared = first.tense != PRESENT and phrase.tense == PRESENT and phrase.verb.frame != "copula"
    if shared or phrase.verb == first.verb:
        return False
    if not draft.affords(len(english.verb_phrase(phrase, clause.plural)) + 1):
        return False
    clause.phrases.append(phrase)
    if phrase.complement is not None:
        draft.grown_by(phrase.complement)
    return True


def main(draft: Draft) -> bool:
    """Join another main clause."""
    conjunction = AND if draft.dice.chance(0.7) else BUT
    other = Subordinate(conjunction, draft.grammar.clause(Surroundings()))
    if not draft.affords(len(english.subordinate(other)) + 1):
        return False
    draft.tree.others.append(other)
    return draft.grown_by(other.clause)


def _lone(group: Group) -> bool:
    return not group.pronominal and len(group.members) == 1 and group.relative is None


def _last(phrase: VerbPhrase) -> Optional[Group]:
    """Return the group at the end of a verb phrase, if one is and may take a relative clause."""
    if phrase.closed or phrase.places or phrase.time or phrase.adjective:
        return None
    if phrase.companion is not None:
        return phrase.companion.group
    return None if phrase.manner else phrase.object


def _extensible(clause: Clause) -> List[Group]:
    """Return the groups to which another phrase may be joined: of any role but of a place."""
    groups = [clause.subject]
    for phrase in clause.phrases:
        groups += [phrase.object, phrase.companion.group if phrase.companion else None]
    return [
        group
        for group in groups
        if group is not None
        and not group.pronominal
        and group.relative is None
        and len(group.members) < _LONGEST_LIST
    ]
