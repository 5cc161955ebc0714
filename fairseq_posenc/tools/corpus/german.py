"""A tree in German words: agreement, case, and the verb in second or last place."""

from typing import List, Tuple, Union

from fairseq_posenc.tools.corpus.english import join
from fairseq_posenc.tools.corpus.lexicon import (
    ACCUSATIVE,
    AND,
    DATIVE,
    IN,
    NOMINATIVE,
    THAT,
    VERY,
    Word,
)
from fairseq_posenc.tools.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Group,
    Linked,
    Phrase,
    Sentence,
    VerbPhrase,
)

# The columns are masculine, feminine, neuter and plural.
_COLUMNS = "mfnp"
_ARTICLE = {
    NOMINATIVE: ("der", "die", "das", "die"),
    ACCUSATIVE: ("den", "die", "das", "die"),
    DATIVE: ("dem", "der", "dem", "den"),
}
_RELATIVE = {**_ARTICLE, DATIVE: ("dem", "der", "dem", "denen")}
_ENDINGS = {
    "dies": {
        NOMINATIVE: ("er", "e", "es", "e"),
        ACCUSATIVE: ("en", "e", "es", "e"),
        DATIVE: ("em", "er", "em", "en"),
    },
    "ein": {
        NOMINATIVE: ("", "e", "", "e"),
        ACCUSATIVE: ("en", "e", "", "e"),
        DATIVE: ("em", "er", "em", "en"),
    },
    "many": {NOMINATIVE: ("e",) * 4, ACCUSATIVE: ("e",) * 4, DATIVE: ("en",) * 4},
    "numeral": {NOMINATIVE: ("",) * 4, ACCUSATIVE: ("",) * 4, DATIVE: ("",) * 4},
}
_WEAK = {
    NOMINATIVE: ("e", "e", "e", "en"),
    ACCUSATIVE: ("en", "e", "e", "en"),
    DATIVE: ("en", "en", "en", "en"),
}
_MIXED = {**_WEAK, NOMINATIVE: ("er", "e", "es", "en"), ACCUSATIVE: ("en", "e", "es", "en")}
_STRONG_PLURAL = {NOMINATIVE: ("e",) * 4, ACCUSATIVE: ("e",) * 4, DATIVE: ("en",) * 4}
_ADJECTIVE = {
    "the": _WEAK,
    "dies": _WEAK,
    "ein": _MIXED,
    "many": _STRONG_PLURAL,
    "numeral": _STRONG_PLURAL,
}
_PERFECT = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}


def sentence(tree: Sentence) -> str:
    """Return the sentence as text."""
    tokens = clause(tree[0].clause)
    for conjunction, main in tree[1:]:
        tokens += [",", conjunction.german, *clause(main)]
    following = [*tokens[1:], "."]
    # a comma that closes a clause is not said before another one or the end
    spare = [token == "," and after in (",", ".") for token, after in zip(tokens, following)]
    return join([*(token for token, out in zip(tokens, spare) if not out), "."])


def clause(tree: Clause, verb_last: bool = False) -> List[str]:
    """Return the tokens of a clause with its verb in second place, or in the last one."""
    subject = group(tree.subject, NOMINATIVE) if tree.subject else []
    tokens: List[str] = []
    for number, phrase in enumerate(tree.phrases):
        finite, second = _verbs(phrase, tree.plural)
        before = [AND.german] if number else subject
        if verb_last:
            separated = phrase.tense == PRESENT and second
            verbs = [second[0] + finite] if separated else [*second, finite]
            tokens += [*before, *_middle(phrase), *verbs, *_after(phrase)]
            continue
        if tree.front:
            tokens += [*_front(tree.front), finite, *subject]
        else:
            tokens += [*before, finite]
        tokens += [*_middle(phrase), *second, *_after(phrase)]
    for conjunction, follower in tree.followers:
        tokens += [",", conjunction.german, *clause(follower, verb_last=True), ","]
    return tokens


def _front(front: Union[Word, Adjunct, Linked]) -> List[str]:
    if isinstance(front, Word):
        return [front.german]
    if isinstance(front, Adjunct):
        return adjunct(front)
    return [front.conjunction.german, *clause(front.clause, verb_last=True), ","]


def _verbs(tree: VerbPhrase, plural: bool) -> Tuple[str, List[str]]:
    """Return the finite verb, and what closes the bracket: prefix, participle or infinitive."""
    verb = tree.verb
    if verb.frame == "copula":
        return "sind" if plural else "ist", []
    if tree.tense == PRESENT:
        finite = verb.infinitive if plural else verb.german_third
        return finite, [verb.prefix] if verb.prefix else []
    if tree.tense == PERFECT:
        return _PERFECT[verb.auxiliary][plural], [verb.prefix + verb.german_participle]
    finite = tree.tense.german_plural if plural else tree.tense.german_singular
    return finite, [verb.prefix + verb.infinitive]


def _middle(tree: VerbPhrase) -> List[str]:
    """Return what stands between the verbs: pronouns, adverbs, objects, adjuncts."""
    object_case = DATIVE if tree.verb.case == DATIVE else ACCUSATIVE
    objects = [(tree.recipient, DATIVE), (tree.object, object_case)]
    objects = [(member, case) for member, case in objects if member]
    tokens: List[str] = []
    for member, case in objects:
        tokens += _without_relative(member, case) if member.pronominal else []
    tokens += [word.german for word in (tree.frequency, tree.time, tree.manner) if word]
    for member, case in objects:
        tokens += [] if member.pronominal else _without_relative(member, case)
    for part in [tree.companion, *tree.places]:
        tokens += adjunct(part) if part else []
    if tree.adjective:
        tokens += [VERY, tree.adjective.german] if tree.very else [tree.adjective.german]
    return tokens


def _after(tree: VerbPhrase) -> List[str]:
    """Return the clause that follows the second verb: a relative one, or one with dass."""
    for member in tree.groups():
        if member.relative:
            return _relative(member.relative)
    if tree.complement:
        return [",", THAT.german, *clause(tree.complement, verb_last=True), ","]
    return []


def group(tree: Group, case: str) -> List[str]:
    """Return the tokens of a group in this case, with a relative clause between commas."""
    tokens = _without_relative(tree, case)
    return [*tokens, *_relative(tree.relative)] if tree.relative else tokens


def _without_relative(tree: Group, case: str) -> List[str]:
    if tree.pronominal:
        return [getattr(tree.members[0], case)]
    tokens = noun_phrase(tree.members[0], case)
    for number, phrase in enumerate(tree.members[1:], 2):
        tokens.append(AND.german if number == len(tree.members) else ",")
        tokens += noun_phrase(phrase, case)
    return tokens


def _relative(tree: Clause) -> List[str]:
    role, head, preposition = tree.gap
    verb_case = tree.phrases[0].verb.case
    if preposition:
        case = preposition.case
    elif role == "object":
        case = ACCUSATIVE if verb_case == "both" else verb_case
    else:
        case = NOMINATIVE if role == "subject" else DATIVE
    before = [preposition.german] if preposition else []
    pronoun = _RELATIVE[case][_column(head)]
    return [",", *before, pronoun, *clause(tree, verb_last=True), ","]


def noun_phrase(tree: Phrase, case: str) -> List[str]:
    """Return the tokens of a noun phrase in this case, without its relative clause."""
    column = _column(tree)
    determiner = tree.determiner
    if determiner.pattern == "the":
        tokens = [_ARTICLE[case][column]]
    else:
        tokens = [determiner.stem + _ENDINGS[determiner.pattern][case][column]]
    if tree.adjective:
        tokens += [VERY] if tree.very else []
        tokens.append(tree.adjective.stem + _ADJECTIVE[determiner.pattern][case][column])
    noun = tree.noun.german_plural if tree.plural else tree.noun.german
    if tree.plural and case == DATIVE and noun[-1] not in "ns":
        noun += "n"
    return [*tokens, noun]


def _column(phrase: Phrase) -> int:
    return 3 if phrase.plural else _COLUMNS.index(phrase.noun.gender)


def adjunct(tree: Adjunct) -> List[str]:
    """Return a preposition with its group, contracted where German contracts ("im", "ins").

    A relative clause of the group is left out; see :func:`_after`.
    """
    preposition = tree.preposition
    tokens = _without_relative(tree.group, preposition.case)
    contracted = {"dem": "im", "das": "ins"}.get(tokens[0])
    if preposition.german == IN.german and contracted:
        return [contracted, *tokens[1:]]
    return [preposition.german, *tokens]
