"""A tree in English words."""

import re
from typing import List

from fairseq_posenc.tools.corpus.lexicon import AND, IN, THAT, Pronoun, Word
from fairseq_posenc.tools.corpus.tree import (
    PERFECT,
    PRESENT,
    Adjunct,
    Clause,
    Group,
    Phrase,
    Sentence,
    Subordinate,
    VerbPhrase,
)

_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """Return how many words and punctuation marks the text has, each mark counted by itself."""
    return len(_TOKEN.findall(text))


def join(tokens: List[str]) -> str:
    """Return the tokens as text: no blank before a mark, a capital at the start."""
    text = " ".join(tokens).replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]


def sentence(tree: Sentence) -> str:
    """Return the sentence as text."""
    tokens = clause(tree.first)
    for conjunction, main in tree.others:
        tokens += [",", conjunction.english, *clause(main)]
    return join([*tokens, "."])


def clause(tree: Clause) -> List[str]:
    """Return the tokens of a clause; a relative one begins with its pronoun."""
    tokens = []
    if tree.gap is not None:
        tokens += _relative_pronoun(tree)
    if isinstance(tree.front, Word):
        tokens.append(tree.front.english)
    elif isinstance(tree.front, Adjunct):
        tokens += adjunct(tree.front)
    elif tree.front is not None:
        tokens += [*subordinate(tree.front), ","]
    if tree.subject is not None:
        tokens += group(tree.subject, subject=True)
    for number, phrase in enumerate(tree.phrases):
        tokens += [AND.english] if number else []
        tokens += verb_phrase(phrase, tree.plural)
    for follower in tree.followers:
        tokens += subordinate(follower)
    return tokens


def subordinate(tree: Subordinate) -> List[str]:
    """Return the tokens of a conjunction and its clause."""
    return [tree.conjunction.english, *clause(tree.clause)]


def _relative_pronoun(tree: Clause) -> List[str]:
    role, head, preposition = tree.gap
    verb = tree.phrases[0].verb
    person = head.noun.kind == "p"
    if role == "subject":
        return ["who" if person else "which"]
    before = {"object": [verb.preposition] if verb.preposition else [], "recipient": ["to"]}
    before.update(companion=list(preposition.english) if preposition else [], place=[*IN.english])
    return [*before[role], "whom" if person else "which"]


def group(tree: Group, subject: bool = False) -> List[str]:
    """Return the tokens of a group, "the cat, the dog and the owl"."""
    first = tree.members[0]
    if isinstance(first, Pronoun):
        return [first.subject if subject else first.object]
    tokens = noun_phrase(first)
    for number, phrase in enumerate(tree.members[1:], 2):
        tokens.append(AND.english if number == len(tree.members) else ",")
        tokens += noun_phrase(phrase)
    return tokens


def noun_phrase(tree: Phrase) -> List[str]:
    """Return the tokens of a noun phrase with its relative clause."""
    noun = tree.noun.plural if tree.plural else tree.noun.singular
    tokens = ["very"] if tree.very else []
    tokens += [tree.adjective.english, noun] if tree.adjective else [noun]
    article = tree.determiner.plural if tree.plural else tree.determiner.singular
    if article == "a" and tokens[0][0] in "aeiou":
        article = "an"
    return [article, *tokens, *(clause(tree.relative) if tree.relative else [])]


def adjunct(tree: Adjunct) -> List[str]:
    """Return the tokens of a preposition with its group."""
    return [*tree.preposition.english, *group(tree.group)]


def verb_phrase(tree: VerbPhrase, plural: bool) -> List[str]:
    """Return the tokens of a verb phrase, in agreement with a subject of this number."""
    tokens = _verb(tree, plural)
    if tree.adjective is not None:
        tokens += ["very", tree.adjective.english] if tree.very else [tree.adjective.english]
    tokens += _objects(tree)
    tokens += [tree.manner.english] if tree.manner else []
    for part in [tree.companion, *tree.places]:
        tokens += adjunct(part) if part else []
    tokens += [tree.time.english] if tree.time else []
    if tree.complement is not None:
        tokens += [THAT.english, *clause(tree.complement)]
    return tokens


def _verb(tree: VerbPhrase, plural: bool) -> List[str]:
    verb, tense = tree.verb, tree.tense
    often = [tree.frequency.english] if tree.frequency else []
    if verb.frame == "copula":
        return ["are" if plural else "is", *often]
    if tense == PRESENT:
        return [*often, verb.base if plural else verb.third]
    if tense == PERFECT:
        return ["have" if plural else "has", *often, verb.participle]
    finite = tense.plural if plural else tense.singular
    if finite in ("want", "wants"):
        return [*often, finite, "to", verb.base]
    return [finite, *often, verb.base]


def _objects(tree: VerbPhrase) -> List[str]:
    tokens: List[str] = []
    particle = [tree.verb.particle] if tree.verb.particle else []
    if tree.recipient is not None:
        tokens += group(tree.recipient)
    if tree.object is None:
        return [*tokens, *particle]
    if tree.verb.preposition:
        return [tree.verb.preposition, *group(tree.object)]
    if tree.object.pronominal:
        return [*tokens, *group(tree.object), *particle]
    return [*tokens, *particle, *group(tree.object)]
