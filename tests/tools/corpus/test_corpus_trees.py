"""Trees put into words, against German and English written out by hand."""

import pytest

from fairseq_posenc.tools.corpus import english, german
from fairseq_posenc.tools.corpus.lexicon import (
    ADJECTIVES,
    BUT,
    COMPANIONS,
    DETERMINERS,
    FREQUENCIES,
    IN,
    INTO,
    MANNERS,
    MODALS,
    NOUNS,
    PRONOUNS,
    REASONS,
    TODAY,
    VERBS,
)
from fairseq_posenc.tools.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Gap,
    Group,
    Phrase,
    Sentence,
    Subordinate,
    VerbPhrase,
)

WILL = next(modal for modal in MODALS if modal.singular == "will")
HE, SHE = PRONOUNS[0], PRONOUNS[1]


def the(word, plural=False):
    noun = next(noun for noun in NOUNS if noun.singular == word)
    return Phrase(DETERMINERS[0][0], noun, plural)


def verb(base, particle="", tense=PRESENT, **parts):
    found = next(v for v in VERBS if (v.base, v.particle) == (base, particle))
    return VerbPhrase(found, tense, **parts)


def clause(subject, phrase, **parts):
    return Clause(Group([subject]) if subject else None, [phrase], **parts)


def calls_up(tense=PRESENT, **parts):
    return verb("call", "up", tense, object=Group([the("doctor")]), **parts)


def related(word, role, inner_subject, phrase, preposition=None):
    head = the(word)
    head.relative = clause(inner_subject, phrase, gap=Gap(role, head, preposition))
    return head


KING = the("king")


def main_clauses():
    """Yield trees with the texts expected."""
    yield (
        clause(KING, calls_up()),
        "The king calls up the doctor.",
        "Der König ruft den Arzt an.",
    )
    yield (
        clause(KING, verb("call", "up", object=Group([SHE]))),
        "The king calls her up.",
        "Der König ruft sie an.",
    )
    yield (
        clause(KING, calls_up(PERFECT, frequency=FREQUENCIES[0])),
        "The king has often called up the doctor.",
        "Der König hat oft den Arzt angerufen.",
    )
    yield (
        clause(the("king", True), calls_up(WILL, time=TODAY)),
        "The kings will call up the doctor today.",
        "Die Könige werden heute den Arzt anrufen.",
    )
    yield (
        clause(KING, verb("sleep"), front=TODAY),
        "Today the king sleeps.",
        "Heute schläft der König.",
    )
    yield (
        clause(KING, verb("jump", tense=PERFECT, places=[Adjunct(INTO, Group([the("house")]))])),
        "The king has jumped into the house.",
        "Der König ist ins Haus gesprungen.",
    )
    yield (
        clause(KING, verb("sing"), front=Adjunct(IN, Group([the("garden")]))),
        "In the garden the king sings.",
        "Im Garten singt der König.",
    )


def subordinate_clauses():
    """Yield trees with the texts expected."""
    because = Subordinate(REASONS[0], clause(HE, calls_up()))
    yield (
        clause(KING, verb("sleep"), followers=[because]),
        "The king sleeps because he calls up the doctor.",
        "Der König schläft, weil er den Arzt anruft.",
    )
    yield (
        clause(KING, verb("sleep"), front=because),
        "Because he calls up the doctor, the king sleeps.",
        "Weil er den Arzt anruft, schläft der König.",
    )
    yield (
        clause(KING, verb("know", complement=clause(SHE, verb("sing", tense=WILL)))),
        "The king knows that she will sing.",
        "Der König weiß, dass sie singen wird.",
    )
    yield (
        clause(related("queen", "subject", None, calls_up()), verb("sleep")),
        "The queen who calls up the doctor sleeps.",
        "Die Königin, die den Arzt anruft, schläft.",
    )
    seen = related("dog", "object", KING, verb("see", tense=PERFECT))
    yield (
        clause(SHE, verb("wake", "up", object=Group([seen]))),
        "She wakes up the dog which the king has seen.",
        "Sie weckt den Hund auf, den der König gesehen hat.",
    )
    yield (
        clause(related("girl", "object", KING, verb("listen")), verb("laugh")),
        "The girl to whom the king listens laughs.",
        "Das Mädchen, dem der König zuhört, lacht.",
    )
    yield (
        clause(related("man", "companion", KING, verb("sing"), COMPANIONS[1]), verb("laugh")),
        "The man for whom the king sings laughs.",
        "Der Mann, für den der König singt, lacht.",
    )


def middle_fields():
    """Yield trees with the texts expected."""
    slowly = verb("wash", object=Group([the("cat")]), time=TODAY, manner=MANNERS[0])
    yield (
        clause(KING, slowly),
        "The king washes the cat slowly today.",
        "Der König wäscht heute langsam die Katze.",
    )
    gift = verb("give", recipient=Group([HE]), object=Group([the("ball"), the("egg")]))
    yield (
        clause(SHE, gift),
        "She gives him the ball and the egg.",
        "Sie gibt ihm den Ball und das Ei.",
    )


@pytest.mark.parametrize(
    "tree, source, target", [*main_clauses(), *subordinate_clauses(), *middle_fields()]
)
def test_sentences_as_a_person_would_write_them(tree, source, target):
    assert english.sentence(Sentence(tree)) == source
    assert german.sentence(Sentence(tree)) == target


@pytest.mark.parametrize(
    "role, phrase, forms",
    [
        ("subject", verb("sleep"), "der die das die"),
        ("object", verb("see"), "den die das die"),
        ("object", verb("help"), "dem der dem denen"),
        ("recipient", verb("show", object=Group([the("house")])), "dem der dem denen"),
    ],
)
def test_relative_pronouns_agree_with_their_noun_and_take_the_case_of_their_role(
    role, phrase, forms
):
    subject = None if role == "subject" else HE
    found = []
    for word, plural in (("man", False), ("woman", False), ("child", False), ("man", True)):
        head = related(word, role, subject, phrase)
        head.plural = plural
        found.append(german.sentence(Sentence(clause(head, verb("laugh")))).split()[2])
    assert " ".join(found) == forms


def test_main_clauses_are_joined_with_commas():
    first = clause(related("king", "subject", None, verb("sing")), verb("laugh"))
    tree = Sentence(first, [Subordinate(BUT, clause(SHE, verb("sleep")))])
    assert english.sentence(tree) == "The king who sings laughs, but she sleeps."
    assert german.sentence(tree) == "Der König, der singt, lacht, aber sie schläft."


@pytest.mark.parametrize(
    "english, gender, forms",
    [
        ("the", "m", "der alte Mann, den alten Mann, dem alten Mann"),
        ("the", "f", "die alte Frau, die alte Frau, der alten Frau"),
        ("the", "n", "das alte Kind, das alte Kind, dem alten Kind"),
        ("the", "p", "die alten Kinder, die alten Kinder, den alten Kindern"),
        ("a", "m", "ein alter Mann, einen alten Mann, einem alten Mann"),
        ("a", "f", "eine alte Frau, eine alte Frau, einer alten Frau"),
        ("a", "n", "ein altes Kind, ein altes Kind, einem alten Kind"),
        ("our", "p", "unsere alten Kinder, unsere alten Kinder, unseren alten Kindern"),
        ("her", "m", "ihr alter Mann, ihren alten Mann, ihrem alten Mann"),
        ("this", "m", "dieser alte Mann, diesen alten Mann, diesem alten Mann"),
        ("this", "p", "diese alten Kinder, diese alten Kinder, diesen alten Kindern"),
        ("every", "n", "jedes alte Kind, jedes alte Kind, jedem alten Kind"),
        ("two", "p", "zwei alte Kinder, zwei alte Kinder, zwei alten Kindern"),
        ("many", "p", "viele alte Kinder, viele alte Kinder, vielen alten Kindern"),
    ],
)
def test_declension(english, gender, forms):
    determiner = next(d for d, _ in DETERMINERS if english in (d.singular, d.plural))
    word = {"m": "man", "f": "woman"}.get(gender, "child")
    noun = next(noun for noun in NOUNS if noun.singular == word)
    tree = Phrase(determiner, noun, gender == "p", ADJECTIVES[0])
    cased = [german.noun_phrase(tree, case) for case in ("nominative", "accusative", "dative")]
    assert ", ".join(map(" ".join, cased)) == forms
