"""Question answering: SQuAD, XQuAD, MLQA and TyDiQA-GoldP, in SQuAD's JSON format.

A passage is a run of scenes with questions about them. Nothing is asked to which two scenes of the
passage would be an answer. XQuAD and MLQA ask the same of the same passages in every language.
"""

import json
from hashlib import sha1
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.benchmarks.plan import File, Plan
from fairseq_posenc.tools.corpus.benchmarks.questions import ask, roles
from fairseq_posenc.tools.corpus.benchmarks.scenes import Scenes
from fairseq_posenc.tools.corpus.benchmarks.tongues import ENGLISH, TONGUES, Tongue
from fairseq_posenc.tools.corpus.benchmarks.unseen import shuffled
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.tree import Clause

XQUAD_LANGUAGES = ("ar", "de", "en", "th", "zh")
MLQA_LANGUAGES = ("ar", "de", "en", "zh")
TYDIQA_LANGUAGES = ("ar", "en")
_SHORT, _LONG, _SHARE_OF_LONG = (3, 8), (45, 60), 0.15
_MOST_QUESTIONS = 5
_PASSAGES_OF_ARTICLE = 4
_ATTEMPTS = 2000


class Question(NamedTuple):
    """A question about one part of a passage's scene; ``scene`` is that one's number."""

    scene: int
    role: str
    name: str


class Passage(NamedTuple):
    """Scenes that are told one after the other, and what is asked about them."""

    scenes: Sequence[Clause]
    questions: Sequence[Question]


class Collection(NamedTuple):
    """A data set: its version, and how many answers a question has (up to three)."""

    name: str
    version: str
    golds: int = 1


_SQUAD_TRAIN, _SQUAD_DEV = Collection("squad-train", "1.1"), Collection("squad-dev", "1.1", 3)
_XQUAD, _MLQA = Collection("xquad", "1.1"), Collection("mlqa", "1.0")
_TYDIQA_VERSION = "TyDiQA-GoldP-1.1-for-SQuAD-1.1"


def question_answering(plan: Plan) -> Iterator[File]:
    """Yield every file; the plan's examples are questions.

    Raises:
        UsageError: there are not so many different sentences.
    """
    library = Library(plan.seed)
    for collection, path, languages in (
        (_SQUAD_DEV, "squad/dev-v1.1.json", ("en",)),
        (_XQUAD, "xquad/xquad.{0}.json", XQUAD_LANGUAGES),
        (_MLQA, "mlqa/test/test-context-{0}-question-{0}.json", MLQA_LANGUAGES),
        *(
            (_tydiqa(language), "tydiqa/tydiqa.goldp.{0}.dev.json", (language,))
            for language in TYDIQA_LANGUAGES
        ),
    ):
        passages = library.passages(collection, plan.held_out)
        for language in languages:
            yield path.format(language), _lines(collection, passages, TONGUES[language])
    passages = library.passages(_SQUAD_TRAIN, plan.examples)
    yield "squad/train-v1.1.json", _lines(_SQUAD_TRAIN, passages, ENGLISH)


def _tydiqa(language: str) -> Collection:
    return Collection(f"{TONGUES[language].name}-tydiqa", _TYDIQA_VERSION, 3)


class Library:
    """Writes passages that share no sentence with those of other data sets."""

    def __init__(self, seed: int):
        self._seed = seed
        self._taken: Set[str] = set()

    def passages(self, collection: Collection, questions: int) -> List[Passage]:
        """Return passages with so many questions altogether."""
        dice = Dice(f"{self._seed}/{collection.name}")
        passages: List[Passage] = []
        told: Set[str] = set()
        left = questions
        while left:
            scenes = self._scenes(Scenes(dice), told)
            asked = answerable(scenes, dice)[: min(left, _MOST_QUESTIONS)]
            left -= len(asked)
            number = len(passages)
            named = [
                Question(index, role, self._name(collection, number, at))
                for at, (index, role) in enumerate(asked)
            ]
            if named:
                passages.append(Passage(scenes, named))
        self._taken |= told
        return passages

    def _scenes(self, source: Scenes, told: Set[str]) -> List[Clause]:
        dice = source.dice
        found: Dict[str, Clause] = {}
        wanted = dice.between(*(_LONG if dice.chance(_SHARE_OF_LONG) else _SHORT))
        for _ in range(_ATTEMPTS):
            scene = source.draw()
            text = ENGLISH.text(scene)
            if text not in self._taken:
                found.setdefault(text, scene)
            if len(found) == wanted:
                told.update(found)
                return list(found.values())
        raise UsageError("found no more sentences that no other data set has; ask for fewer")

    def _name(self, collection: Collection, passage: int, question: int) -> str:
        """Return an identifier of the collection's kind."""
        digest = sha1(f"{self._seed}/{collection}/{passage}/{question}".encode()).hexdigest()
        if collection.version == _TYDIQA_VERSION:
            return f"{collection.name.split('-')[0]}-{int(digest[:15], 16)}-0"
        return digest if collection is _MLQA else digest[:24]


def answerable(scenes: Sequence[Clause], dice: Dice) -> List[Tuple[int, str]]:
    """Return (index of the scene, role) of the questions that have one answer, in any order."""
    asked: Dict[str, List[Tuple[int, str]]] = {}
    for index, scene in enumerate(scenes):
        for role in roles(scene):
            asked.setdefault(" ".join(ask(ENGLISH, scene, role)), []).append((index, role))
    return shuffled((found[0] for found in asked.values() if len(found) == 1), dice)


def _lines(collection: Collection, passages: Sequence[Passage], tongue: Tongue) -> List[str]:
    paragraphs = [_paragraph(passage, tongue, collection.golds) for passage in passages]
    articles = [
        {
            "title": f"{collection.name}-{start // _PASSAGES_OF_ARTICLE + 1}",
            "paragraphs": paragraphs[start : start + _PASSAGES_OF_ARTICLE],
        }
        for start in range(0, len(paragraphs), _PASSAGES_OF_ARTICLE)
    ]
    data = {"data": articles, "version": collection.version}
    return [json.dumps(data, ensure_ascii=False)]


def _paragraph(passage: Passage, tongue: Tongue, golds: int) -> Dict:
    context, starts = "", []
    for scene in passage.scenes:
        context += tongue.gap if context else ""
        starts.append(len(context))
        context += tongue.text(scene)
    asked = []
    for question in passage.questions:
        scene, start = passage.scenes[question.scene], starts[question.scene]
        answers = [
            {"answer_start": start + low, "text": context[start + low : start + high]}
            for low, high in answer_spans(tongue, scene, question.role)[:golds]
        ]
        text = tongue.spell(ask(tongue, scene, question.role)).text
        asked.append({"answers": answers, "question": text, "id": question.name})
    return {"context": context, "qas": asked}


def answer_spans(tongue: Tongue, scene: Clause, role: str) -> List[Tuple[int, int]]:
    """Return where in the scene's text the whole answer is, it without its first word, its noun."""
    sentence = [token.lower() for token in tongue.sentence(scene)]
    part = [token.lower() for token in tongue.part(scene, role)]
    size = len(part)
    first = next(at for at in range(len(sentence)) if sentence[at : at + size] == part)
    spans = tongue.spell(tongue.sentence(scene)).spans[first : first + size]
    end = spans[-1][1]
    # without the article, but not without the half of a preposition
    bare = spans[0] if role == "place" else spans[1]
    return [(spans[0][0], end), (bare[0], end), (spans[-1][0], end)]
