"""Questions about scenes, in both languages of the grammar: who, whom or what, where."""

from dataclasses import replace
from typing import List

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.benchmarks.scenes import with_verb_phrase, without
from fairseq_posenc.tools.corpus.benchmarks.tongues import Tongue
from fairseq_posenc.tools.corpus.lexicon import DATIVE, Modal, Pronoun, Word
from fairseq_posenc.tools.corpus.tree import PRESENT, Clause, Group

_WHO = Group([Pronoun("who", "whom", "wer", "wen", "wem", False, "")])
_WHERE = Word("where", "wo")


def roles(scene: Clause) -> List[str]:
    """Return what can be asked about: ``subject``, ``object``, ``place``."""
    verb_phrase = scene.phrases[0]
    found = ["subject"]
    found += ["object"] if verb_phrase.object else []
    return [*found, "place"] if verb_phrase.places else found


def essence(scene: Clause) -> Clause:
    """Return what a question repeats: the scene without adverbs and adjuncts."""
    return without(scene, "manner", "companion", "places", "time")


def ask(tongue: Tongue, scene: Clause, role: str) -> List[str]:
    """Return the tokens of the question to which this part of the scene is the answer."""
    scene = essence(scene)
    if role == "subject":
        return [*tongue.sentence(replace(scene, subject=_WHO))[:-1], "?"]
    word = _WHERE
    if role == "object":
        word = _asking_for_object(scene)
        scene = with_verb_phrase(scene, object=None)
    if tongue.code == "de":
        return [*tongue.sentence(replace(scene, front=word))[:-1], "?"]
    return [word.english, *_inverted(scene), "?"]


def _asking_for_object(scene: Clause) -> Word:
    verb_phrase = scene.phrases[0]
    if verb_phrase.object.members[0].noun.kind not in "pa":
        return Word("what", "was")
    return Word("whom", "wem" if verb_phrase.verb.case == DATIVE else "wen")


def _inverted(scene: Clause) -> List[str]:
    """Return the English tokens of the clause with its finite verb first: "does the king see"."""
    verb_phrase, tense = scene.phrases[0], scene.phrases[0].tense
    subject = english.group(scene.subject, subject=True)
    wanting = isinstance(tense, Modal) and tense.plural == "want"
    if tense == PRESENT or wanting:
        auxiliary = "do" if scene.plural else "does"
        return [auxiliary, *subject, *english.verb_phrase(verb_phrase, plural=True)]
    finite, *rest = english.verb_phrase(verb_phrase, scene.plural)
    return [finite, *subject, *rest]
