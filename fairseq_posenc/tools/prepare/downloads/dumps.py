"""Finding and fetching the dumps of Wikipedia in many languages."""

import os
import re
from typing import List, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.prepare.downloads.archives import Checksum
from fairseq_posenc.tools.prepare.downloads.download import (
    LARGEST_LISTING,
    RETRIES,
    RetryPolicy,
    download,
)

WIKIMEDIA = "https://dumps.wikimedia.org"


def find_dumps(folder: str, language: str) -> List[str]:
    """Return a language's newest dump in a folder, whole or in parts, in alphabetic order.

    Where both kinds are there, only those called ``multistream`` count: they hold the same, and
    several processes can unpack them.

    Raises:
        UsageError: there are none.
    """
    pattern = rf"{_wiki(language)}-(\w+)-pages-articles.*\.xml(-p\d+p\d+)?(\.bz2|\.gz)?"
    try:
        found = [re.fullmatch(pattern, name) for name in os.listdir(folder)]
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from error
    dumps = sorted((match[1], match[0]) for match in found if match)
    if not dumps:
        raise UsageError(f"{folder} holds no dump of {language} ({_wiki(language)}-….xml.bz2)")
    newest = [name for date, name in dumps if date == dumps[-1][0]]
    multistream = [name for name in newest if "multistream" in name]
    return [os.path.join(folder, name) for name in multistream or newest]


def fetch_dump(
    language: str,
    folder: str,
    mirrors: Sequence[str] = (WIKIMEDIA,),
    date: str = "latest",
    quiet: bool = False,
    retries: RetryPolicy = RETRIES,
) -> str:
    """Download a language's ``pages-articles-multistream`` dump; return its path.

    A ``pages-articles`` dump is taken if it has been begun, or there is no other.

    The list of checksums is loaded first and kept: it tells the date of ``latest``, and started
    again the same dump is continued.

    Args:
        language: as in the wiki's address: ``en``, ``simple``, ``zh-yue``.
        mirrors: addresses laid out like ``https://dumps.wikimedia.org``.
        date: ``latest`` or ``YYYYMMDD``.

    Raises:
        UsageError: see :func:`~fairseq_posenc.tools.prepare.downloads.download.download`.
    """
    wiki = _wiki(language)
    mirrors = [mirror.rstrip("/") for mirror in mirrors]
    listing = os.path.join(folder, f"{wiki}-{date}-sha1sums.txt")
    addresses = [f"{mirror}/{wiki}/{date}/{wiki}-{date}-sha1sums.txt" for mirror in mirrors]
    download(addresses, listing, quiet=True, retries=retries, largest=LARGEST_LISTING)
    name, checksum = _listed(listing, wiki, date, folder)
    if checksum is None:
        os.remove(listing)
        raise UsageError(
            f"the dump {date} of {wiki} is not complete yet: its list of checksums has no "
            "pages-articles.xml.bz2; give another date, or start again later"
        )
    dated = name.split("-")[1]
    path = os.path.join(folder, name)
    urls = [f"{mirror}/{wiki}/{dated}/{name}" for mirror in mirrors]
    if not os.path.exists(path):
        download(urls, path, checksum, quiet, retries)
    return path


def _listed(listing: str, wiki: str, date: str, folder: str) -> Tuple[str, Optional[Checksum]]:
    lines = read_lines(listing)
    dated = r"\d{8}" if date == "latest" else re.escape(date)
    pattern = rf"\b({wiki}-{dated}-pages-articles(?:-multistream)?\.xml\.bz2)$"
    found = sorted(re.findall(pattern, "\n".join(lines), re.MULTILINE))
    # the newest, which the longer name is the first of
    newest = [name for name in found if name.split("-")[1] == found[-1].split("-")[1]]
    begun = [
        n for n in newest if any(os.path.exists(f"{folder}/{n}{end}") for end in ("", ".part"))
    ]
    name = (begun or newest or [""])[0]
    return name, Checksum.from_listing(iter(lines), name) if name else None


def _wiki(language: str) -> str:
    return f"{language.replace('-', '_')}wiki"
