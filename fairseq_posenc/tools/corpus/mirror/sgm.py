"""Test sets as WMT writes them: SGM, one sentence a line, source and references in files apart."""

import os
from typing import Iterator, List

from fairseq_posenc.tools.corpus.mirror.blemishes import Line
from fairseq_posenc.tools.corpus.mirror.layout import Passage

_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))


def sgm(member: str, passage: Passage, documents: List[List[Line]]) -> Iterator[str]:
    """Yield the lines of one language's file, whose name ``member`` begins with that of the set.

    The first sentence of a document is its headline; sentences are numbered in each document.
    """
    setid = os.path.basename(member).split("-")[0]
    target = "" if passage.kind == "src" else f' trglang="{passage.language}"'
    yield f'<{passage.kind}set setid="{setid}" srclang="any"{target}>'
    for number, document in enumerate(documents, 1):
        origin = "en" if number % 2 else "de"
        docid = f"{setid}.{number}"
        yield f'<doc sysid="ref" docid="{docid}" genre="news" origlang="{origin}">'
        segments = [
            f'<seg id="{place}"> {_escaped(line[passage.language])} </seg>'
            for place, line in enumerate(document, 1)
        ]
        yield from ["<hl>", segments[0], "</hl>"]
        yield from ["<p>", *segments[1:], "</p>"]
        yield "</doc>"
    yield f"</{passage.kind}set>"


def _escaped(text: str) -> str:
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text
