"""The files that a corpus is made of: what to download, and sacreBLEU's test sets in archives."""

import copy
import os
import tempfile
import urllib.parse
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import decode_lines
from fairseq_posenc.tools.prepare.downloads.archives import unpack
from fairseq_posenc.tools.prepare.parallel.corpora import IWSLT14, Corpus, Part, TestText
from fairseq_posenc.tools.prepare.parallel.pairs import (
    Pair,
    aligned,
    pairs_of_archive,
    pairs_of_tables,
)

# the name that fairseq's example gives it, and the MD5 that one who loaded it has published
_KNOWN = {IWSLT14: ("de-en.tgz", "10936dfdf616504ddbd844e91b94ef4a")}


class Download(NamedTuple):
    """A file to download.

    Attributes:
        url: where it is.
        md5: None where no checksum is published.
        name: to save it under; unlike the last part of the address, no two have the same.
    """

    url: str
    md5: Optional[str]
    name: str


def saved_name(url: str) -> str:
    """Return the path of an address with dots, ``wmt13.test.tgz``, or the name it is known by."""
    if url in _KNOWN:
        return _KNOWN[url][0]
    return urllib.parse.urlsplit(url).path.strip("/").replace("/", ".")


def test_sets(corpus: Corpus) -> Dict[str, TestText]:
    """Return the test sets and, if it is one of sacreBLEU's, the validation set, as ``valid``."""
    return {**({"valid": corpus.valid} if corpus.valid else {}), **corpus.tests}


def of_test_set(text: TestText) -> List[Download]:
    """Return the files of a test set, by its name in sacreBLEU or its parts."""
    if not isinstance(text, str):
        return _of_parts(text)
    dataset = DATASETS[text]
    urls = dataset.data or []
    sums: Sequence[Optional[str]] = dataset.md5 or [None] * len(urls)
    return [Download(url, md5, saved_name(url)) for url, md5 in zip(urls, sums)]


def downloads(corpus: Corpus) -> List[Download]:
    """Return what must be downloaded for a corpus, each file once."""
    found = _of_parts(corpus.train)
    for text in test_sets(corpus).values():
        found += of_test_set(text)
    return list(dict.fromkeys(found))


def _of_parts(parts: Sequence[Part]) -> List[Download]:
    known = ((part.url, _KNOWN.get(part.url, ("", None))[1]) for part in parts)
    return [Download(url, md5, saved_name(url)) for url, md5 in known]


def pairs_of_part(part: Part, languages: Tuple[str, str], raw: str) -> Iterator[Pair]:
    """Yield the sentence pairs of a part of a corpus, from its archive in the folder of downloads.

    Raises:
        UsageError: see :func:`~fairseq_posenc.tools.prepare.parallel.pairs.pairs_of_archive`.
    """
    archive = os.path.join(raw, saved_name(part.url))
    if part.columns:
        return pairs_of_tables(archive, part.stem, [part.columns[each] for each in languages])
    source, target = (f"{part.stem}.{language}{part.suffix}" for language in languages)
    return pairs_of_archive(archive, (source, target), part.sentences)


def check_folder(corpus: Corpus, raw: str) -> None:
    """Check that all files are in the folder of downloads.

    Raises:
        UsageError: some are not there.
    """
    missing = [each for each in downloads(corpus) if not os.path.exists(f"{raw}/{each.name}")]
    if missing:
        more = f", and {len(missing) - 1} more files" if missing[1:] else ""
        raise UsageError(f"{raw} lacks {missing[0].name}, which is {missing[0].url}{more}")


def read_test_set(text: TestText, languages: Tuple[str, str], raw: str) -> List[Pair]:
    """Return sources and references of a test set.

    A set of sacreBLEU's is exactly as ``sacrebleu --echo`` prints it: sacreBLEU itself reads
    the archives in the folder of downloads; nothing is loaded. Entities such
    as ``&amp;`` stay as they are in the SGM files: so the papers' scripts leave them to the
    tokeniser, and sacreBLEU decodes them when it scores.

    Args:
        text: sacreBLEU's name of the set, or its parts.
        languages: of source and target.
        raw: folder of the downloads.

    Raises:
        UsageError: an archive is missing, damaged or lacks a file, or a file is empty, holds
            invalid UTF-8, or has fewer sentences than the other.
    """
    if not isinstance(text, str):
        return [pair for part in text for pair in _all_of(part, languages, raw)]
    dataset, pair = copy.copy(DATASETS[text]), "-".join(languages)
    archives = [os.path.join(raw, download.name) for download in of_test_set(text)]
    first, second = (f"{archives[0]}: {member}" for member in dataset.langpairs[pair])
    with tempfile.TemporaryDirectory(prefix="sacrebleu") as cache:
        # once it is imported, sacreBLEU has no other way to another folder than ~/.sacrebleu
        dataset._outdir, dataset._rawdir = cache, os.path.join(cache, "raw")
        dataset.maybe_download = lambda: None  # type: ignore[method-assign]
        for archive in archives:
            unpack(archive, dataset._rawdir)
        for member, title in zip(dataset.langpairs[pair], (first, second)):
            path = os.path.join(dataset._rawdir, member)
            if not os.path.exists(path):
                raise UsageError(f"{archives[0]} holds no {member}")
            with open(path, "rb") as stream:
                for _ in decode_lines(stream, title):
                    pass
        sides = dataset.source(pair), (line.rstrip("\n") for line, *_ in dataset.references(pair))
        pairs = list(aligned(*sides, (first, second)))
    if not pairs:
        raise UsageError(f"{first} holds no segments")
    return pairs


def _all_of(part: Part, languages: Tuple[str, str], raw: str) -> List[Pair]:
    pairs = list(pairs_of_part(part, languages, raw))
    if not pairs:
        raise UsageError(f"{part.stem} in {saved_name(part.url)} holds no segments")
    return pairs
