"""From raw text to tokens, with several processes."""

import functools
import multiprocessing

from sacremoses import MosesPunctNormalizer, MosesTokenizer

from fairseq_posenc.files import read_lines, replacing


@functools.lru_cache(maxsize=None)
def _tools(language: str):
    return MosesPunctNormalizer(language), MosesTokenizer(language)


def tokenise_line(line: str, language: str) -> str:
    """Return a sentence's tokens, separated by spaces; special characters are not escaped."""
    normaliser, tokeniser = _tools(language)
    return tokeniser.tokenize(normaliser.normalize(line.strip()), return_str=True, escape=False)


def tokenise(source: str, destination: str, language: str, workers: int = 1) -> None:
    """Tokenise a text file, plain or ``.gz``, into another, line by line.

    Raises:
        UsageError: the input is missing, empty or no UTF-8, or the output cannot be written.
    """
    lines = read_lines(source)
    work = functools.partial(tokenise_line, language=language)
    with replacing(destination) as stream, multiprocessing.Pool(workers) as pool:
        for tokens in pool.imap(work, lines, chunksize=1000):
            stream.write(tokens + "\n")
