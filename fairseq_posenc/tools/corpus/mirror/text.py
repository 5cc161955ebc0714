"""Text in the four languages of the corpora, with what makes real text hard to clean.

English and German come from the grammar; "French" says every English word, and "Czech" every
German one, by a word of its own, in the same order: another letter for each letter. They can be
learnt, and mean nothing in the real languages.
"""

from typing import Dict, List, NamedTuple, Sequence, Set

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.documents import SENTENCES, Pair, generate
from fairseq_posenc.tools.corpus.mirror.blemishes import Line, blemished

LENGTHS = (4, 60)

_EUROPEAN = "abcdefghijklmnopqrstuvwxyzäöüß"
_FRENCH = "oçdlébrsumkvtpajgcfnièqxêzàùîh"
_CZECH = "uvdřypščoklmnbězžtsáírwxjhéůúc"


def _letters(others: str) -> Dict[int, int]:
    return str.maketrans(_EUROPEAN + _EUROPEAN[:-1].upper(), others + others[:-1].upper())


_TO_FRENCH, _TO_CZECH = _letters(_FRENCH), _letters(_CZECH)

_COMPANY = ("Miller & Sons", "Müller & Söhne", "Meunier & fils", "Mlynář & synové")
_LATE = ("It’s late.", "Heut’ ist’s spät.", "C’est l’heure d’été.", "Je už pozdě.")
_SHARE = ("1,234.5 %", "1.234,5 %", "1 234,5 %", "1 234,5 %")
# around the sentence in English, German, French and Czech; most sentences are left alone
_ORNAMENTS = (
    ("“{}”", "„{}“", "«\u00a0{}\u00a0»", "„{}“"),
    ("{}", "{}", "{}", "{}"),
    tuple(f"{{}} ({company})" for company in _COMPANY),
    ("{}", "{}", "{}", "{}"),
    ('"{}"', '"{}"', '"{}"', '"{}"'),
    tuple(f"{late} {{}}" for late in _LATE),
    ("{}", "{}", "{}", "{}"),
    tuple(f"{{}} (3 < 5, 5 > 3: {share})" for share in _SHARE),
)
_LANGUAGES = ("en", "de", "fr", "cs")


class Sizes(NamedTuple):
    """Lines of every training file and of every test set, and the seed of their text."""

    pairs: int = 2000
    test_pairs: int = 60
    seed: int = 1

    def check(self) -> None:
        """Raise a UsageError if there would be nothing in a file."""
        if min(self.pairs, self.test_pairs) < 1:
            raise UsageError("training and test text need at least one pair of sentences each")

    def __str__(self) -> str:
        return f"--pairs {self.pairs} --test-pairs {self.test_pairs} --seed {self.seed}"


DEFAULT = Sizes()


class Texts:
    """The text of all archives, made when first asked for.

    Args:
        sizes: how much, and the seed.
        tests: names of all test sets; no sentence of theirs is in training text or in two of them.
    """

    def __init__(self, sizes: Sizes, tests: Sequence[str]):
        self.sizes = sizes
        self._train: Dict[str, List[Line]] = {}
        self._tests: Dict[str, List[Line]] = {}
        self._held: Set[str] = set()
        for name in tests:
            pairs = self._pairs("test", name, sizes.test_pairs)
            self._tests[name] = [ornamented(pair, number) for number, pair in enumerate(pairs)]
            self._held.update(pair.english for pair in pairs)

    def test(self, name: str) -> List[List[Line]]:
        """Return the documents of a test set."""
        lines = self._tests[name]
        return [lines[first : first + SENTENCES] for first in range(0, len(lines), SENTENCES)]

    def train(self, name: str) -> List[Line]:
        """Return the lines of a training text, some of which ought to be cleaned or removed."""
        if name not in self._train:
            pairs = self._pairs("train", name, self.sizes.pairs)
            lines = [ornamented(pair, number) for number, pair in enumerate(pairs)]
            self._train[name] = [blemished(line, number) for number, line in enumerate(lines)]
        return self._train[name]

    def _pairs(self, kind: str, name: str, number: int) -> List[Pair]:
        seed = f"{self.sizes.seed}/mirror/{kind}/{name}"
        unique = kind == "test"
        return list(generate(number, seed, *LENGTHS, exclude=self._held, unique=unique))


def ornamented(pair: Pair, number: int) -> Line:
    """Return a sentence in all languages; the line's number chooses quotation marks and the like.

    They are those of real text: typographic and plain quotes and apostrophes, ``&``, ``<``, ``>``,
    numbers.
    """
    texts = (
        pair.english,
        pair.german,
        pair.english.translate(_TO_FRENCH),
        pair.german.translate(_TO_CZECH),
    )
    frames = _ORNAMENTS[number % len(_ORNAMENTS)]
    return {
        language: frame.format(text) for language, frame, text in zip(_LANGUAGES, frames, texts)
    }
