"""Trees put into words, against English and German written out by hand."""

import pytest

from recipes.corpus import english, german, lexicon
from recipes.corpus.lexicon import COMPANIONS, DETERMINERS, IN, INTO
from recipes.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Gap,
    Group,
    Linked,
    Phrase,
    VerbPhrase,
    count_clauses,
)

WILL = next(modal for modal in lexicon.MODALS if modal.singular == "will")
HE, SHE = lexicon.PRONOUNS[:2]


def the(word, plural=False):
    noun = next(noun for noun in lexicon.NOUNS if noun.singular == word)
    return Phrase(DETERMINERS[0][0], noun, plural)


def verb(base, *objects, tense=PRESENT, **parts):
    found = next(v for v in lexicon.VERBS if f"{v.base} {v.particle}".strip() == base)
    parts.update({"object": Group(list(objects))} if objects else {})
    return VerbPhrase(found, tense, **parts)


def clause(subject, phrase, **parts):
    return Clause(Group([subject]) if subject else None, [phrase], **parts)


def related(head, role, inner_subject, phrase, preposition=None):
    head.relative = clause(inner_subject, phrase, gap=Gap(role, head, preposition))
    return head


KING = the("king")
CALLS = verb("call up", the("doctor"))
BECAUSE = Linked(lexicon.REASONS[0], clause(HE, CALLS))
OFTEN_CALLED = verb("call up", the("doctor"), tense=PERFECT, frequency=lexicon.FREQUENCIES[0])
JUMPED = verb("jump", tense=PERFECT, places=[Adjunct(INTO, Group([the("house")]))])
GARDEN = Adjunct(IN, Group([the("garden")]))
SEEN_DOG = related(the("dog"), "object", KING, verb("see", tense=PERFECT))
CALLING_QUEEN = related(the("queen"), "subject", None, CALLS)
SUNG_FOR = related(the("man"), "companion", KING, verb("sing"), COMPANIONS[1])
KNOWS = verb("know", complement=clause(SHE, verb("sing", tense=WILL)))
# and the number of clauses, counted by hand
SENTENCES = [
    # a separable prefix; a pronoun before the English particle; the verbal bracket
    (clause(KING, verb("call up", SHE)), "The king calls her up.", "Der König ruft sie an.", 1),
    (clause(KING, OFTEN_CALLED), "The king has often called up the doctor.",
     "Der König hat oft den Arzt angerufen.", 1),
    # direction is accusative, place dative; the verb stays second
    (clause(KING, JUMPED), "The king has jumped into the house.",
     "Der König ist ins Haus gesprungen.", 1),
    (clause(KING, verb("sing"), front=GARDEN), "In the garden the king sings.",
     "Im Garten singt der König.", 1),
    # the verb is last in subordinate clauses, its prefix joined
    (clause(KING, verb("sleep"), followers=[BECAUSE]),
     "The king sleeps because he calls up the doctor.",
     "Der König schläft, weil er den Arzt anruft.", 2),
    (clause(KING, KNOWS), "The king knows that she will sing.",
     "Der König weiß, dass sie singen wird.", 2),
    # relative clauses follow the whole verb
    (clause(CALLING_QUEEN, verb("sleep")), "The queen who calls up the doctor sleeps.",
     "Die Königin, die den Arzt anruft, schläft.", 2),
    (clause(SHE, verb("wake up", SEEN_DOG)), "She wakes up the dog which the king has seen.",
     "Sie weckt den Hund auf, den der König gesehen hat.", 2),
    (clause(SUNG_FOR, verb("laugh")), "The man for whom the king sings laughs.",
     "Der Mann, für den der König singt, lacht.", 2),
    # a subject of several nouns, and one of two verbs
    (Clause(Group([the("cat"), the("king", True)]), [verb("sleep")]),
     "The cat and the kings sleep.", "Die Katze und die Könige schlafen.", 1),
    (Clause(Group([KING]), [CALLS, verb("wash", SHE)]),
     "The king calls up the doctor and washes her.",
     "Der König ruft den Arzt an und wäscht sie.", 1),
]  # fmt: skip


@pytest.mark.parametrize("tree, source, target, clauses", SENTENCES)
def test_sentences_as_a_person_would_write_and_count_them(tree, source, target, clauses):
    assert english.sentence([Linked(None, tree)]) == source
    assert english.to_text(german.sentence([Linked(None, tree)])) == target
    assert count_clauses([Linked(None, tree)]) == clauses


def test_main_clauses_are_joined_with_commas():
    first = clause(related(the("king"), "subject", None, verb("sing")), verb("laugh"))
    tree = [Linked(None, first), Linked(lexicon.BUT, clause(SHE, verb("sleep")))]
    assert english.sentence(tree) == "The king who sings laughs, but she sleeps."
    translation = english.to_text(german.sentence(tree))
    assert translation == "Der König, der singt, lacht, aber sie schläft."
    assert count_clauses(tree) == 3
