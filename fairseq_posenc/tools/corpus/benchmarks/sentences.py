"""Labelled sentences and sentence pairs, one maker for each kind of task in GLUE.

The labels follow from what the sentences say. They also show on the surface, more than they do in
the real tasks (a paraphrase has rare words, a contradiction says "never"), so that a tiny model
learns something of each task from a few hundred examples; of WNLI, as in reality, hardly.
"""

from dataclasses import replace
from typing import List, Optional, Set

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.benchmarks import questions
from fairseq_posenc.tools.corpus.benchmarks.scenes import Scenes, content, optional_parts, without
from fairseq_posenc.tools.corpus.benchmarks.tongues import ENGLISH
from fairseq_posenc.tools.corpus.benchmarks.unseen import Example, shuffled
from fairseq_posenc.tools.corpus.benchmarks.wording import (
    BAD,
    GOOD,
    denied,
    fronted,
    judged,
    reworded,
)
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.lexicon import PRONOUNS, REASONS, VERBS
from fairseq_posenc.tools.corpus.tree import Clause, Group, Phrase, Subordinate, VerbPhrase

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
OTHERWISE = "not_entailment"
_BE = next(verb for verb in VERBS if verb.frame == "copula")
_BECAUSE = REASONS[0]
_PRONOUN_OF = {word.gender: word for word in PRONOUNS if word.gender}


def acceptability(scenes: Scenes, label: str) -> Example:
    """CoLA: a sentence (1), or one with a noun before its article or all words reversed (0)."""
    words = english.clause(scenes.draw())
    if label == "0":
        words = words[::-1] if scenes.dice.chance(0.4) else _article_after_noun(words, scenes.dice)
    return Example([english.join([*words, "."])], label)


def _article_after_noun(words: List[str], dice: Dice) -> List[str]:
    starts = [0, *(place for place in range(1, len(words) - 1) if words[place] in ("a", "the"))]
    place = dice.pick(starts)
    return [*words[:place], words[place + 1], words[place], *words[place + 2 :]]


def sentiment(scenes: Scenes, label: str) -> Example:
    """SST-2: somebody wonderful (1) or terrible (0), as lower-case tokens between blanks."""
    scene = judged(scenes.draw(), GOOD if label == "1" else BAD, scenes.dice)
    return Example([" ".join([*english.clause(scene), "."])], label)


def paraphrase(scenes: Scenes, label: str) -> Optional[Example]:
    """MRPC: the same scene in other words and order (1), or another scene (0)."""
    first = scenes.draw()
    other = reworded(first, scenes.dice) if label == "1" else scenes.draw()
    texts = [ENGLISH.text(first), ENGLISH.text(fronted(other))]
    differs = ENGLISH.text(other) != texts[0]
    same = content(first) == content(other)
    return Example(texts, label) if differs and same == (label == "1") else None


def same_question(scenes: Scenes, label: str) -> Optional[Example]:
    """QQP: a question and the same in other words (1), or another question (0)."""
    first, second = scenes.draw(), scenes.draw()
    role, other_role = (scenes.dice.pick(questions.roles(scene)) for scene in (first, second))
    if label == "1":
        second, other_role = reworded(first, scenes.dice), role
    texts = [_question(first, role), _question(second, other_role)]
    return Example(texts, label) if texts[0] != texts[1] else None


def _question(scene: Clause, role: str) -> str:
    return ENGLISH.spell(questions.ask(ENGLISH, scene, role)).text


def similarity(scenes: Scenes, share: str) -> Example:
    """STS-B: two sentences with a score: 5 times the share of content words in common (Dice's).

    ``share`` says roughly how much the second keeps of the first, from 5 (all) down to 0.
    Synonyms count as the same word.
    """
    dice = scenes.dice
    first = second = scenes.draw(lambda scene: len(optional_parts(scene)) > 1)
    if share == "0":
        second = Scenes(dice).draw()
    parts = shuffled([*questions.roles(second), *optional_parts(second)], dice)
    for part in parts[: round(len(parts) * (1 - int(share) / 5))]:
        if part in optional_parts(second):
            second = without(second, part)
        elif part in questions.roles(second):
            second = scenes.recast(second, part)
    one, two = content(first), content(second)
    score = 5 * 2 * len(one & two) / (len(one) + len(two))
    second = reworded(second, dice) if dice.chance(0.5) else second
    return Example([ENGLISH.text(first), ENGLISH.text(second)], f"{score:.3f}")


def inference(scenes: Scenes, label: str) -> Example:
    """MNLI and XNLI: the second sentence says less, or something else, or more than the first.

    What contradicts says that it never happens, or that somebody else does it.
    """
    dice = scenes.dice
    more = scenes.draw(optional_parts)
    parts = shuffled(optional_parts(more), dice)
    less = without(more, *parts[: dice.between(1, len(parts))])
    if label == ENTAILMENT:
        first, second = more, less
    elif label == NEUTRAL:
        first, second = less, more
    else:
        first = dice.pick((more, less))
        second = denied(less) if dice.chance(0.75) else scenes.recast(less, "subject")
    return Example([ENGLISH.text(first), ENGLISH.text(second)], label, [first, second])


def two_way_inference(scenes: Scenes, label: str) -> Example:
    """RTE: the same with two labels."""
    hidden = label if label == ENTAILMENT else scenes.dice.pick((NEUTRAL, CONTRADICTION))
    return inference(scenes, hidden)._replace(label=label)


def answered_question(scenes: Scenes, label: str) -> Optional[Example]:
    """QNLI: a question with a sentence that answers it, or with one that does not."""
    dice = scenes.dice
    asked = scenes.draw()
    role = questions.roles(asked)[-1] if dice.chance(0.7) else "subject"
    told = asked
    if label == OTHERWISE:
        same = role == "place" and dice.chance(0.5)
        told = without(asked if same else scenes.draw(), "places")
        if not same and told.phrases[0].verb == asked.phrases[0].verb:
            return None
    return Example([_question(asked, role), ENGLISH.text(told)], label)


def referent(scenes: Scenes, label: str) -> Example:
    """WNLI: who is meant by "he" or "she", two persons being named: this one (1), or not (0)."""
    dice = scenes.dice
    scene = without(scenes.draw(_names_two_persons), "companion", "places")
    while _genders(scene) != set(_PRONOUN_OF):
        scene = scenes.recast(scene, dice.pick(("subject", "object")))
    meant, other = scene.subject, scene.phrases[0].object
    if dice.chance(0.5):
        meant, other = other, meant
    pronoun = _PRONOUN_OF[meant.members[0].noun.gender]
    phrase = VerbPhrase(_BE, adjective=scenes.grammar.adjective(meant.members[0]))
    phrase.very = phrase.adjective.gradable and dice.chance(0.3)
    reason = Subordinate(_BECAUSE, Clause(Group([pronoun]), [phrase], depth=1))
    named = meant if label == "1" else other
    texts = [replace(scene, followers=[reason]), Clause(named, [phrase])]
    return Example([ENGLISH.text(clause) for clause in texts], label)


def _names_two_persons(scene: Clause) -> bool:
    named = _subject_and_object(scene)
    return len(named) == 2 and all(one.noun.kind == "p" and not one.plural for one in named)


def _genders(scene: Clause) -> Set[str]:
    return {phrase.noun.gender for phrase in _subject_and_object(scene)}


def _subject_and_object(scene: Clause) -> List[Phrase]:
    return [
        phrase
        for group in (scene.subject, scene.phrases[0].object)
        if group
        for phrase in group.members
    ]
