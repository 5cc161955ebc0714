"""German of the generated corpus, read by tables and rules that are written here once more."""

import re

import pytest

from fairseq_posenc.tools.corpus import generate
from fairseq_posenc.tools.corpus.lexicon import ADJECTIVES, MODALS, VERBS

GENDERS = {
    "m": "Bäcker Arzt König Lehrer Mann Bruder Gärtner Hund Vogel Wolf Ball Brief Schlüssel Apfel "
    "Hut Garten Wald Turm",
    "f": "Frau Königin Mutter Schwester Tante Katze Maus Gans Eule Tasse Lampe Kiste Küche Schule "
    "Kirche Stadt",
    "n": "Mädchen Kind Pferd Schwein Buch Messer Bild Ei Schloss Haus Dorf Museum",
    "p": "Bäcker Ärzte Könige Lehrer Männer Brüder Gärtner Frauen Königinnen Mütter Schwestern "
    "Tanten Mädchen Kinder Katzen Hunde Pferde Vögel Mäuse Gänse Wölfe Schweine Eulen Bälle Bücher "
    "Briefe Schlüssel Tassen Lampen Messer Äpfel Hüte Bilder Kisten Eier Gärten Küchen Schlösser "
    "Häuser Schulen Wälder Kirchen Dörfer Türme Städte Museen",
}
# gender or plural, with the cases: n, a, d
ARTICLES = {
    "der": "m:n f:d",
    "die": "f:na p:na",
    "das": "n:na",
    "den": "m:a p:d",
    "dem": "m:d n:d",
    "im": "m:d n:d",
    "ins": "n:a",
    "ein": "m:n n:na",
    "eine": "f:na",
    "einen": "m:a",
    "einem": "m:d n:d",
    "einer": "f:d",
    "zwei": "p:nad",
    "drei": "p:nad",
    "viele": "p:na",
    "vielen": "p:d",
}
for stem in ("sein", "ihr", "unser"):
    ARTICLES.update({stem: "m:n n:na", stem + "e": "f:na p:na", stem + "en": "m:a p:d"})
    ARTICLES.update({stem + "em": "m:d n:d", stem + "er": "f:d"})
for stem in ("dies", "jed"):
    ARTICLES.update({stem + "er": "m:n f:d", stem + "e": "f:na p:na", stem + "es": "n:na"})
    ARTICLES.update({stem + "en": "m:a p:d", stem + "em": "m:d n:d"})
EIN_WORDS = ("ein", "sein", "ihr", "unser")
PREPOSITIONS = {"mit": "d", "für": "a", "ohne": "a", "hinter": "d", "neben": "d", "vor": "d"}
DATIVE_VERBS = "folgt folgen hilft helfen dankt danken vertraut vertrauen gehört gehören"
OPENERS = ("weil", "obwohl", "wenn", "während", "bevor", "dass")
RELATIVES = ("der", "die", "das", "den", "dem", "denen")
ADVERBS = {"oft", "immer", "manchmal", "heute", "jetzt", "morgen", "bald"}
ADVERBS |= {"langsam", "leise", "fröhlich", "vorsichtig", "schnell"}
PRONOUNS = {"er": "sg", "sie": "sg pl", "wir": "pl", "ihn": "", "ihm": "", "ihnen": "", "uns": ""}
STEMS = {word.stem for word in ADJECTIVES}
PREDICATES = {word.german for word in ADJECTIVES}
AUXILIARIES = {"hat": "sg", "ist": "sg", "haben": "pl", "sind": "pl"}
for modal in MODALS:
    AUXILIARIES.update({modal.german_singular: "sg", modal.german_plural: "pl"})
BARE, JOINED, NONFINITE = dict(AUXILIARIES), dict(AUXILIARIES), set()
for verb in VERBS:
    for form, number in ((verb.german_third, "sg"), (verb.infinitive, "pl")):
        if verb.frame != "copula":
            BARE[form] = number
            JOINED[verb.prefix + form] = number
    NONFINITE |= {verb.prefix + verb.infinitive, verb.prefix + verb.german_participle}
PREFIXES = {verb.prefix for verb in VERBS if verb.prefix}


@pytest.fixture(scope="module")
def sentences():
    """Token lists, the first letter as inside a sentence."""
    pairs = [*generate(1500, 5, 3, 20), *generate(60, 5, 40, 60)]
    return [tokens(pair.german) for pair in pairs]


def tokens(text):
    words = re.findall(r"\w+|[.,]", text)
    return [words[0].lower(), *words[1:]]


def noun_analyses(word):
    found = {gender for gender in GENDERS if word in GENDERS[gender].split()}
    plurals = GENDERS["p"].split()
    dative = {"p"} if word[-1] == "n" and word[:-1] in plurals else set()
    if word in plurals and word[-1] in "ns":
        dative.add("p")
    return found, dative


def phrase_at(words, start):
    """Return (end, readings) of the noun phrase at `start`; a reading is gender and case."""
    article = words[start]
    position = start + 1
    position += words[position] == "sehr"
    adjective = stem_of(words[position])
    ending = words[position][len(adjective) :] if adjective else None
    position += adjective is not None
    genders, dative_plurals = noun_analyses(words[position])
    readings = set()
    for part in ARTICLES[article].split():
        gender, cases = part.split(":")
        for case in cases:
            known = dative_plurals if gender + case == "pd" else genders
            right = ending is None or ending == adjective_ending(article, gender, case)
            if gender in known and right:
                readings.add(gender + case)
    return position + 1, readings


def adjective_ending(article, gender, case):
    if article in ("zwei", "drei", "viele", "vielen"):
        return "en" if case == "d" else "e"
    if case == "d" or gender == "p" or gender + case == "ma":
        return "en"
    if article.startswith(EIN_WORDS):
        return {"m": "er", "f": "e", "n": "es"}[gender]
    return "e"


def is_phrase(words, start):
    """Whether a noun phrase starts here, and not a relative pronoun or "ihr" = to her."""
    position = start + 1
    position += words[position : position + 1] == ["sehr"]
    position += bool(position < len(words) and stem_of(words[position]))
    return words[start] in ARTICLES and position < len(words) and words[position][0].isupper()


def stem_of(word):
    return next((stem for stem in STEMS if re.fullmatch(stem + "e[nrs]?", word)), None)


def all_phrases(words):
    starts = [start for start in range(len(words)) if is_phrase(words, start)]
    return [(start, *phrase_at(words, start)) for start in starts]


def cases(readings):
    return {reading[1] for reading in readings}


def test_articles_adjectives_and_nouns_agree(sentences):
    seen = set()
    for words in sentences:
        for start, end, readings in all_phrases(words):
            assert readings, words[start:end]
            seen |= readings
    assert seen == {gender + case for gender in "mfnp" for case in "nad"}


def test_every_noun_belongs_to_a_checked_phrase(sentences):
    for words in sentences:
        inside = {end - 1 for _, end, _ in all_phrases(words)}
        for position, word in enumerate(words):
            if word[0].isupper():
                assert position in inside, words


def test_prepositions_govern_their_case(sentences):
    checked = set()
    for words in sentences:
        for start, end, readings in all_phrases(words):
            case = PREPOSITIONS.get(words[start - 1] if start else "")
            if case:
                checked.add(words[start - 1])
                assert case in cases(readings), words[start - 1 : end]
    assert checked >= set(PREPOSITIONS)


def test_place_is_dative_and_direction_accusative():
    directed = {form for verb in VERBS if verb.frame == "motion" for form in verb[6:9]}
    seen = set()
    for pair in generate(1500, 6, 4, 12):
        words = tokens(pair.german)
        if set(words) & {",", "und"} or "in" not in words or words[0] == "in":
            continue
        case = "a" if directed & set(words) else "d"
        start = words.index("in") + 1
        seen.add(case)
        assert case in cases(phrase_at(words, start)[1]), words
        assert words[start] not in ("dem", "das"), "im and ins"
    assert seen == {"a", "d"}


def test_objects_of_dative_verbs_are_dative_and_others_accusative(sentences):
    frames = {form: "a" for v in VERBS if v.frame == "transitive" for form in v[6:8]}
    frames.update(dict.fromkeys(DATIVE_VERBS.split(), "d"))
    checked = set()
    for words in sentences:
        if "," in words or "und" in words or words[0] in ADVERBS | {"in", "im", *PREPOSITIONS}:
            continue
        verbs = [position for position, word in enumerate(words) if word in BARE]
        if not verbs or words[verbs[0]] not in frames or len(verbs) > 1:
            continue
        case, start = frames[words[verbs[0]]], verbs[0] + 1
        while words[start] in ADVERBS:
            start += 1
        case = "d" if words[-2] == "zu" else case
        if is_phrase(words, start):
            checked.add(case)
            assert case in cases(phrase_at(words, start)[1]), words
    assert checked == {"a", "d"}


def first_constituent(words):
    """Return the end of what comes before the verb, and the possible numbers of the subject."""
    if words[0] in PRONOUNS:
        return 1, set(PRONOUNS[words[0]].split())
    if words[0] in ADVERBS:
        return 1, {"sg", "pl"}
    if words[0] in ("in", "im", *PREPOSITIONS):
        return phrase_at(words, 0 if words[0] == "im" else 1)[0], {"sg", "pl"}
    end, readings = phrase_at(words, 0)
    assert "n" in cases(readings), words
    if words[end] == "und":
        return phrase_at(words, end + 1)[0], {"pl"}
    return end, {"pl" if reading == "pn" else "sg" for reading in readings if reading[1] == "n"}


def test_the_verb_is_second_in_main_clauses_and_agrees_with_the_subject(sentences):
    seen = set()
    for words in sentences:
        if "," in words:
            continue
        end, numbers = first_constituent(words)
        assert BARE.get(words[end]) in numbers, words
        seen.add((words[0] in ADVERBS, BARE[words[end]]))
    assert len(seen) == 4


def subordinate_fields(words):
    """Yield the words between the opening of a clause inside the sentence and the next comma."""
    fields = " ".join(words).rstrip(" .").split(" , ")
    for field in map(str.split, fields):
        first = field[1:] if field[0] in ("und", "aber") else field
        preposition = first[0] in PREPOSITIONS or first[0] == "in"
        pronoun = first[1] if preposition and len(first) > 1 else first[0]
        relative = pronoun in RELATIVES and not is_phrase(first, int(preposition))
        if first[0] in OPENERS or (relative and field is not fields[0]):
            yield first[2:] if preposition else first[1:]


def verb_phrases(field):
    """Split at each "und" that follows a finite verb."""
    phrases = [[]]
    for position, word in enumerate(field):
        if word == "und" and field[position - 1] in JOINED:
            phrases.append([])
        else:
            phrases[-1].append(word)
    return phrases


def test_the_verb_is_last_in_subordinate_and_relative_clauses(sentences):
    complete = 0
    for words in sentences:
        for field in subordinate_fields(words):
            for phrase in verb_phrases(field):
                if phrase[-1] not in JOINED:
                    # the subject alone: a list or a relative clause comes between it and the verb
                    assert phrase[-1][0].isupper(), words
                    assert not set(phrase) & (set(JOINED) | set(BARE)), words
                    continue
                complete += 1
                cluster = 1
                if phrase[-1] in AUXILIARIES and phrase[-2] not in PREDICATES - NONFINITE:
                    assert phrase[-2] in NONFINITE, words
                    cluster = 2
                assert not set(phrase[:-cluster]) & (set(JOINED) | set(BARE)), words
    assert complete > 500


def test_verbs_of_subordinate_clauses_agree_with_their_subject():
    seen = set()
    for pair in generate(1500, 7, 5, 14):
        words = tokens(pair.german)
        for field in subordinate_fields(words):
            opened = words[words.index(field[0]) - 1] in OPENERS
            if not opened or field[-1] not in JOINED or "und" in field:
                continue
            _, numbers = first_constituent(field)
            assert JOINED[field[-1]] in numbers, words
            seen.add(JOINED[field[-1]])
    assert seen == {"sg", "pl"}


def test_separable_prefixes_stand_last_in_main_clauses_and_are_joined_elsewhere(sentences):
    separable = {}
    for verb in VERBS:
        if verb.prefix:
            separable.setdefault(verb.prefix, set()).update((verb.german_third, verb.infinitive))
    apart = set()
    for words in sentences:
        for position, word in enumerate(words):
            if word in PREFIXES and not is_phrase(words, position):
                apart.add(word)
                assert words[position + 1] in (",", ".", "und"), words
                assert set(words[:position]) & separable[word], words
        for field in subordinate_fields(words):
            assert field[-1] not in PREFIXES, words
    assert apart == PREFIXES
