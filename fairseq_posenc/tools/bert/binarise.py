"""From lines of text to fairseq's binary data, with several processes."""

import functools
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.sentences import split_sentences
from fairseq_posenc.tools.workers import in_order
from fairseq_posenc.tools.writing import replacing_files

_CHUNK_CHARACTERS = 200_000


class Language(NamedTuple):
    """Stands in a stream of lines before those of a language."""

    name: str


class TextChunk(NamedTuple):
    """Lines of one language; None where a document ends."""

    language: str
    lines: List[Optional[str]]


@dataclass
class Totals:
    """What a split holds; tokens without ends of sentences and documents.

    ``tokens_of`` and ``unknown_of`` are by language, where that is known.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    tokens_of: Counter = field(default_factory=Counter)
    unknown_of: Counter = field(default_factory=Counter)

    def unknown_by_language(self) -> List[str]:
        """Return a line per language, those with the largest shares of unknown tokens first."""
        shares = {
            name: 100 * self.unknown_of[name] / max(1, tokens)
            for name, tokens in self.tokens_of.items()
        }
        return [
            f"{name}: {share:.2f} % of {self.tokens_of[name]:,} tokens unknown"
            for name, share in sorted(shares.items(), key=lambda item: -item[1])
        ]

    def __str__(self) -> str:
        share = 100 * self.unknown / max(1, self.tokens)
        return (
            f"{self.documents:,} documents, {self.sentences:,} sentences, {self.tokens:,} tokens, "
            f"{share:.2f} % unknown"
        )


def binarise(
    lines: Iterable[Union[str, Language, None]],
    folder: str,
    split: str,
    *,
    workers: int = 1,
    split_lines: bool = False,
    progress: Callable[[int], object] = lambda lines: None,
) -> Totals:
    """Write ``<split>.bin`` and ``<split>.idx`` into a folder that holds the subword model.

    An item is a sentence and ends with ``</s>``; after a document there is an item of ``</s>``
    alone. The result is the same for any number of processes. Files get their names when they are
    complete, the index last.

    Args:
        lines: lines, None where a document ends (``documents.py``), and before those of each
            language, if tokens are to be counted by language, a :class:`Language`.
        split_lines: whether to split lines into sentences; otherwise a line is a sentence.
        progress: called with the number of lines that were done since the last call.
    """
    dictionary = subwords.load_dictionary(folder)
    # each process loads the models by itself, as they are in the folder now
    _models.cache_clear()
    encode = functools.partial(_encode, folder=folder, split_lines=split_lines)
    totals = Totals()
    ended = True
    index = f"{split}.idx"
    with replacing_files(folder, last=index) as staging:
        builder = indexed_dataset.make_builder(
            os.path.join(staging, f"{split}.bin"), impl="mmap", vocab_size=len(dictionary)
        )
        for language, tokens, sizes, count in in_order(encode, _chunks(lines), workers):
            unknown = int((tokens == dictionary.unk()).sum())
            totals.unknown += unknown
            if language:
                totals.tokens_of[language] += len(tokens) - len(sizes)
                totals.unknown_of[language] += unknown
            for item in torch.from_numpy(tokens).split(sizes.tolist()):
                if len(item) > 1 or not ended:
                    builder.add_item(item)
                    totals.sentences += len(item) > 1
                    totals.documents += len(item) == 1
                    totals.tokens += len(item) - 1
                ended = len(item) == 1
            progress(count)
        if not totals.tokens:
            raise UsageError(f"the text for '{split}' has no words that the vocabulary could cut")
        builder.finalize(os.path.join(staging, index))
    return totals


def _chunks(lines: Iterable[Union[str, Language, None]]) -> Iterator[TextChunk]:
    chunk, characters = TextChunk("", []), 0
    for line in lines:
        if chunk.lines and (isinstance(line, Language) or characters >= _CHUNK_CHARACTERS):
            yield chunk
            chunk, characters = TextChunk(chunk.language, []), 0
        if isinstance(line, Language):
            chunk = TextChunk(line.name, [])
        else:
            chunk.lines.append(line)
            characters += len(line or "")
    if chunk.lines:
        yield chunk


class _Encoded(NamedTuple):
    language: str
    tokens: np.ndarray  # all items one after the other, int32
    sizes: np.ndarray  # of the items; 1 is the end of a document
    lines: int


@functools.lru_cache(maxsize=1)
def _models(folder: str) -> Tuple[subwords.Subwords, Dictionary]:
    return subwords.load(folder), subwords.load_dictionary(folder)


def _encode(chunk: TextChunk, folder: str, split_lines: bool) -> _Encoded:
    model, dictionary = _models(folder)
    indices, unknown, end = dictionary.indices, dictionary.unk(), dictionary.eos()
    tokens: List[int] = []
    sizes: List[int] = []
    for line in chunk.lines:
        if line is None:
            tokens.append(end)
            sizes.append(1)
            continue
        for sentence in split_sentences(line) if split_lines else (line,):
            subwords = model.encode(sentence)
            # an item without pieces would mean the end of a document
            if subwords:
                tokens += [indices.get(piece, unknown) for piece in subwords]
                tokens.append(end)
                sizes.append(len(subwords) + 1)
    lines = len(chunk.lines) - chunk.lines.count(None)
    return _Encoded(chunk.language, np.array(tokens, np.int32), np.array(sizes, np.int32), lines)
