"""Checks of the values of a recipe's options, by the word for them in its help."""

import math
import re
from typing import Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number

_NUMBERS = "X", "S", "SHARE"  # words of options that have a number
_WHOLE_NUMBERS = "--seeds", "--lengths", "--sweep"  # lists of them


def check_value(name: str, form: str, value: str) -> None:
    """Raise a UsageError for a value that is not of the form in the help."""
    # an empty folder to read from is none: what is in it is downloaded
    if not value.strip() and (form != "DIR" or name == "--run-dir"):
        raise UsageError(f"{name} needs a value, and has an empty one; leave it out")
    if value.startswith("--") and form != "OPTIONS":
        raise UsageError(f"{name} needs a value; a name that begins with -- is written ./--name")
    least = "" if name == "--seeds" else " above 0"
    for number in [value] if form == "N" else value.split(",") if name in _WHOLE_NUMBERS else []:
        if not re.fullmatch("0|[1-9][0-9]*", number) or (number == "0" and least):
            raise UsageError(f"{number} is not a whole number{least} ({name}; see --help)")
    if form in _NUMBERS or name == "--lrs":
        for number in value.split(","):
            _check_number(name, number)
    if "|" in form and value not in form.split("|"):
        *most, last = form.split("|")
        raise UsageError(f"{name} is {', '.join(most)} or {last}, not {value}")
    if name in ("--bins", "--edges"):
        edges = value.split(",")
        edges = edges[:-1] if name == "--bins" and edges[-1] == "auto" else edges
        numbers = [int(edge) if edge.isdecimal() else 0 for edge in edges]
        if numbers != sorted({*numbers} - {0}):
            raise UsageError(f"{name} takes rising whole numbers such as 10,20, not {value}")
    if form == "LIST" and name not in ("--encodings", "--rows", "--url"):
        no_repeats(name, value.split(","))


def _check_number(name: str, text: str) -> None:
    try:
        number = parse_number(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (number == 0 and name not in ("--lr", "--lrs"))):
        least = "above" if name in ("--lr", "--lrs") else "of at least"
        raise UsageError(f"{text} is not a number {least} 0 ({name}; see --help)")


def no_repeats(name: str, words: Sequence[str]) -> None:
    """Raise a UsageError where a word is there twice: each has a folder of its own."""
    twice = sorted({word for word in words if words.count(word) > 1})
    if twice:
        raise UsageError(f"{name} has {','.join(twice)} more than once: they would share a folder")
