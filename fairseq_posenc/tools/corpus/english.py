"""A tree in English words."""

import re
from typing import List

from fairseq_posenc.tools.corpus.lexicon import AND, THAT, Word
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


def count_tokens(text: str) -> int:
    """Return how many words and punctuation marks the text has, each mark counted by itself."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def join(tokens: List[str]) -> str:
    """Return the tokens as text: no blank before a mark, a capital at the start."""
    text = " ".join(tokens).replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]


def sentence(tree: Sentence) -> str:
    """Return the sentence as text."""
    tokens = clause(tree[0].clause)
    for main in tree[1:]:
        tokens += [",", *linked(main)]
    return join([*tokens, "."])


def linked(tree: Linked) -> List[str]:
    """Return the tokens of a conjunction and its clause."""
    return [tree.conjunction.english, *clause(tree.clause)]


def clause(tree: Clause) -> List[str]:
    """Return the tokens of a clause; a relative one begins with its pronoun."""
    tokens = _relative_pronoun(tree) if tree.gap else []
    if isinstance(tree.front, Word):
        tokens.append(tree.front.english)
    elif isinstance(tree.front, Adjunct):
        tokens += adjunct(tree.front)
    elif tree.front:
        tokens += [*linked(tree.front), ","]
    if tree.subject:
        tokens += group(tree.subject, subject=True)
    for number, phrase in enumerate(tree.phrases):
        tokens += [AND.english] if number else []
        tokens += verb_phrase(phrase, tree.plural)
    for follower in tree.followers:
        tokens += linked(follower)
    return tokens


def _relative_pronoun(tree: Clause) -> List[str]:
    role, head, preposition = tree.gap
    person = head.noun.kind == "p"
    if role == "subject":
        return ["who" if person else "which"]
    before = "to" if role == "recipient" else tree.phrases[0].verb.preposition
    if preposition:
        before = preposition.english
    return [*before.split(), "whom" if person else "which"]


def group(tree: Group, subject: bool = False) -> List[str]:
    """Return the tokens of a group, "the cat, the dog and the owl"."""
    if tree.pronominal:
        return [tree.members[0].subject if subject else tree.members[0].object]
    tokens = noun_phrase(tree.members[0])
    for number, phrase in enumerate(tree.members[1:], 2):
        tokens += [AND.english if number == len(tree.members) else ",", *noun_phrase(phrase)]
    return tokens


def noun_phrase(tree: Phrase) -> List[str]:
    """Return the tokens of a noun phrase with its relative clause."""
    tokens = ["very"] if tree.very else []
    tokens += [tree.adjective.english] if tree.adjective else []
    tokens.append(tree.noun.plural if tree.plural else tree.noun.singular)
    article = tree.determiner.plural if tree.plural else tree.determiner.singular
    if article == "a" and tokens[0][0] in "aeiou":
        article = "an"
    return [article, *tokens, *(clause(tree.relative) if tree.relative else [])]


def adjunct(tree: Adjunct) -> List[str]:
    """Return the tokens of a preposition with its group."""
    return [*tree.preposition.english.split(), *group(tree.group)]


def verb_phrase(tree: VerbPhrase, plural: bool) -> List[str]:
    """Return the tokens of a verb phrase, in agreement with a subject of this number."""
    tokens = _verb(tree, plural)
    if tree.adjective:
        tokens += ["very", tree.adjective.english] if tree.very else [tree.adjective.english]
    if tree.recipient:
        tokens += group(tree.recipient)
    particle = [tree.verb.particle] if tree.verb.particle else []
    named = group(tree.object) if tree.object else []
    if tree.object and tree.verb.preposition:
        named.insert(0, tree.verb.preposition)
    # "calls up the king", but "calls him up"
    pronoun = tree.object and tree.object.pronominal
    tokens += [*named, *particle] if pronoun else [*particle, *named]
    tokens += [tree.manner.english] if tree.manner else []
    for part in [tree.companion, *tree.places]:
        tokens += adjunct(part) if part else []
    tokens += [tree.time.english] if tree.time else []
    if tree.complement:
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
