"""From MediaWiki's markup to plain paragraphs.

As for BERT (Devlin et al. 2019, section 3.1), only passages of text stay: lists, tables, headings,
references, formulas in TeX and pictures go. Templates are dropped but for some, see templates.py.
Every step looks at the page once, so that broken markup costs no more time than whole markup.

Why no library: mwparserfromhell 0.7, with its tokeniser in C, parses 170 articles of 9,000
characters in a second of one core, this reads 1,900 (a dump has 6-20 million pages, and there are
104 of them), and which parts are running text would remain to be said.
"""

import html
import re
from typing import Callable, Collection, Dict, List, Match, Tuple

from fairseq_posenc.tools.prepare.text.templates import template_text

# whose contents are no running text
DROPPED = (
    "ref references gallery math timeline score syntaxhighlight source pre imagemap hiero "
    "graph mapframe maplink templatedata inputbox categorytree indicator section table style"
).split()
# namespaces whose links are no text, as English pages and all others may write them
HIDDEN = frozenset({"file", "image", "media", "category"})

_COMMENT = re.compile("<!--.*?(?:-->|$)", re.DOTALL)
_NOWIKI = re.compile(r"<nowiki>([^<]*(?:<(?!/?nowiki)[^<]*)*)</nowiki>", re.IGNORECASE)
_MARKUP = re.compile(r"[\[\]{}|'*#:;=_<>!~-]")
_DROPPED_TAG = re.compile(rf"<(/?)({'|'.join(DROPPED)})\b[^<>]*?(/?)>", re.IGNORECASE)
_BREAK = re.compile(r"</?(?:br|p|div|li|blockquote|center|h\d)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# a parameter, or a template without others inside
_INNERMOST = re.compile(r"\{\{\{[^{}]*\}\}\}|(?<!\{)\{\{([^{}]*)\}\}")
_DEEPEST = 10  # templates in one another; what is deeper is dropped
_BRACES = re.compile(r"(\{\{+)|(\}\}+)")
_TABLE = re.compile(r"^[ \t:*#]*(\{\|)|^[ \t]*(\|\})(?!\})", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[|\]\]")
_MEDIA_FILE = re.compile(
    r"\.(?:jpe?g|png|svg|gif|tiff?|web[mp]|og[agv]|pdf|djvu|mp3|wav)\s*$", re.I
)
_OTHER_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?:")
_WEB_LINK = re.compile(r"\[(?:(?:https?|ftps?|news|irc)://|mailto:|//)[^\s\[\]<>]*([^\[\]\n]*)\]")
_VARIANTS = re.compile(r"-\{([^{}]*)\}-")
_QUOTES = re.compile("''+")
_SWITCH = re.compile(r"__[^\W\d_]+__")
_NO_TEXT = re.compile(r"[*#:;|!]|----|=.*=\s*$")
_EMPTY_BRACKETS = re.compile(r" ?[(（][\s,;:،؛、，；：–-]*[)）]")
_LEADING_MARKS = re.compile(r"([(（])[\s,;:،؛、，；：]+")
_SPACE = re.compile(r"\s+")
_SPACE_BEFORE = re.compile(r" ([,.;:)](?:\s|$))")


def paragraphs(text: str, hidden: Collection[str] = HIDDEN) -> List[str]:
    """Return the paragraphs of running text of a page.

    Args:
        text: the page's markup.
        hidden: lower-case names of the namespaces (files, categories) whose links are no text.
    """
    text = _COMMENT.sub("", text)
    text = _NOWIKI.sub(lambda found: _MARKUP.sub(lambda mark: f"&#{ord(mark[0])};", found[1]), text)
    text = _without_elements(text)
    text = _resolve_templates(text)
    text = _without_pairs(text, _BRACES)
    text = _without_pairs(text, _TABLE)
    text = _resolve_links(text, lambda link: _link_text(link, hidden))
    text = _WEB_LINK.sub(lambda found: found[1].strip(), text)
    text = _VARIANTS.sub(_first_variant, text)
    text = _BREAK.sub("\n", text)
    text = _TAG.sub("", text)
    text = _QUOTES.sub("", text)
    text = _SWITCH.sub("", text)
    return _join_lines(text)


def _resolve_templates(text: str) -> str:
    """Replace each template by its text, the inner ones first."""
    for _ in range(_DEEPEST):
        text, found = _INNERMOST.subn(lambda match: template_text(match[1] or ""), text)
        if not found:
            break
    return text


def _without_elements(text: str) -> str:
    """Drop references, formulas and the like; of an element that is never closed, the tag alone."""
    spans: List[Tuple[int, int]] = []
    opened: Dict[str, int] = {}
    for tag in _DROPPED_TAG.finditer(text):
        closing, name, alone = tag[1], tag[2].lower(), tag[3]
        if alone:
            spans.append(tag.span())
        elif not closing:
            opened[name] = tag.start()
        elif name in opened:
            spans.append((opened.pop(name), tag.end()))
    return _cut_out(text, spans)


def _without_pairs(text: str, marks: "re.Pattern") -> str:
    """Drop what stands between opening (group 1) and closing (group 2) marks, nested ones too.

    Marks are runs of equal characters, which open and close one level each: ``{{{`` is closed by
    ``}}}``. What is never closed is dropped to the end of its line.
    """
    spans: List[Tuple[int, int]] = []
    opened: List[List[int]] = []
    for mark in marks.finditer(text):
        group = 1 if mark[1] else 2
        if group == 1:
            opened.append([mark.start(1), mark.end(1) - mark.start(1)])
            continue
        left = mark.end(2) - mark.start(2)
        if not opened:
            spans.append((mark.start(2), mark.end(2)))
        while left and opened:
            start, width = opened.pop()
            closed = min(width, left)
            left -= closed
            if closed < width:
                # one brace that remains opens nothing
                if width - closed > 1:
                    opened.append([start, width - closed])
                start += width - closed
            spans.append((start, mark.end(2)))
    for start, width in opened:
        end = text.find("\n", start + width)
        spans.append((start, len(text) if end < 0 else end))
    return _cut_out(text, spans)


def _cut_out(text: str, spans: List[Tuple[int, int]]) -> str:
    kept, done = [], 0
    for start, end in sorted(spans):
        if start > done:
            kept.append(text[done:start])
        done = max(done, end)
    return "".join(kept) + text[done:]


def _resolve_links(text: str, text_of: Callable[[str], str]) -> str:
    """Replace each ``[[…]]`` by ``text_of`` its contents, the inner ones first."""
    levels: List[List[str]] = [[]]
    done = 0
    for mark in _BRACKETS.finditer(text):
        levels[-1].append(text[done : mark.start()])
        done = mark.end()
        if mark[0] == "[[":
            levels.append([])
        elif len(levels) > 1:
            inner = "".join(levels.pop())
            levels[-1].append(text_of(inner))
    return "".join("".join(level) for level in levels) + text[done:]


def _link_text(link: str, hidden: Collection[str]) -> str:
    target, _, label = link.partition("|")
    target = target.strip()
    namespace, colon, _ = target.partition(":")
    if colon and namespace:
        if namespace.strip().lower().replace("_", " ") in hidden or _MEDIA_FILE.search(target):
            return ""
        if not label and _OTHER_LANGUAGE.match(target):
            return ""
    return label.strip() or target.lstrip(":").replace("_", " ")


def _first_variant(found: Match) -> str:
    """Chinese pages write ``-{zh-hans:…; zh-hant:…}-``; flags such as ``H|`` show nothing."""
    flag, bar, _ = found[1].partition("|")
    if bar:
        return "" if flag.strip() in ("H", "T", "A", "-") else found[1].rpartition("|")[2]
    first = found[1].partition(";")[0]
    return first.rpartition(":")[2].strip() if ":" in first else found[1]


def _join_lines(text: str) -> List[str]:
    """Lines that follow one another are one paragraph; lists, headings and rests of tables go."""
    found: List[str] = []
    lines: List[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip() and not _NO_TEXT.match(line):
            lines.append(line)
            continue
        if lines:
            paragraph = _tidy(" ".join(lines))
            if any(character.isalpha() for character in paragraph):
                found.append(paragraph)
        lines = []
    return found


def _tidy(text: str) -> str:
    text = html.unescape(text).replace("\u00ad", "").replace("\u200b", "")
    text = _EMPTY_BRACKETS.sub("", _SPACE.sub(" ", text))
    text = _LEADING_MARKS.sub(r"\1", text)
    return _SPACE_BEFORE.sub(r"\1", text).strip()
