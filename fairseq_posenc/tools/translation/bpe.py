"""Byte pair encoding by the library subword-nmt, with several processes and little memory."""

import functools
import io
from collections import Counter
from typing import Iterable, Iterator, List

from subword_nmt.learn_bpe import learn_bpe
from tqdm import tqdm

from fairseq_posenc.data.segmentation import BytePairEncoder
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import stream_lines
from fairseq_posenc.tools.translation.tokens import write_lines
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing

_COUNTED_TOGETHER = 20_000  # lines
_MARGIN = "\r\n "


def learn(inputs: Iterable[str], codes: str, operations: int, workers: int = 1) -> None:
    """Learn one set of merges from all files together: ``cat FILE… | subword-nmt learn-bpe``.

    The words of the texts are counted in several processes and held in memory, the texts are not.

    Args:
        operations: merges to learn; fewer if the text has no more pairs that occur twice.
    """
    if operations < 1:
        raise UsageError(f"cannot learn {operations} BPE operations")
    words: Counter = Counter()
    for path in inputs:
        progress = tqdm(stream_lines(path), desc=f"count {path}", unit=" lines", disable=None)
        for counts in in_order(_count, chunked(progress, _COUNTED_TOGETHER), workers):
            words.update(counts)
    merges = io.StringIO()
    if any(len(word) > 1 for word in words):
        dictionary = (f"{word} {count}\n" for word, count in words.items())
        learn_bpe(dictionary, merges, operations, is_dict=True)
    if merges.getvalue().count("\n") < 2:
        raise UsageError("cannot learn BPE: no two letters of the text are neighbours twice")
    with replacing(codes) as stream:
        stream.write(merges.getvalue())


def _count(lines: List[str]) -> Counter:
    words: Counter = Counter()
    for line in lines:
        words.update(line.strip(_MARGIN).split(" "))
    del words[""]
    return words


def apply(codes: str, source: str, destination: str, workers: int = 1) -> None:
    """Cut the words of a text into subwords: ``subword-nmt apply-bpe --glossaries '<sep>'``."""
    # loaded here, the codes are checked once, and forked processes have them
    _encoder.cache_clear()
    _encoder(codes)
    work = functools.partial(_apply, codes=codes)
    write_lines(work, _unbroken_lines(source), destination, workers, f"BPE {source}")


def _unbroken_lines(path: str) -> Iterator[str]:
    for number, line in enumerate(stream_lines(path), 1):
        if "\r" in line:
            raise UsageError(
                f"{path}, line {number}: fairseq-preprocess would split the line at its carriage "
                "return; tokenise the text first"
            )
        yield line


def _apply(lines: List[str], codes: str) -> List[str]:
    return [_encoder(codes).encode(line) for line in lines]


_encoder = functools.lru_cache(maxsize=None)(BytePairEncoder)
