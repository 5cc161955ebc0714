"""A parallel English-German corpus of any size, written by a seeded synchronous grammar.

``growth`` grows one abstract ``tree`` to the length wanted, from pieces that ``grammar`` makes of
the words of ``lexicon``; ``english`` and ``german`` put it into words. ``documents`` makes runs of
sentences about the same actors, and writes the files.
"""

from recipes.corpus.documents import Range, Split, generate, write_corpus

__all__ = ["Range", "Split", "generate", "write_corpus"]
