"""Tokenising files as Moses does, in several processes."""

import functools
from typing import Callable, Iterable, List

from tqdm import tqdm

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.files import stream_lines
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing


def tokenise_file(source: str, destination: str, moses: Moses, workers: int = 1) -> None:
    """Tokenise a text file, plain or compressed, into another, line by line.

    Raises:
        UsageError: the input is missing, empty or no UTF-8, or the output cannot be written.
    """
    work = functools.partial(tokenise_lines, moses=moses)
    write_lines(work, stream_lines(source), destination, workers, f"tokenise {source}")


def write_lines(
    work: Callable[[List[str]], List[str]],
    lines: Iterable[str],
    destination: str,
    workers: int,
    title: str,
) -> None:
    """Write what ``work`` makes of lines, in their order, and show how far it is."""
    progress = tqdm(desc=title, unit=" lines", disable=None)
    with replacing(destination) as stream, progress:
        for done in in_order(work, chunked(lines), workers):
            stream.writelines(f"{line}\n" for line in done)
            progress.update(len(done))
