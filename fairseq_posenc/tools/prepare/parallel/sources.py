"""The files that a corpus is made of, and how they lie in the folder of downloads."""

import os
import urllib.parse
from typing import Dict, List, NamedTuple, Optional, Sequence

from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.parallel.corpora import Corpus


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
    """Return the path of an address with dots, ``wmt13.test.tgz``."""
    return urllib.parse.urlsplit(url).path.strip("/").replace("/", ".")


def test_sets(corpus: Corpus) -> Dict[str, str]:
    """Return the test sets and, if it is one of sacreBLEU's, the validation set, as ``valid``."""
    return {**({"valid": corpus.valid} if corpus.valid else {}), **corpus.tests}


def of_test_set(name: str) -> List[Download]:
    """Return the files of a test set, by its name in sacreBLEU."""
    dataset = DATASETS[name]
    urls = dataset.data or []
    sums: Sequence[Optional[str]] = dataset.md5 or [None] * len(urls)
    return [Download(url, md5, saved_name(url)) for url, md5 in zip(urls, sums)]


def downloads(corpus: Corpus) -> List[Download]:
    """Return what must be downloaded for a corpus, each file once."""
    found = [Download(part.url, None, saved_name(part.url)) for part in corpus.train]
    for name in test_sets(corpus).values():
        found += of_test_set(name)
    return list(dict.fromkeys(found))


def check_folder(corpus: Corpus, raw: str) -> None:
    """Check that all files are in the folder of downloads.

    Raises:
        UsageError: some are not there.
    """
    missing = [each for each in downloads(corpus) if not os.path.exists(f"{raw}/{each.name}")]
    if missing:
        more = f", and {len(missing) - 1} more files" if missing[1:] else ""
        raise UsageError(f"{raw} lacks {missing[0].name}, which is {missing[0].url}{more}")
