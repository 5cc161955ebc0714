"""Scenes: main clauses of who does what, perhaps how, with whom, where and when; and their edits.

A scene is a :class:`~fairseq_posenc.tools.corpus.tree.Clause` with one verb phrase and no pronoun.
Edits return a new clause and leave the old one as it is.
"""

from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Set

from fairseq_posenc.tools.corpus import ornaments
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.draft import Draft
from fairseq_posenc.tools.corpus.grammar import Grammar
from fairseq_posenc.tools.corpus.tree import Adjunct, Clause, Group, Phrase, VerbPhrase

ADJECTIVES = "adjectives"
OPTIONAL = ("manner", "companion", "places", "time", ADJECTIVES)
_FRAMES = ("intransitive", "transitive")
_AMPLE = 1000
_STEPS = (
    (ornaments.manner, 0.3),
    (ornaments.companion, 0.2),
    (ornaments.place, 0.7),
    (ornaments.time, 0.5),
    (ornaments.adjective, 0.6),
    (ornaments.adjective, 0.3),
)


class Scenes:
    """Makes scenes about one document's actors and places.

    Args:
        dice: where every choice comes from.
    """

    def __init__(self, dice: Dice):
        self.dice = dice
        self.grammar = Grammar(dice)

    def draw(self, fits: Callable[[Clause], object] = lambda _: True) -> Clause:
        """Return a scene about which ``fits`` is true."""
        while True:
            draft = Draft(self.grammar, _AMPLE)
            scene = draft.tree.first
            if not _is_scene(scene):
                continue
            for step, probability in _STEPS:
                if self.dice.chance(probability):
                    step(draft)
            if not any(group.pronominal for group in scene.groups()) and fits(scene):
                return scene

    def recast(self, scene: Clause, role: str) -> Clause:
        """Return the scene with another noun as its ``subject``, ``object`` or place."""
        taken = [phrase.noun for phrase in phrases(scene)]

        def change(phrase: Phrase) -> Phrase:
            return replace(phrase, noun=self.grammar.phrase(phrase.noun.kind, taken).noun)

        verb_phrase = scene.phrases[0]
        if role == "subject":
            return replace(scene, subject=_changed(scene.subject, change))
        if role == "object":
            return with_verb_phrase(scene, object=_changed(verb_phrase.object, change))
        places = [Adjunct(where, _changed(group, change)) for where, group in verb_phrase.places]
        return with_verb_phrase(scene, places=places)


def _is_scene(clause: Clause) -> bool:
    verb = clause.phrases[0].verb
    return (
        verb.frame in _FRAMES
        # a question about its object would leave the preposition behind
        and not verb.preposition
        and not clause.subject.pronominal
        and clause.subject.members[0].noun.kind in "pa"
    )


def phrases(scene: Clause) -> Iterator[Phrase]:
    """Yield the noun phrases of a scene."""
    for group in scene.groups():
        yield from group.members


def optional_parts(scene: Clause) -> List[str]:
    """Return which of :data:`OPTIONAL` the scene has."""
    adjectives = any(phrase.adjective for phrase in phrases(scene))
    return [
        part
        for part in OPTIONAL
        if (adjectives if part == ADJECTIVES else getattr(scene.phrases[0], part))
    ]


def with_verb_phrase(scene: Clause, **changes: Any) -> Clause:
    """Return the scene with other fields of its :class:`VerbPhrase`."""
    return replace(scene, phrases=[replace(scene.phrases[0], **changes)])


def with_phrases(scene: Clause, change: Callable[[Phrase], Phrase]) -> Clause:
    """Return the scene with every noun phrase changed."""

    def adjunct(tree: Adjunct) -> Adjunct:
        return tree._replace(group=_changed(tree.group, change))

    verb_phrase: VerbPhrase = scene.phrases[0]
    return with_verb_phrase(
        replace(scene, subject=_changed(scene.subject, change)),
        object=verb_phrase.object and _changed(verb_phrase.object, change),
        companion=verb_phrase.companion and adjunct(verb_phrase.companion),
        places=[adjunct(place) for place in verb_phrase.places],
    )


def without(scene: Clause, *parts: str) -> Clause:
    """Return the scene without some of its :data:`OPTIONAL` parts."""
    bare: Dict[str, Any] = {
        part: [] if part == "places" else None for part in parts if part != ADJECTIVES
    }
    scene = with_verb_phrase(scene, **bare)
    if ADJECTIVES not in parts:
        return scene
    return with_phrases(scene, lambda phrase: replace(phrase, adjective=None, very=False))


def content(scene: Clause) -> Set[str]:
    """Return what nouns, verb, adjectives and adverbs of a scene mean, as German base forms.

    English synonyms have the same German word.
    """
    verb_phrase = scene.phrases[0]
    verb = verb_phrase.verb
    adverbs = (verb_phrase.frequency, verb_phrase.time, verb_phrase.manner)
    words = {verb.prefix + verb.infinitive, *(word.german for word in adverbs if word)}
    for phrase in phrases(scene):
        words.add(phrase.noun.german)
        words.update([phrase.adjective.german] if phrase.adjective else [])
    return words


def _changed(group: Group, change: Callable[[Phrase], Phrase]) -> Group:
    return Group([change(member) for member in group.members])
