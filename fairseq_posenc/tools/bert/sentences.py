"""Cutting text into sentences by punctuation, for languages that mark the end of a sentence."""

import re
from typing import List

_CLOSING = r"""["'”’»)\]]*"""
# Latin, Greek, Arabic, Urdu, Devanagari (2), Armenian and Ethiopic marks, before a space
_SPACED = re.compile(rf"([.!?…;\u061f\u06d4\u0964\u0965\u0589\u1362]{_CLOSING})\s+")
_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]\s?;$")
# Chinese and Japanese marks need no space
_FULL_WIDTH = re.compile(r"([。！？｡]+[」』”’）】]*)(?=[^。！？｡」』”’）】])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘«])"
    # an initial (J.), letters with full stops between (e.g., U.S., z.B.), an ordinal number (3.)
    r"(?:[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}|\d{1,2}|"
    r"mrs?|ms|mx|dr|prof|st|jr|sr|vs|ca|cf|no|nr|vol|fig|pp|col|gen|gov|sen|rep|sgt|lt|capt|rev|hon|"
    r"messrs|mme|mlle|mm|sra?|srta|dra|hr|fr|bzw|usw|evtl|inkl|abb|bd|inc|ltd|co|corp|dept|approx)"
    r"\.$",
    re.IGNORECASE,
)


def split_sentences(text: str) -> List[str]:
    """Return the sentences of a text, without space around them.

    A sentence ends at ``.``, ``!``, ``?`` or such a mark of another script, with quotation marks
    and brackets that close behind it, if the next word does not begin with a lower-case letter; not
    at abbreviations. Chinese and Japanese marks end a sentence without a space. A script without
    any (Thai) is not cut. Splits depend on the text alone; the language need not be known.
    """
    sentences: List[str] = []
    for part in _FULL_WIDTH.sub(r"\1\n", text).split("\n"):
        sentences += _split_at_spaces(part.strip())
    return [sentence for sentence in sentences if sentence]


def _split_at_spaces(text: str) -> List[str]:
    sentences, start = [], 0
    for mark in _SPACED.finditer(text):
        before, after = text[start : mark.end(1)], text[mark.end() :]
        if _ends(before, after):
            sentences.append(before)
            start = mark.end()
    return [*sentences, text[start:]]


def _ends(before: str, after: str) -> bool:
    if before.endswith(";"):
        # the Greek question mark looks like a semicolon
        return bool(_GREEK.search(before))
    first = re.search(r"[^\W_]|[.!?…]", after)
    if first is None or first.group().islower() or not first.group().isalnum():
        return False
    return not _ABBREVIATION.search(before)
