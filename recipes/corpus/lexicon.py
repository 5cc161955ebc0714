"""The words of both languages, with what the grammar must know about each.

Every English word has one German counterpart. Nouns of the German n-declension are left out, and
so are English nouns whose plural looks like the singular: nothing may be lost on the way to German.
Nouns, adjectives and verbs are in files beside this one, with the fields of ``Noun``, ``Adjective``
and ``Verb``; ``-`` is for none.
"""

from collections import namedtuple
from pathlib import Path
from typing import List, Sequence

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"

# gender: m, f, n; kind: p person, a animal, t thing, l place
Noun = namedtuple("Noun", "singular plural german german_plural gender kind")
# stem: what takes the endings; kinds of nouns that it suits; gradable: "very" may go before it
Adjective = namedtuple("Adjective", "english german stem kinds gradable")
# particle: "calls up"; preposition of the object: "listens to"; prefix: the separable one of the
# German verb; kinds of nouns that are its subjects and objects; frame: intransitive, motion (a
# direction follows), transitive, ditransitive, clausal (a that-clause follows) or copula; adjuncts
# that it may take: m manner, c companion, p place
Verb = namedtuple(
    "Verb",
    "base third participle particle preposition prefix german_third infinitive german_participle "
    "auxiliary case subjects objects frame adjuncts",
)
# gender: that of the persons it needs in the document, "" for none
Pronoun = namedtuple("Pronoun", "subject object nominative accusative dative plural gender")
# pattern: the name of the endings it takes (see german.py)
Determiner = namedtuple("Determiner", "singular plural stem pattern")
Modal = namedtuple("Modal", "singular plural german_singular german_plural")
# a word that is never inflected
Word = namedtuple("Word", "english german")
# the English one may be several words; case: that of the German one
Preposition = namedtuple("Preposition", "english german case")

PRONOUNS = (
    Pronoun("he", "him", "er", "ihn", "ihm", False, "m"),
    Pronoun("she", "her", "sie", "sie", "ihr", False, "f"),
    Pronoun("they", "them", "sie", "sie", "ihnen", True, ""),
    Pronoun("we", "us", "wir", "uns", "uns", True, ""),
)

DETERMINERS = (
    (Determiner("the", "the", "d", "the"), 60.0),
    (Determiner("a", "", "ein", "ein"), 18.0),
    (Determiner("this", "these", "dies", "dies"), 6.0),
    (Determiner("every", "", "jed", "dies"), 3.0),
    (Determiner("our", "our", "unser", "ein"), 3.0),
    (Determiner("his", "his", "sein", "ein"), 3.0),
    (Determiner("her", "her", "ihr", "ein"), 3.0),
    (Determiner("", "two", "zwei", "numeral"), 4.0),
    (Determiner("", "three", "drei", "numeral"), 4.0),
    (Determiner("", "many", "viel", "many"), 4.0),
)

MODALS = (
    Modal("can", "can", "kann", "können"),
    Modal("must", "must", "muss", "müssen"),
    Modal("should", "should", "sollte", "sollten"),
    Modal("will", "will", "wird", "werden"),
    Modal("wants", "want", "will", "wollen"),
)

FREQUENCIES = (Word("often", "oft"), Word("always", "immer"), Word("sometimes", "manchmal"))
TODAY, NOW = Word("today", "heute"), Word("now", "jetzt")
LATER = (Word("tomorrow", "morgen"), Word("soon", "bald"))
MANNERS = (
    Word("slowly", "langsam"),
    Word("quietly", "leise"),
    Word("happily", "fröhlich"),
    Word("carefully", "vorsichtig"),
    Word("quickly", "schnell"),
)
AND, BUT, THAT, VERY = Word("and", "und"), Word("but", "aber"), Word("that", "dass"), "sehr"
REASONS = (Word("because", "weil"), Word("although", "obwohl"))
OCCASIONS = (Word("when", "wenn"), Word("while", "während"), Word("before", "bevor"))

COMPANIONS = (
    Preposition("with", "mit", DATIVE),
    Preposition("for", "für", ACCUSATIVE),
    Preposition("without", "ohne", ACCUSATIVE),
)
IN, INTO = Preposition("in", "in", DATIVE), Preposition("into", "in", ACCUSATIVE)
SURROUNDINGS = (
    Preposition("behind", "hinter", DATIVE),
    Preposition("next to", "neben", DATIVE),
    Preposition("in front of", "vor", DATIVE),
)


def rows(table: str, width: int) -> List[List[str]]:
    """Return the rows of a table, all of this many fields; "-" is an empty field, "|" nothing."""
    fields = ["" if field == "-" else field for field in table.replace("|", " ").split()]
    return [fields[start : start + width] for start in range(0, len(fields), width)]


def _read(name: str, fields: Sequence[str]) -> List[List[str]]:
    return rows(Path(__file__).with_name(name).read_text(encoding="utf-8"), len(fields))


NOUNS = [Noun(*row) for row in _read("nouns.txt", Noun._fields)]
ADJECTIVES = [Adjective(*row) for row in _read("adjectives.txt", Adjective._fields)]
VERBS = [Verb(*row) for row in _read("verbs.txt", Verb._fields)]
