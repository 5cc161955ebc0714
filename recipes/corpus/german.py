"""A tree in German words: agreement, case, and the verb in second or last place."""

from typing import List, Tuple

from recipes.corpus import lexicon, tree
from recipes.corpus.lexicon import ACCUSATIVE, DATIVE, NOMINATIVE

# masculine, feminine, neuter and plural in the nominative | accusative | dative
_ARTICLES = """
the       er ie as ie | en ie as ie | em er em en
relative  er ie as ie | en ie as ie | em er em enen
dies      er e es e   | en e es e   | em er em en
ein       - e - e     | en e - e    | em er em en
many      e e e e     | e e e e     | en en en en
numeral   - - - -     | - - - -     | - - - -
"""
_ADJECTIVES = """
the       e e e en    | en e e en   | en en en en
dies      e e e en    | en e e en   | en en en en
ein       er e es en  | en e es en  | en en en en
many      e e e e     | e e e e     | en en en en
numeral   e e e e     | e e e e     | en en en en
"""
_CASES = (NOMINATIVE, ACCUSATIVE, DATIVE)
_ENDINGS, _ADJECTIVE_ENDINGS = (
    {
        (row[0], case): row[4 * case_index + 1 : 4 * case_index + 5]
        for row in lexicon.rows(table, 13)
        for case_index, case in enumerate(_CASES)
    }
    for table in (_ARTICLES, _ADJECTIVES)
)
_PERFECT = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}


def sentence(mains: tree.Sentence) -> List[str]:
    """Return the tokens of the sentence, which :func:`english.to_text` puts together."""
    tokens = clause(mains[0].clause)
    for conjunction, main in mains[1:]:
        tokens += [",", conjunction.german, *clause(main)]
    # the comma that closes a clause is left out before another mark
    marks = zip(tokens, [*tokens[1:], "."])
    return [*(token for token, after in marks if token != "," or after not in ",."), "."]


def clause(node: tree.Clause, verb_last: bool = False) -> List[str]:
    """Return the tokens of a clause with its verb in second place, or in the last one."""
    subject = _subject(node.subject) if node.subject else []
    tokens: List[str] = []
    for number, phrase in enumerate(node.phrases):
        finite, second = _verbs(phrase, node.plural)
        if verb_last and phrase.tense == tree.PRESENT and second:  # "steht auf", but "aufsteht"
            finite, second = second[0] + finite, []
        tokens += [lexicon.AND.german] if number else []
        if verb_last:
            tokens += [] if number else subject
            tokens += [*_middle(phrase), *second, finite, *_after(phrase)]
            continue
        if node.front:
            tokens += [*_front(node), finite, *subject]
        else:
            tokens += [*([] if number else subject), finite]
        tokens += [*_middle(phrase), *second, *_after(phrase)]
    for conjunction, follower in node.followers:
        tokens += [",", conjunction.german, *clause(follower, verb_last=True), ","]
    return tokens


def _front(node: tree.Clause) -> List[str]:
    front = node.front
    if isinstance(front, lexicon.Word):
        return [front.german]
    if isinstance(front, tree.Adjunct):
        return adjunct(front)
    return [front.conjunction.german, *clause(front.clause, verb_last=True), ","]


def _verbs(node: tree.VerbPhrase, plural: bool) -> Tuple[str, List[str]]:
    """Return the finite verb, and what closes the bracket: prefix, participle or infinitive."""
    verb, tense = node.verb, node.tense
    if verb.frame == "copula":
        return "sind" if plural else "ist", []
    if tense == tree.PRESENT:
        finite = verb.infinitive if plural else verb.german_third
        return finite, [verb.prefix] if verb.prefix else []
    if tense == tree.PERFECT:
        return _PERFECT[verb.auxiliary][plural], [verb.prefix + verb.german_participle]
    finite = tense.german_plural if plural else tense.german_singular
    return finite, [verb.prefix + verb.infinitive]


def _middle(node: tree.VerbPhrase) -> List[str]:
    """Return what stands between the verbs: pronouns, adverbs, objects, adjuncts."""
    case = DATIVE if node.verb.case == DATIVE else ACCUSATIVE
    objects = [pair for pair in ((node.recipient, DATIVE), (node.object, case)) if pair[0]]
    tokens: List[str] = []
    for member, case in objects:
        tokens += _without_relative(member, case) if member.pronominal else []
    tokens += [word.german for word in (node.frequency, node.time, node.manner) if word]
    for member, case in objects:
        tokens += [] if member.pronominal else _without_relative(member, case)
    for part in [node.companion, *node.places]:
        tokens += adjunct(part) if part else []
    if node.adjective:
        tokens += [*([lexicon.VERY] if node.very else []), node.adjective.german]
    return tokens


def _after(node: tree.VerbPhrase) -> List[str]:
    """Return the clause that follows the second verb: a relative one, or one with dass."""
    for member in node.groups():
        if member.relative:
            return _relative(member.relative)
    if node.complement:
        return [",", lexicon.THAT.german, *clause(node.complement, verb_last=True), ","]
    return []


def _subject(node: tree.Group) -> List[str]:
    """Return the tokens of a subject, with a relative clause between commas."""
    tokens = _without_relative(node, NOMINATIVE)
    return [*tokens, *_relative(node.relative)] if node.relative else tokens


def _without_relative(node: tree.Group, case: str) -> List[str]:
    if node.pronominal:
        return [getattr(node.members[0], case)]
    tokens = noun_phrase(node.members[0], case)
    for number, phrase in enumerate(node.members[1:], 2):
        tokens.append(lexicon.AND.german if number == len(node.members) else ",")
        tokens += noun_phrase(phrase, case)
    return tokens


def _relative(node: tree.Clause) -> List[str]:
    role, head, preposition = node.gap
    if preposition:
        case = preposition.case
    elif role == "object":
        verb = node.phrases[0].verb
        case = ACCUSATIVE if verb.case == "both" else verb.case
    else:
        case = NOMINATIVE if role == "subject" else DATIVE
    before = [preposition.german] if preposition else []
    pronoun = "d" + _ENDINGS["relative", case][_column(head)]
    return [",", *before, pronoun, *clause(node, verb_last=True), ","]


def noun_phrase(node: tree.Phrase, case: str) -> List[str]:
    """Return the tokens of a noun phrase in this case, without its relative clause."""
    pattern, column = node.determiner.pattern, _column(node)
    tokens = [node.determiner.stem + _ENDINGS[pattern, case][column]]
    if node.adjective:
        tokens += [lexicon.VERY] if node.very else []
        tokens.append(node.adjective.stem + _ADJECTIVE_ENDINGS[pattern, case][column])
    noun = node.noun.german_plural if node.plural else node.noun.german
    if node.plural and case == DATIVE and noun[-1] not in "ns":
        noun += "n"
    return [*tokens, noun]


def _column(phrase: tree.Phrase) -> int:
    return 3 if phrase.plural else "mfn".index(phrase.noun.gender)


def adjunct(node: tree.Adjunct) -> List[str]:
    """Return a preposition with its group, contracted where German contracts ("im", "ins").

    A relative clause of the group is left out; see :func:`_after`.
    """
    tokens = _without_relative(node.group, node.preposition.case)
    contracted = {"dem": "im", "das": "ins"}.get(tokens[0])
    if node.preposition.german == lexicon.IN.german and contracted:
        return [contracted, *tokens[1:]]
    return [node.preposition.german, *tokens]
