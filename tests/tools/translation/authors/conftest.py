"""The authors' preparation of parallel text, slowly: what Moses' Perl scripts do, rule by rule.

They are normalize-punctuation, remove-non-printing-char, tokenizer, clean-corpus-n and lowercase as
of November 2019; ADMIN's and fairseq's scripts call them. ``like`` names the departures of ours to
follow, of those that test_authors_steps.py lists.
"""

import functools
from types import SimpleNamespace

import pytest
import regex
from sacremoses.corpus import NonbreakingPrefixes

_DOT = "\ufdd0"  # of several in a row


def _compiled(rules):
    return [(regex.compile(old, regex.V1), new) for old, new in rules]


def _apply(rules, text):
    for old, new in rules:
        text = old.sub(new, text)
    return text


@functools.lru_cache(maxsize=None)
def _normalising(language, like):
    digit = r"(\p{Nd})" if "digits" in like else "([0-9])"
    space = "" if "guillemets" in like else " "
    rules = [
        ("\r", ""), (r"\(", " ("), (r"\)", ") "), (" +", " "), (r"\) ([.!:?;,])", r")\1"),
        (r"\( ", "("), (r" \)", ")"), (f"{digit} %", r"\1%"), (" ([:;])", r"\1"),
        ("`", "'"), ("''", ' " '), ("[„“”]", '"'), ("–", "-"), (" *— *", " - "), ("´", "'"),
        ("([a-zA-Z])‘([a-zA-Z])", r"\1'\2"), ("([a-zA-Z])’([a-zA-Z])", r"\1'\2"), ("[‘‚]", "'"),
        ("’", "'" if "quote" in like else '"'), ("''", '"'), ("…", "..."),
        ("\u00a0«\u00a0", f'{space}"'), ("«\u00a0?", '"'),
        ("\u00a0»\u00a0", f'"{space}'), ("\u00a0?»", '"'),
        ("\u00a0([%:?!;])", r"\1"), ("\u00a0(ºC|cm)", r" \1"), ("(nº|,)\u00a0", r"\1 "),
        (" +", " "),
    ]  # fmt: skip
    if language == "en":
        rules.append((r'"([,.]+)', r'\1"'))
    elif language != "cs":
        rules += [(',"', '",'), (r'(\.+)"([ \t-\r]*[^<])', r'"\1\2')]
    rules.append((f"{digit}\u00a0{digit}", r"\1.\2" if language == "en" else r"\1,\2"))
    return _compiled(rules)


def normalise(line, language, like):
    """normalize-punctuation.perl LANGUAGE; it sees the line feed, and bytes: digits are ASCII."""
    if "blanks" in like:
        line = regex.sub(r"\s+", " ", line)
    line = line.strip() if "line end" in like else f"{line}\n"
    return _apply(_normalising(language, like), line).rstrip("\n")


def _letter(like):
    letters = r"\p{Alphabetic}" + (r"\u093c\u094d" if "virama" in like else "")
    return rf"[[{letters}]--[\p{{Han}}\p{{Hangul}}]]" if "CJK" in like else f"[{letters}]"


@functools.lru_cache(maxsize=None)
def _tokenising(language, aggressive, like):
    alpha = _letter(like)
    alnum = rf"[{alpha}\p{{Nd}}]"
    rules = [
        ("^\ufeff", "" if "mark" in like else "\ufeff"),
        ("[\x1c-\x1f]", " " if "separators" in like else ""),
        (r"\p{White_Space}+", " "), ("[\0-\x1f]", ""), (" +", " "), ("^ | $", ""),
        (rf"((?!{alnum})[^ .'`,-])", r" \1 "),
        *([(f"({alnum})-(?={alnum})", r"\1 @-@ ")] if aggressive else []),
        (r"\.{2,}", lambda dots: f" {_DOT * len(dots.group())} "),
        (r"(\P{N}),", r"\1 , "), (r",(\P{N})", r" , \1"), (r"(\p{N}),$", r"\1 ,"),
    ]  # fmt: skip
    if language not in ("en", "fr"):
        return _compiled([*rules, ("'", " ' ")])
    letter, other = f"({alpha})", f"((?!{alpha}).)"
    before = rf"((?!{alpha}|\p{{N}}).)" if language == "en" else other
    rules += [(f"{other}'{other}", r"\1 ' \2"), (f"{before}'{letter}", r"\1 ' \2")]
    rules += [(f"{letter}'{other}", r"\1 ' \2")]
    rules += [(f"{letter}'{letter}", r"\1 '\2" if language == "en" else r"\1' \2")]
    return _compiled([*rules, (r"(\p{N})'s", r"\1 's")] if language == "en" else rules)


@functools.lru_cache(maxsize=None)
def _abbreviations(language):
    return {entry.strip() for entry in NonbreakingPrefixes().words(language)}


def _full_stops(words, language, like):
    listed = _abbreviations(language)
    for word, following in zip(words, [*words[1:], None]):
        stem, stop = word[:-1], word[-1:]
        keep = (
            ("." in stem and regex.search(_letter(like), stem, regex.V1))
            or stem in listed
            or regex.match(r"\p{Lowercase}", following or "")
            or (f"{stem} #NUMERIC_ONLY#" in listed and regex.match("[0-9]", following or ""))
        )
        if following is None and "last word" not in like:
            keep = False
        yield f"{stem} ." if stem and stop == "." and not keep else word


def tokenise(line, language, aggressive, like):
    """tokenizer.perl -l LANGUAGE, with -a if aggressive; surplus spaces are left out."""
    words = _apply(_tokenising(language, aggressive, like), line).split()
    text = " ".join(_full_stops(words, language, like))
    text = regex.sub(r"\.'$", " . '", text).replace(_DOT, ".")
    for old, new in zip("&|<>'\"[]", "amp #124 lt gt apos quot #91 #93".split()):
        text = text.replace(old, f"&{new};")
    return " ".join(text.split())


@functools.lru_cache(maxsize=None)
def prepare(line, language, like=frozenset(), normalised=False, aggressive=False, lower=False):
    """Return the tokens of a line, separated by single spaces."""
    if normalised:
        # remove-non-printing-char.perl comes second
        line = regex.sub(r"\p{C}", " ", normalise(line, language, like))
    line = tokenise(line, language, aggressive, like)
    if lower and "sigma" not in like:
        # lowercase.perl
        return "".join(map(str.lower, line))
    return line.lower() if lower else line


def clean(pairs, longest, ratio):
    """clean-corpus-n.perl -ratio RATIO, with 1 to LONGEST tokens."""
    for pair in pairs:
        short, long = sorted(len(line.split()) for line in pair)
        too_long = long > longest or regex.search(r"\S{1001}", " ".join(pair))
        if short and not too_long and long / short <= ratio:
            yield pair


@pytest.fixture(scope="session")
def moses():
    """The functions ``prepare`` and ``clean``."""
    return SimpleNamespace(prepare=prepare, clean=clean)
