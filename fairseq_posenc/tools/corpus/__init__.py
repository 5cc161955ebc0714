"""A parallel English-German corpus of any size, written by a seeded synchronous grammar.

One abstract tree (``tree``) is grown to the length wanted (``growth``: ``ornaments`` and
``additions`` to a ``draft``, out of the pieces that ``grammar`` makes from the words of
``lexicon``), then put into words twice (``english``, ``german``). ``documents`` makes runs of
sentences about the same actors, and ``splits`` writes the files.
"""

from fairseq_posenc.tools.corpus.documents import SHORTEST, Pair, generate
from fairseq_posenc.tools.corpus.english import count_tokens
from fairseq_posenc.tools.corpus.splits import SEPARATOR, Range, Split, write_corpus

__all__ = [
    "SEPARATOR",
    "SHORTEST",
    "Pair",
    "Range",
    "Split",
    "count_tokens",
    "generate",
    "write_corpus",
]
