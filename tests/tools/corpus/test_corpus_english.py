"""English of the generated corpus: agreement, articles, and words that are in the lexicon."""

import re

import pytest

from fairseq_posenc.tools.corpus import count_tokens, english, generate
from fairseq_posenc.tools.corpus.lexicon import ADJECTIVES, DETERMINERS, MODALS, NOUNS, VERBS

PREPOSITIONS = ("with", "without", "for", "to", "at", "in")
FREQUENCIES = ("often", "always", "sometimes")
FUNCTION_WORDS = """
he him she her they them we us an very has have are to who whom which and but that because although
when while before with for without in into behind next front of today now tomorrow soon slowly
quietly happily carefully quickly often always sometimes
"""
GERMAN_FUNCTION_WORDS = """
er ihn ihm sie ihr ihnen wir uns der die das den dem denen im ins hat haben ist sind sehr und aber
dass weil obwohl wenn während bevor mit für ohne in hinter neben vor heute jetzt morgen bald langsam
leise fröhlich vorsichtig schnell oft immer manchmal zwei drei viele vielen
"""


@pytest.fixture(scope="module")
def pairs():
    return [*generate(1500, 5, 3, 20), *generate(60, 5, 40, 60)]


def words(text):
    found = re.findall(r"\w+|[.,]", text)
    return [found[0].lower(), *found[1:]]


def test_a_and_an_follow_the_sound(pairs):
    seen = set()
    for pair in pairs:
        for article, following in re.findall(r"\b(an?) (\w+)", pair.english.lower()):
            seen.add(article)
            assert (article == "an") == (following[0] in "aeiou"), pair.english
    assert seen == {"a", "an"}


def numbers_of_verbs():
    singular = {verb.third for verb in VERBS} | {"has", "is", "wants"}
    plural = {verb.base for verb in VERBS} - {"be"} | {"have", "are", "want"}
    return singular, plural


def agreeing(text, position, plural):
    """Check the verb at `position` or after an adverb; return its number, None for "can"."""
    singulars, plurals = numbers_of_verbs()
    position += text[position] in FREQUENCIES
    if text[position] in {modal.plural for modal in MODALS} - {"want"}:
        return None
    assert text[position] in (plurals if plural else singulars), text
    return plural


def test_verbs_agree_with_the_subject(pairs):
    plurals = {noun.plural for noun in NOUNS}
    nouns = plurals | {noun.singular for noun in NOUNS}
    seen = set()
    for pair in pairs:
        text = words(pair.english)
        if text[0] in ("he", "she", "they", "we"):
            seen.add(agreeing(text, 1, text[0] in ("they", "we")))
        elif text[0] in {d.singular for d, _ in DETERMINERS} | {d.plural for d, _ in DETERMINERS}:
            noun = next(position for position, word in enumerate(text) if word in nouns)
            if text[noun + 1] in ("who", "which"):
                singulars, bases = numbers_of_verbs()
                if text[noun + 2] in singulars | bases:
                    seen.add(agreeing(text, noun + 2, text[noun] in plurals))
            elif text[noun + 1] not in ("whom", "and", ",", *PREPOSITIONS):
                seen.add(agreeing(text, noun + 1, text[noun] in plurals))
    assert seen == {True, False, None}


def test_relative_pronouns_tell_persons_from_things(pairs):
    persons = {form for noun in NOUNS if noun.kind == "p" for form in (noun.singular, noun.plural)}
    seen = set()
    for pair in pairs:
        text = words(pair.english)
        for position, word in enumerate(text):
            if word in ("who", "whom", "which"):
                head = text[position - 1]
                if head in PREPOSITIONS:
                    head = text[position - 2]
                seen.add(word)
                assert (head in persons) == (word != "which"), pair.english
    assert seen == {"who", "whom", "which"}


def lexicon():
    """Return all English and all German forms, made from the lexicon's tables."""
    source, target = set(FUNCTION_WORDS.split()), set(GERMAN_FUNCTION_WORDS.split())
    for noun in NOUNS:
        source |= {noun.singular, noun.plural}
        target |= {noun.german, noun.german_plural, noun.german_plural + "n"}
    for word in ADJECTIVES:
        source.add(word.english)
        target |= {word.german, *(word.stem + ending for ending in ("e", "en", "er", "es"))}
    for verb in VERBS:
        source |= {verb.base, verb.third, verb.participle, verb.particle, verb.preposition}
        for form in (verb.german_third, verb.infinitive, verb.german_participle):
            target |= {form, verb.prefix + form}
        target.add(verb.prefix)
    for modal in MODALS:
        source |= set(modal[:2])
        target |= set(modal[2:])
    for determiner, _ in DETERMINERS:
        source |= set(determiner[:2])
        target |= {determiner.stem + ending for ending in ("", "e", "en", "em", "er", "es")}
    return source, target


def test_every_word_is_in_the_lexicon(pairs):
    source, target = lexicon()
    for pair in pairs:
        assert set(words(pair.english)) <= source | {".", ","}
        german = words(pair.german)
        assert {german[0], german[0].capitalize()} & target
        assert set(german[1:]) <= target | {".", ","}


def test_vocabularies_are_small_and_used(pairs):
    english_words = {word for pair in pairs for word in words(pair.english)}
    german_words = {word for pair in pairs for word in words(pair.german)}
    assert 250 < len(english_words) < 350
    assert 350 < len(german_words) < 480


def test_sentences_look_like_text(pairs):
    for pair in pairs:
        for text in (pair.english, pair.german):
            assert re.fullmatch(r"[A-ZÄÖÜ][\wäöüß]*(,? [\wäöüÄÖÜß]+)*\.", text), text


def test_the_same_english_is_always_translated_alike():
    translations = {}
    repeated = 0
    for pair in generate(500, 8, 3, 4):
        repeated += pair.english in translations
        assert translations.setdefault(pair.english, pair.german) == pair.german
    assert repeated > 80


def test_tokens_are_words_and_punctuation_marks():
    assert count_tokens("When he sings, we laugh.") == 7
    assert english.join(["he", "sings", ",", "and", "we", "do", "."]) == "He sings, and we do."
