"""Codes of languages as data sets have them (``fr_XX``, ``zho_Hans``), and their scripts.

The library ``langcodes`` knows the codes; it is imported when needed.
"""

import re
import unicodedata
from collections import Counter
from typing import Any, Iterable, List, Mapping, Optional

from fairseq_posenc.errors import UsageError, import_optional

# ISO 15924; whoever writes in them puts no space, or none that parts words, between words
_WITHOUT_SPACES = frozenset(
    "Hani Hans Hant Jpan Hira Kana Hrkt Thai Laoo Khmr Mymr Tibt Java Bali Lana Talu Tavt".split()
)
# by the first word of Unicode's names of letters, a language that is written in them
_OF_LETTERS = {
    "CJK": "zh", "HIRAGANA": "ja", "KATAKANA": "ja", "THAI": "th", "LAO": "lo", "KHMER": "km",
    "MYANMAR": "my", "TIBETAN": "bo",
}  # fmt: skip
_ENOUGH = 10_000  # letters
_SOME_KANA = 0.1
HAN = frozenset(("Hani", "Hans", "Hant"))


def check_language(language: str, option: str) -> None:
    """Check the name of a language of a translation model; ``option`` is for messages.

    fairseq joins two names by a hyphen, in names of files (``train.en-fr.en``) and in options
    (``--lang-pairs en-fr``), and splits them there.

    Raises:
        UsageError: it has a hyphen, or characters that names of files should not have.
    """
    if re.fullmatch(r"\w+(-\w+)+", language):
        written = language.replace("-", "_")
        raise UsageError(
            f"{option} {language}: fairseq takes the hyphen for the one in en-fr; write {written}, "
            f"and call your files so (train.{written})"
        )
    if not re.fullmatch(r"\w+", language):
        raise UsageError(f"{option} {language!r} is not the name of a language, such as en")


def language_code(language: str) -> str:
    """Return the code by which Moses and sacreBLEU know a language: ``de`` of ``deu_Latn``."""
    first = re.split("[-_]", language)[0].lower()
    if len(first) != 3:
        return first
    tag = _tag(language)
    return tag.language if tag else first


def script_of(language: str) -> Optional[str]:
    """Return the script of a code, ``Thai``, or the usual one of its language; None: not known."""
    tag = _tag(language)
    return tag.maximize().script if tag else None


def has_spaces(language: Optional[str]) -> bool:
    """Return whether spaces part the words of a language; of one that is not known, too."""
    return script_of(language or "") not in _WITHOUT_SPACES


def is_without_spaces(piece: str) -> bool:
    """Return whether the first letter of a subword is of a script without spaces."""
    letters = (unicodedata.name(c, "") for c in piece if unicodedata.category(c)[0] in "LM")
    return next(letters, "").split(" ")[0] in _OF_LETTERS


def language_of_text(language: Optional[str], lines: Iterable[str]) -> Optional[str]:
    """Return a language, or another one by whose rules its text is cut into words.

    It is another one where a code such as ``cn`` or ``tgt`` stands for a text whose letters are
    mostly of a script without spaces.
    """
    if not has_spaces(language):
        return language
    letters: Counter = Counter()
    for line in lines:
        names = (unicodedata.name(c, "") for c in line if unicodedata.category(c)[0] in "LM")
        letters.update(name.split(" ")[0] for name in names)
        if sum(letters.values()) > _ENOUGH:
            break
    total = sum(letters.values())
    counts = Counter({name: letters[name] for name in _OF_LETTERS if letters[name]})
    if 2 * sum(counts.values()) <= total or not counts:
        return language
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    return "ja" if kana > _SOME_KANA * total else _OF_LETTERS[counts.most_common(1)[0][0]]


def _tag(language: str) -> Any:
    """Return the library's entry of a language code; None if there is none."""
    langcodes = import_optional(
        "langcodes", f"the library langcodes says what language {language} is"
    )
    try:
        # of a macrolanguage's members, the macrolanguage: arb is ar, cmn is zh
        return langcodes.Language.get(langcodes.standardize_tag(language, macro=True))
    except langcodes.LanguageTagError:
        return None


def languages_of(task: Mapping[str, Any]) -> List[str]:
    """Return the languages of a task; fairseq's own may tell them by --lang-pairs alone."""
    pairs = task.get("lang_pairs") or ()
    pairs = pairs.split(",") if isinstance(pairs, str) else pairs
    named = {language for pair in pairs for language in pair.split("-")}
    return task.get("langs") or sorted(named)
