"""Templates of MediaWiki that hold running text, or make some: ``{{lang|fr|mot}}`` is "mot".

By their names in the English Wikipedia, most of which other wikis know too, and a few of German,
French and Spanish ones; all others show no text. Sub- and superscripts are plain characters, as
those of HTML are: ``H{{sub|2}}O`` is "H2O".
"""

import re
from typing import Callable, Dict, List, Tuple

Positional = List[str]
Named = Dict[str, str]

_NAMED = re.compile(r"\s*([\w -]*\w)\s*=")
_PARTS = re.compile(r"\[\[|\]\]|\|")
_RANGES = {"to", "and", "or", "by", "x", "-", "–", "to(-)", "and(-)", "+/-"}


def _first(words: Positional, named: Named) -> str:
    return words[0] if words else ""


def _last(words: Positional, named: Named) -> str:
    """Return the text behind a language's code, and a transliteration's standard."""
    return words[-1] if len(words) > 1 else ""


def _joined(words: Positional, named: Named) -> str:
    return "".join(words)


def _quotation(words: Positional, named: Named) -> str:
    """Return a paragraph of its own."""
    text = named.get("text") or named.get("quote") or _first(words, named)
    return f"\n\n{text}\n\n" if text else ""


def _fraction(words: Positional, named: Named) -> str:
    """``{{frac|3}}`` is "1/3", ``{{frac|2|3}}`` "2/3", ``{{frac|1|2|3}}`` "1 2/3"."""
    return " ".join([*words[:-2], "/".join((["1"] + words)[-2:])]) if words else ""


def _measured(words: Positional, named: Named) -> str:
    """``{{convert|5|km|mi}}`` is "5 km", ``{{convert|5|to|9|km}}`` "5 to 9 km"."""
    return " ".join(words[: 4 if words[1:2] and words[1] in _RANGES else 2])


def _value(words: Positional, named: Named) -> str:
    return " ".join([*words[:1], *filter(None, [named.get("u") or named.get("ul")])])


def _before(mark: str) -> Callable[[Positional, Named], str]:
    return lambda words, named: f"{mark}{'–'.join(words)}"


def _always(text: str) -> Callable[[Positional, Named], str]:
    return lambda words, named: text


_KINDS: List[Tuple[Callable[[Positional, Named], str], str]] = [
    (_first, "nowrap|nobr|nobold|small|smaller|big|larger|em|strong|abbr|tooltip|sub|sup|ind|exp|"
     "math|mvar|sc|smallcaps|sic|not a typo|underline|var|kbd|chem2|ill|interlanguage link|"
     "citation|angbr|noitalic|nobreak"),
    (_last, "lang|langx|transl|transliteration|tlit"),
    (_quotation, "quote|blockquote|cquote|quotation|bquote|zitat|citation bloc|cita"),
    (_joined, "chem|gaps"),
    (_fraction, "frac|sfrac|fraction"),
    (_measured, "convert|cvt|unité"),
    (_value, "val"),
    (_before("c. "), "circa|c.|ca."),
    (_before("fl. "), "floruit|fl."),
    (_before("r. "), "reign|r."),
    (_before("As of "), "as of"),
    (_before("US$"), "us$|usd"),
    (_before("£"), "£|gbp"),
    (_before("€"), "€|euro"),
    (_always("'"), "'"),
    (_always("'s"), "'s"),
    (_always("–"), "ndash|en dash"),
    (_always(" – "), "snd|spnd|spaced ndash|spaced en dash"),
    (_always("—"), "mdash|em dash"),
    (_always(" "), "nbsp|spaces|thinsp|nnbsp"),
]  # fmt: skip
_TEXTS = {name: kind for kind, names in _KINDS for name in names.split("|")}


def template_text(content: str) -> str:
    """Return the text that a template shows.

    Args:
        content: what stands between its braces, without further templates.
    """
    name = content.partition("|")[0].strip().lower().replace("_", " ")
    kind = _first if name.startswith("lang-") else _TEXTS.get(name)
    if not kind:
        return ""
    words: Positional = []
    named: Named = {}
    for part in _parameters(content)[1:]:
        found = _NAMED.match(part)
        if found and not found[1].isdigit():
            named[found[1].lower()] = part[found.end() :].strip()
        else:
            words.append(part[found.end() if found else 0 :].strip())
    return kind([word for word in words if word], named)


def _parameters(content: str) -> List[str]:
    """Cut at bars, but not at those inside links."""
    cuts, depth = [-1], 0
    for mark in _PARTS.finditer(content):
        if mark[0] == "|":
            if depth == 0:
                cuts.append(mark.start())
        else:
            depth = depth + 1 if mark[0] == "[[" else max(depth - 1, 0)
    return [content[start + 1 : end] for start, end in zip(cuts, [*cuts[1:], len(content)])]
