"""Tokenising files as Moses does, in several processes."""

import functools
from typing import Callable, Iterable, List, Optional

from tqdm import tqdm

from fairseq_posenc.data.segmentation import Moses
from fairseq_posenc.files import stream_lines
from fairseq_posenc.tools.translation import perl
from fairseq_posenc.tools.workers import map_lists
from fairseq_posenc.tools.writing import replacing


def tokenise_file(
    source: str, destination: str, moses: Moses, workers: int = 1, checkout: Optional[str] = None
) -> None:
    """Tokenise a text file, plain or compressed, into another, line by line."""
    perl.check_moses(checkout)
    work = functools.partial(perl.tokenise, moses=moses, checkout=checkout)
    write_lines(work, stream_lines(source), destination, workers, f"tokenise {source}")


def write_lines(
    work: Callable[[List[str]], List[str]],
    lines: Iterable[str],
    destination: str,
    workers: int,
    title: str,
) -> None:
    """Write what ``work`` makes of lines, in their order, and show how far it is."""
    progress = tqdm(lines, desc=title, unit=" lines", disable=None)
    with replacing(destination) as stream:
        stream.writelines(f"{line}\n" for line in map_lists(work, progress, workers))
