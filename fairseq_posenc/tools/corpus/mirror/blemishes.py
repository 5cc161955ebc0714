"""What is wrong with some lines of a training text, so that cleaning has something to do.

Of every hundred lines, those numbered in the table have the blemish named there, in all languages.
"""

from functools import partial
from typing import Callable, Dict

Line = Dict[str, str]
"""A sentence: language -> text."""

PERIOD = 100
TOO_LONG = 80
LOPSIDED = 9


def blemished(line: Line, number: int) -> Line:
    """Return the line with the blemish that belongs to its number, if any."""
    blemish = _BLEMISHES.get(number % PERIOD)
    return line if blemish is None else blemish(line)


def _empty(line: Line, english: bool) -> Line:
    """Return the line without its English, or without the rest."""
    return {name: "" if (name == "en") == english else text for name, text in line.items()}


def _repeated(text: str, words: int) -> str:
    """Return the text, repeated until it has more words than this."""
    return " ".join([text] * (words // len(text.split()) + 1))


def _too_long(line: Line) -> Line:
    return {name: _repeated(text, TOO_LONG) for name, text in line.items()}


def _lopsided(line: Line, english: bool) -> Line:
    """Return the line with one word of its English, or of the rest, against more than nine."""
    return {
        name: _word(text) if (name == "en") == english else _repeated(text, LOPSIDED)
        for name, text in line.items()
    }


def _word(text: str) -> str:
    """Return the first word that stays one when it is tokenised."""
    return next(word for word in text.split() if word.isalpha())


def _blank(line: Line, character: str) -> Line:
    """Return the line with this white space instead of the first blank."""
    return {name: text.replace(" ", character, 1) for name, text in line.items()}


def _inside(line: Line, character: str) -> Line:
    """Return the line with a character that does not print after the first letter."""
    return {name: text[:1] + character + text[1:] for name, text in line.items()}


def _around(line: Line) -> Line:
    return {name: f"  {text} \t" for name, text in line.items()}


_BLEMISHES: Dict[int, Callable[[Line], Line]] = {
    3: partial(_blank, character="   "),
    8: partial(_blank, character="\t"),
    13: partial(_blank, character="\u00a0"),
    18: _around,
    # these end a line for some programs, though not for those of WMT
    23: partial(_blank, character="\r"),
    28: partial(_blank, character="\u0085"),
    33: partial(_blank, character="\u2028"),
    38: partial(_inside, character="\u200b"),
    43: partial(_inside, character="\u00ad"),
    48: partial(_inside, character="\ufeff"),
    53: partial(_inside, character="\x07"),
    60: partial(_empty, english=True),
    65: partial(_empty, english=False),
    70: lambda line: dict.fromkeys(line, ""),
    75: _too_long,
    80: partial(_lopsided, english=True),
    85: partial(_lopsided, english=False),
}
