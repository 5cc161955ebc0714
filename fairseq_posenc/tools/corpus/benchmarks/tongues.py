"""Languages of the benchmarks: English, German, and invented ones in other scripts.

The invented ones say every English word by one word of their own, in English order: letter by
letter in Arabic and Thai script, by a Chinese character for every two letters. They have what makes
those scripts hard for a reader of text (no blanks between words, right-to-left text, vowel signs
that combine with the letter before), and mean nothing in the real languages.
"""

import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

from fairseq_posenc.tools.corpus import english, german
from fairseq_posenc.tools.corpus.lexicon import NOMINATIVE
from fairseq_posenc.tools.corpus.tree import Clause, Sentence

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MARKS = (",", ".", "?")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ARABIC = dict(zip(_LETTERS, "ا ب ص د ِ ف ج ه ي ژ ك ل م ن و پ ق ر س ت ُ ڤ ش خ ى ز".split()))
_THAI = dict(zip(_LETTERS, "า บ ค ด ี ฟ ก ห ิ จ ข ล ม น ุ ป ฉ ร ส ต ำ ว ฮ ซ ย ช".split()))
_SIGNS = {"ِ": "ا", "ُ": "ا", **dict.fromkeys("าีิุำ", "อ")}
_FIRST_CHARACTER = 0x4E00


class Spelled(NamedTuple):
    """Text, and where in it each token starts and ends, in characters."""

    text: str
    spans: List[Tuple[int, int]]


class Tongue(NamedTuple):
    """A language: its code and name, and how its words and marks are written.

    ``marks`` replaces punctuation marks, ``blank`` stands between words, ``gap`` between sentences.
    """

    code: str
    name: str
    blank: str = " "
    gap: str = " "
    marks: Dict[str, str] = {}

    def sentence(self, clause: Clause) -> List[str]:
        """Return the tokens of a main clause as a sentence, with its full stop."""
        if self.code != "de":
            return [*english.clause(clause), "."]
        return tokens(german.sentence(Sentence(clause)))

    def part(self, scene: Clause, role: str) -> List[str]:
        """Return the tokens of a scene's ``subject``, ``object`` or ``place``, in their case."""
        verb_phrase = scene.phrases[0]
        if role == "place":
            return (german if self.code == "de" else english).adjunct(verb_phrase.places[0])
        group = scene.subject if role == "subject" else verb_phrase.object
        if self.code != "de":
            return english.group(group, role == "subject")
        return german.group(group, NOMINATIVE if role == "subject" else verb_phrase.verb.case)

    def word(self, token: str) -> str:
        """Return a token of :meth:`sentence` as this language writes it."""
        if not token.isalnum():
            return self.marks.get(token, token)
        writer = _WRITERS.get(self.code)
        return writer(token.lower()) if writer else token

    def spell(self, words: Sequence[str]) -> Spelled:
        """Return tokens of :meth:`sentence` as text: a capital at the start, blanks where due."""
        text, spans = "", []
        for token in words:
            text += self.blank if text and token not in _MARKS else ""
            spelled = self.word(token)
            spelled = spelled if text else spelled[:1].upper() + spelled[1:]
            spans.append((len(text), len(text) + len(spelled)))
            text += spelled
        return Spelled(text, spans)

    def text(self, scene: Clause) -> str:
        """Return a main clause as the text of a sentence."""
        return self.spell(self.sentence(scene)).text


def tokens(text: str) -> List[str]:
    """Return the words and punctuation marks of an English or German text."""
    return _TOKEN.findall(text)


def _lettered(word: str, letters: Dict[str, str]) -> str:
    """Return the word letter by letter; a vowel sign gets a silent letter where it has none."""
    written = ""
    for letter in (letters[letter] for letter in word):
        if letter in _SIGNS and (not written or written[-1] in _SIGNS):
            written += _SIGNS[letter]
        written += letter
    return written


def _arabic(word: str) -> str:
    return _lettered(word, _ARABIC)


def _thai(word: str) -> str:
    return _lettered(word, _THAI)


def _chinese(word: str) -> str:
    """Return the word with a character for every two letters, and for the last if it is single."""
    pairs = (word[start : start + 2].ljust(2, "`") for start in range(0, len(word), 2))
    numbers = (27 * (ord(two[0]) - ord("`")) + ord(two[1]) - ord("`") for two in pairs)
    return "".join(chr(_FIRST_CHARACTER + number) for number in numbers)


_WRITERS = {"ar": _arabic, "th": _thai, "zh": _chinese}
TONGUES = {
    tongue.code: tongue
    for tongue in (
        Tongue("ar", "arabic", marks={"?": "؟", ",": "،"}),
        Tongue("de", "german"),
        Tongue("en", "english"),
        Tongue("th", "thai", blank="", marks={".": "", ",": " "}),
        Tongue("zh", "chinese", blank="", gap="", marks={".": "。", "?": "？", ",": "，"}),
    )
}
ENGLISH = TONGUES["en"]
