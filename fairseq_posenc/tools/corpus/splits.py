"""The files of a corpus: training, validation and test text that share no sentence."""

import os
import re
from typing import Callable, Iterable, Iterator, List, NamedTuple, Sequence, Set

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing_all
from fairseq_posenc.tools.corpus.documents import SENTENCES, Pair, generate

SEPARATOR = "<sep>"
# wraps the pairs of a range; gets them, their number and the split's name
Progress = Callable[[Iterator[Pair], int, str], Iterable[Pair]]


class Range(NamedTuple):
    """Bounds of a sentence's length in English tokens, both included."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Read ``4-20``.

        Raises:
            UsageError: the text looks otherwise.
        """
        numbers = re.fullmatch(r"\s*(\d+)-(\d+)\s*", text)
        if not numbers:
            raise UsageError(f"a range of lengths is written like 4-20, not {text!r}")
        return cls(int(numbers.group(1)), int(numbers.group(2)))


class Split(NamedTuple):
    """One split: its name, lines for each range, and the ranges of sentence lengths."""

    name: str
    lines: int
    ranges: Sequence[Range]


def write_corpus(
    folder: str,
    seed: int,
    splits: Sequence[Split],
    *,
    join: int = 1,
    separator: str = SEPARATOR,
    progress: Progress = lambda pairs, *_: pairs,
) -> None:
    """Write ``<split>.en``, ``.de`` and ``.docs``, one sentence (or ``join`` of them) a line.

    ``.docs`` holds the number of each line's document, counted from 0 in each split. No English
    sentence of a split occurs in another one. The split named "train" may repeat its own sentences,
    the others do not; these come out the same whatever the size of "train". All files take their
    names together, once all are complete.

    Args:
        folder: made if missing.
        seed: equal seeds and splits give equal files.
        splits: what to write, the one with the most sentences last, since those before leave it
            what they do not use.
        join: so many neighbouring sentences of a document make one line.
        separator: the token between them.
        progress: wraps the sentence pairs of a range.

    Raises:
        UsageError: a number is out of range, sentences run out, or a file cannot be written.
    """
    if join < 1:
        raise UsageError(f"a line needs at least one sentence, not {join}")
    if not separator or separator.split() != [separator]:
        raise UsageError(f"the separator must be one token without blanks, not {separator!r}")
    taken: Set[str] = set()
    with replacing_all() as begin:
        for split in splits:
            streams = [
                begin(os.path.join(folder, f"{split.name}.{suffix}"))
                for suffix in ("en", "de", "docs")
            ]
            own: Set[str] = set()
            for lines in _joined(_pairs(split, seed, join, taken, own, progress), join, separator):
                for stream, line in zip(streams, lines):
                    stream.write(line + "\n")
            taken |= own


def _pairs(
    split: Split, seed: int, join: int, taken: Set[str], own: Set[str], progress: Progress
) -> Iterator[Pair]:
    """Yield the pairs of all ranges; documents hold whole lines and are counted throughout."""
    size = join * max(1, SENTENCES // join)
    documents = 0
    unique = split.name != "train"
    for low, high in split.ranges:
        excluded = taken | own if unique else taken
        pairs = generate(
            split.lines * join,
            f"{seed}/{split.name}/{low}-{high}",
            low,
            high,
            document_size=size,
            exclude=excluded,
            unique=unique,
        )
        document = documents
        for pair in progress(pairs, split.lines * join, split.name):
            own.add(pair.english)
            document = documents + pair.document
            yield pair._replace(document=document)
        documents = document + 1


def _joined(pairs: Iterable[Pair], join: int, separator: str) -> Iterator[List[str]]:
    line: List[Pair] = []
    for pair in pairs:
        line.append(pair)
        if len(line) == join:
            texts = [f" {separator} ".join(side) for side in list(zip(*line))[:2]]
            yield [*texts, str(pair.document)]
            line = []
