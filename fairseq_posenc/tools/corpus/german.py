"""A tree in German words: agreement, case, and the verb in second or last place."""

from typing import List, NamedTuple, Tuple, Union

from fairseq_posenc.tools.corpus.english import join
from fairseq_posenc.tools.corpus.lexicon import (
    ACCUSATIVE,
    AND,
    DATIVE,
    IN,
    NOMINATIVE,
    THAT,
    VERY,
    Pronoun,
    Word,
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
    tokens = _main(tree.first)
    for conjunction, main in tree.others:
        tokens += [",", conjunction.german, *_main(main)]
    return join(_without_spare_commas([*tokens, "."]))


def _without_spare_commas(tokens: List[str]) -> List[str]:
    following = [*tokens[1:], ""]
    return [
        token for token, after in zip(tokens, following) if token != "," or after not in (",", ".")
    ]


class _Parts(NamedTuple):
    """A verb phrase in the order of German: the fields between and after the two verbs."""

    finite: str
    middle: List[str]
    bracket: List[str]
    joined: List[str]
    after: List[str]


def _main(tree: Clause) -> List[str]:
    subject = group(tree.subject, NOMINATIVE)
    tokens: List[str] = []
    for number, phrase in enumerate(tree.phrases):
        parts = _parts(phrase, tree.plural)
        if number:
            opening = [AND.german, parts.finite]
        elif tree.front is None:
            opening = [*subject, parts.finite]
        else:
            opening = [*_front(tree.front), parts.finite, *subject]
        tokens += [*opening, *parts.middle, *parts.bracket, *parts.after]
    return [*tokens, *_followers(tree)]


def _front(front: Union[Word, Adjunct, Subordinate]) -> List[str]:
    if isinstance(front, Word):
        return [front.german]
    if isinstance(front, Adjunct):
        return adjunct(front)
    return [front.conjunction.german, *_verb_last(front.clause), ","]


def _verb_last(tree: Clause) -> List[str]:
    tokens = [] if tree.subject is None else group(tree.subject, NOMINATIVE)
    for number, phrase in enumerate(tree.phrases):
        parts = _parts(phrase, tree.plural)
        tokens += [AND.german] if number else []
        tokens += [*parts.middle, *parts.joined, *parts.after]
    return [*tokens, *_followers(tree)]


def _followers(tree: Clause) -> List[str]:
    tokens: List[str] = []
    for conjunction, clause in tree.followers:
        tokens += [",", conjunction.german, *_verb_last(clause), ","]
    return tokens


def _column(phrase: Phrase) -> int:
    return 3 if phrase.plural else _COLUMNS.index(phrase.noun.gender)


def group(tree: Group, case: str) -> List[str]:
    """Return the tokens of a group in this case, with a relative clause between commas."""
    tokens = _without_relative(tree, case)
    return [*tokens, *_relative(tree.relative)] if tree.relative else tokens


def _without_relative(tree: Group, case: str) -> List[str]:
    first = tree.members[0]
    if isinstance(first, Pronoun):
        return [getattr(first, case)]
    tokens = noun_phrase(first, case)
    for number, phrase in enumerate(tree.members[1:], 2):
        tokens.append(AND.german if number == len(tree.members) else ",")
        tokens += noun_phrase(phrase, case)
    return tokens


def noun_phrase(tree: Phrase, case: str) -> List[str]:
    """Return the tokens of a noun phrase in this case, without its relative clause."""
    column = _column(tree)
    determiner = tree.determiner
    if determiner.pattern == "the":
        tokens = [_ARTICLE[case][column]]
    else:
        tokens = [determiner.stem + _ENDINGS[determiner.pattern][case][column]]
    if tree.adjective is not None:
        tokens += [VERY] if tree.very else []
        tokens.append(tree.adjective.stem + _ADJECTIVE[determiner.pattern][case][column])
    noun = tree.noun.german_plural if tree.plural else tree.noun.german
    if tree.plural and case == DATIVE and noun[-1] not in "ns":
        noun += "n"
    return [*tokens, noun]


def adjunct(tree: Adjunct) -> List[str]:
    """Return a preposition with its group, contracted where German contracts ("im", "ins").

    A relative clause of the group is left out; see :func:`_parts`.
    """
    preposition = tree.preposition
    tokens = _without_relative(tree.group, preposition.case)
    contracted = {"dem": "im", "das": "ins"}.get(tokens[0])
    if preposition.german == IN.german and contracted:
        return [contracted, *tokens[1:]]
    return [preposition.german, *tokens]


def _relative(tree: Clause) -> List[str]:
    case, preposition = _gap_case(tree.gap, tree.phrases[0])
    pronoun = _RELATIVE[case][_column(tree.gap.head)]
    return [",", *preposition, pronoun, *_verb_last(tree), ","]


def _gap_case(gap: Gap, phrase: VerbPhrase) -> Tuple[str, List[str]]:
    if gap.preposition is not None:
        return gap.preposition.case, [gap.preposition.german]
    if gap.role == "object":
        return ACCUSATIVE if phrase.verb.case == "both" else phrase.verb.case, []
    return (NOMINATIVE if gap.role == "subject" else DATIVE), []


def _parts(tree: VerbPhrase, plural: bool) -> _Parts:
    verb = tree.verb
    third = verb.infinitive if plural else verb.german_third
    participle, infinitive = verb.prefix + verb.german_participle, verb.prefix + verb.infinitive
    if verb.frame == "copula":
        finite, bracket = "sind" if plural else "ist", []
    elif tree.tense == PRESENT:
        finite, bracket = third, [verb.prefix] if verb.prefix else []
    elif tree.tense == PERFECT:
        finite, bracket = _PERFECT[verb.auxiliary][plural], [participle]
    else:
        finite = tree.tense.german_plural if plural else tree.tense.german_singular
        bracket = [infinitive]
    separated = tree.tense == PRESENT and verb.prefix
    joined = [verb.prefix + third] if separated else [*bracket, finite]
    return _Parts(finite, _middle(tree), bracket, joined, _after(tree))


def _middle(tree: VerbPhrase) -> List[str]:
    """Return what stands between the verbs: pronouns, adverbs, objects, adjuncts."""
    verb = tree.verb
    objects = [(tree.recipient, DATIVE), (tree.object, ACCUSATIVE)]
    if verb.case == DATIVE:
        objects = [(tree.object, DATIVE)]
    present = [(member, case) for member, case in objects if member is not None]
    tokens: List[str] = []
    for member, case in present:
        tokens += _without_relative(member, case) if member.pronominal else []
    tokens += [word.german for word in (tree.frequency, tree.time, tree.manner) if word]
    for member, case in present:
        tokens += [] if member.pronominal else _without_relative(member, case)
    for part in [tree.companion, *tree.places]:
        tokens += adjunct(part) if part else []
    if tree.adjective is not None:
        tokens += [VERY, tree.adjective.german] if tree.very else [tree.adjective.german]
    return tokens


def _after(tree: VerbPhrase) -> List[str]:
    """Return the clause that follows the second verb: a relative one, or one with dass."""
    for member in tree.groups():
        if member.relative is not None:
            return _relative(member.relative)
    if tree.complement is not None:
        return [",", THAT.german, *_verb_last(tree.complement), ","]
    return []
