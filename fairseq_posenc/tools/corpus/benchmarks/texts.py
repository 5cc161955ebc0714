"""Raw text for masked-LM training: documents divided by blank lines, one sentence per line."""

from typing import Iterator, List, NamedTuple, Sequence, Set

from fairseq_posenc.tools.corpus.benchmarks.plan import File, Plan
from fairseq_posenc.tools.corpus.benchmarks.questions import ask, roles
from fairseq_posenc.tools.corpus.benchmarks.scenes import Scenes
from fairseq_posenc.tools.corpus.benchmarks.tongues import ENGLISH, TONGUES, Tongue, tokens
from fairseq_posenc.tools.corpus.benchmarks.wording import BAD, GOOD, denied, judged, reworded
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.documents import SENTENCES, generate

_LENGTHS = (4, 24)
_SHARE_OF_SCENES = 0.4


class Line(NamedTuple):
    """A sentence as tokens in both languages of the grammar."""

    english: Sequence[str]
    german: Sequence[str]


Document = List[Line]


def raw_text(plan: Plan) -> Iterator[File]:
    """Yield the English files, and those in every language, which say the same.

    There are 2.5 training documents for each of the plan's examples, and a tenth for validation.
    """
    held: Set[str] = set()
    # training comes last and leaves alone what the validation set holds
    for split, number in (("valid", plan.examples // 4), ("train", plan.examples * 5 // 2)):
        written = documents(f"{plan.seed}/text/{split}", number, held)
        held = {english_text(line) for document in written for line in document}
        yield f"text/{split}.txt", _lines(written, ENGLISH)
        for tongue in TONGUES.values():
            yield f"text-multilingual/{tongue.code}/{split}.txt", _lines(written, tongue)


def english_text(line: Line) -> str:
    """Return the English sentence."""
    return ENGLISH.spell(line.english).text


def documents(seed: str, number: int, held: Set[str]) -> List[Document]:
    """Return documents of the grammar's own sentences, and some of the benchmarks' kind.

    None of them has an English text that is in ``held``.
    """
    dice = Dice(seed)
    told = [dice.chance(_SHARE_OF_SCENES) for _ in range(number)]
    pairs = generate(told.count(False) * SENTENCES, seed, *_LENGTHS, exclude=held)
    return [
        _told(Scenes(dice), held)
        if scenes
        else [
            Line(tokens(pair.english), tokens(pair.german))
            for pair in (next(pairs) for _ in range(SENTENCES))
        ]
        for scenes in told
    ]


def _told(scenes: Scenes, held: Set[str]) -> Document:
    document: Document = []
    while len(document) < SENTENCES:
        line = _line(scenes)
        if english_text(line) not in held:
            document.append(line)
    return document


def _line(scenes: Scenes) -> Line:
    dice = scenes.dice
    scene = scenes.draw()
    for probability, change in (
        (0.4, lambda tree: reworded(tree, dice)),
        (0.3, lambda tree: judged(tree, dice.pick((GOOD, BAD)), dice)),
        (0.15, denied),
    ):
        scene = change(scene) if dice.chance(probability) else scene
    both = (ENGLISH, TONGUES["de"])
    if dice.chance(0.15):
        role = dice.pick(roles(scene))
        return Line(*(ask(tongue, scene, role) for tongue in both))
    return Line(*(tongue.sentence(scene) for tongue in both))


def _lines(written: Sequence[Document], tongue: Tongue) -> List[str]:
    lines: List[str] = []
    for document in written:
        lines += [""] if lines else []
        lines += [
            tongue.spell(line.german if tongue.code == "de" else line.english).text
            for line in document
        ]
    return lines
