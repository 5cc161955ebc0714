"""A tree in English words."""

from typing import List

from recipes.corpus import lexicon, tree


def to_text(tokens: List[str]) -> str:
    """Return the tokens as text: no blank before a mark, a capital at the start."""
    text = " ".join(tokens).replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]


def sentence(mains: tree.Sentence) -> str:
    """Return the sentence as text."""
    tokens = clause(mains[0].clause)
    for main in mains[1:]:
        tokens += [",", *linked(main)]
    return to_text([*tokens, "."])


def linked(node: tree.Linked) -> List[str]:
    """Return the tokens of a conjunction and its clause."""
    return [node.conjunction.english, *clause(node.clause)]


def clause(node: tree.Clause) -> List[str]:
    """Return the tokens of a clause; a relative one begins with its pronoun."""
    tokens = _relative_pronoun(node) if node.gap else []
    if isinstance(node.front, lexicon.Word):
        tokens.append(node.front.english)
    elif isinstance(node.front, tree.Adjunct):
        tokens += adjunct(node.front)
    elif node.front:
        tokens += [*linked(node.front), ","]
    if node.subject:
        tokens += group(node.subject, subject=True)
    for number, phrase in enumerate(node.phrases):
        tokens += [lexicon.AND.english] if number else []
        tokens += verb_phrase(phrase, node.plural)
    for follower in node.followers:
        tokens += linked(follower)
    return tokens


def _relative_pronoun(node: tree.Clause) -> List[str]:
    role, head, preposition = node.gap
    person = head.noun.kind == "p"
    if role == "subject":
        return ["who" if person else "which"]
    before = "to" if role == "recipient" else node.phrases[0].verb.preposition
    if preposition:
        before = preposition.english
    return [*before.split(), "whom" if person else "which"]


def group(node: tree.Group, subject: bool = False) -> List[str]:
    """Return the tokens of a group, "the cat, the dog and the owl"."""
    if node.pronominal:
        return [node.members[0].subject if subject else node.members[0].object]
    tokens = noun_phrase(node.members[0])
    for number, phrase in enumerate(node.members[1:], 2):
        tokens.append(lexicon.AND.english if number == len(node.members) else ",")
        tokens += noun_phrase(phrase)
    return tokens


def noun_phrase(node: tree.Phrase) -> List[str]:
    """Return the tokens of a noun phrase with its relative clause."""
    tokens = ["very"] if node.very else []
    tokens += [node.adjective.english] if node.adjective else []
    tokens.append(node.noun.plural if node.plural else node.noun.singular)
    article = node.determiner.plural if node.plural else node.determiner.singular
    if article == "a" and tokens[0][0] in "aeiou":
        article = "an"
    return [article, *tokens, *(clause(node.relative) if node.relative else [])]


def adjunct(node: tree.Adjunct) -> List[str]:
    """Return the tokens of a preposition with its group."""
    return [*node.preposition.english.split(), *group(node.group)]


def verb_phrase(node: tree.VerbPhrase, plural: bool) -> List[str]:
    """Return the tokens of a verb phrase, in agreement with a subject of this number."""
    tokens = _verb(node, plural)
    if node.adjective:
        tokens += ["very", node.adjective.english] if node.very else [node.adjective.english]
    if node.recipient:
        tokens += group(node.recipient)
    particle = [node.verb.particle] if node.verb.particle else []
    named = group(node.object) if node.object else []
    if node.object and node.verb.preposition:
        named.insert(0, node.verb.preposition)
    # "calls up the king", but "calls him up"
    pronoun = node.object and node.object.pronominal
    tokens += [*named, *particle] if pronoun else [*particle, *named]
    tokens += [node.manner.english] if node.manner else []
    for part in [node.companion, *node.places]:
        tokens += adjunct(part) if part else []
    tokens += [node.time.english] if node.time else []
    if node.complement:
        tokens += [lexicon.THAT.english, *clause(node.complement)]
    return tokens


def _verb(node: tree.VerbPhrase, plural: bool) -> List[str]:
    verb, tense = node.verb, node.tense
    often = [node.frequency.english] if node.frequency else []
    if verb.frame == "copula":
        return ["are" if plural else "is", *often]
    if tense == tree.PRESENT:
        return [*often, verb.base if plural else verb.third]
    if tense == tree.PERFECT:
        return ["have" if plural else "has", *often, verb.participle]
    finite = tense.plural if plural else tense.singular
    if finite in ("want", "wants"):
        return [*often, finite, "to", verb.base]
    return [finite, *often, verb.base]
