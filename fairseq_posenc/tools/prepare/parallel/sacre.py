"""SacreBLEU's test sets, read by sacreBLEU itself from archives that are there; no network."""

import copy
import os
from typing import List, Tuple

from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import decode_lines
from fairseq_posenc.tools.prepare.downloads.archives import unpack
from fairseq_posenc.tools.prepare.parallel.pairs import Pair, aligned
from fairseq_posenc.tools.prepare.parallel.sources import of_test_set


def read_test_set(name: str, languages: Tuple[str, str], raw: str, cache: str) -> List[Pair]:
    """Return sources and references of a test set, exactly as ``sacrebleu --echo`` prints them.

    Entities such as ``&amp;`` therefore stay as they are in the SGM files: so the papers' scripts
    leave them to the tokeniser, and sacreBLEU decodes them when it scores.

    Args:
        name: sacreBLEU's name of the set.
        languages: of source and target.
        raw: folder of the downloads.
        cache: an empty folder of its own, in place of ``~/.sacrebleu``.

    Raises:
        UsageError: an archive is missing, damaged or lacks a file, or a file is empty, holds
            invalid UTF-8, or has fewer sentences than the other.
    """
    dataset, pair = copy.copy(DATASETS[name]), "-".join(languages)
    # sacreBLEU joins relative folders twice
    cache = os.path.abspath(cache)
    # sacreBLEU has no other way to a folder of one's own once it is imported
    dataset._outdir, dataset._rawdir = cache, os.path.join(cache, "raw")
    dataset.maybe_download = lambda: None  # type: ignore[method-assign]
    archives = [os.path.join(raw, download.name) for download in of_test_set(name)]
    for archive in archives:
        unpack(archive, dataset._rawdir)
    for member in dataset.langpairs[pair]:
        _check(os.path.join(dataset._rawdir, member), member, archives[0])
    sides = dataset.source(pair), (line.rstrip("\n") for line, *_ in dataset.references(pair))
    first, second = (f"{archives[0]}: {member}" for member in dataset.langpairs[pair])
    pairs = list(aligned(*sides, (first, second)))
    if not pairs:
        raise UsageError(f"{first} holds no segments")
    return pairs


def _check(path: str, member: str, archive: str) -> None:
    if not os.path.exists(path):
        raise UsageError(f"{archive} holds no {member}")
    with open(path, "rb") as stream:
        for _ in decode_lines(stream, f"{archive}: {member}"):
            pass
