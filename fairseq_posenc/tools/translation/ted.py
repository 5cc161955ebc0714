"""Sentences of the TED talks as IWSLT gives them: between tags in training text, in XML in tests.

Both follow fairseq's ``examples/translation/prepare-iwslt14.sh`` line by line; nothing is parsed as
XML, so that entities stay as they are, as there.
"""

import re
from typing import Iterable, Iterator

_LINES_TO_DROP = ("<url>", "<talkid>", "<keywords>")
_TAGS = re.compile("</?(?:title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*|\s*</seg>\s*')


def training_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of ``train.tags.<pair>.<language>`` but for addresses, numbers and keywords.

    Titles and descriptions are sentences like any other, without their tags.
    """
    for line in lines:
        if not any(tag in line for tag in _LINES_TO_DROP):
            yield _TAGS.sub("", line)


def segments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the segments of ``IWSLT14.TED….xml``, a line each, with ’ made '."""
    for line in lines:
        if "<seg id" in line:
            yield _SEGMENT.sub("", line).replace("’", "'")
