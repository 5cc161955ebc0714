"""From a dump of Wikipedia (``…-pages-articles.xml.bz2``) to plain text, with several processes.

Articles only: no redirects, no talk, no help or user pages. The output has a paragraph a line and a
blank line between documents. The dump is read as a stream; it is never in memory as a whole. One
that is called ``multistream`` has a bzip2 stream for each hundred pages: processes unpack
them, too.
"""

import bz2
import functools
import gzip
import html
import itertools
import os
import re
from typing import Any, BinaryIO, Callable, FrozenSet, Iterator, List, Tuple
from xml.etree import ElementTree

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.text.wikitext import HIDDEN, paragraphs
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing

BLOCK = 1 << 20
PAGES_A_TASK = 50
LARGEST_PAGE = 1 << 26
LARGEST_STREAM = 1 << 28  # unpacked; its hundred pages are at most 2 MB each
_REMEDY = "rename it, without 'multistream', to read it in one piece"
# of files, categories and media, in the dump's own list of namespaces
HIDDEN_KEYS = ("6", "14", "-2")


def extract(dump: str, output: str, workers: int = 1, quiet: bool = False) -> int:
    """Write the articles of a dump as text; the result does not depend on the number of processes.

    Args:
        dump: XML, plain, ``.bz2`` or ``.gz``.
        output: the file to write, which appears when it is whole.

    Returns:
        The number of documents.

    Raises:
        UsageError: the dump is missing, cut off, no such dump or without articles, or the output
            cannot be written.
    """
    count = 0
    with replacing(output) as stream:
        for document in articles(dump, workers, quiet):
            stream.write("\n".join(document) + "\n\n")
            count += 1
        if not count:
            raise UsageError(f"{dump} holds no article with text")
    return count


def articles(dump: str, workers: int = 1, quiet: bool = False) -> Iterator[List[str]]:
    """Yield the paragraphs of every article that has text, in the dump's order.

    Raises:
        UsageError: as :func:`extract`.
    """
    try:
        size = os.path.getsize(dump)
        bar = tqdm(
            desc=os.path.basename(dump), total=size, unit="B", unit_scale=True,
            disable=True if quiet else None,
        )  # fmt: skip
        with bar, open(dump, "rb") as file, _decompressed(file, dump) as stream:
            moved = functools.partial(_move, bar, file)
            work: Callable[..., List[List[str]]] = _texts
            if _is_multistream(dump):
                header, tasks = _streams(file, dump, moved)
                work = _texts_of_stream
            else:
                header, pages = _split(stream, dump, moved)
                tasks = chunked(pages, PAGES_A_TASK)
            work = functools.partial(work, hidden=_hidden_names(header), dump=dump)
            for texts in in_order(work, tasks, workers):
                yield from texts
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot read {dump}: {reason}; if it is cut off, load it again"
        ) from error


def _move(bar: tqdm, file: BinaryIO) -> None:
    bar.update(file.tell() - bar.n)


def _is_multistream(dump: str) -> bool:
    name = os.path.basename(dump)
    return "multistream" in name and name.endswith(".bz2")


def _decompressed(file: BinaryIO, name: str) -> Any:
    if name.endswith(".bz2"):
        return bz2.open(file)
    return gzip.open(file) if name.endswith(".gz") else file


def _streams(file: BinaryIO, dump: str, moved: Callable[[], object]) -> Tuple[bytes, Iterator[Any]]:
    """Return what stands before the first page, and the bzip2 streams, of whole pages each."""

    def streams() -> Iterator[bytes]:
        kept = b""
        for block in iter(lambda: file.read(BLOCK), b""):
            moved()
            # of the first block of a stream; it may lie across two of ours
            *whole, kept = re.split(b"(?=BZh[1-9]1AY&SY)", kept + block)
            if len(kept) > LARGEST_PAGE:
                raise UsageError(f"{dump} has no streams; {_REMEDY}")
            yield from filter(None, whole)
        if b"</mediawiki>" not in _unpacked(kept, dump):
            raise UsageError(f"{dump} is cut off: it does not end with </mediawiki>")
        yield kept

    found = streams()
    first = next(found)
    header = _unpacked(first, dump)
    if b"<mediawiki" not in header[:1000]:
        raise UsageError(f"{dump} is no XML dump of a wiki")
    return header.partition(b"<page>")[0], itertools.chain([first], found)


def _unpacked(stream: bytes, dump: str) -> bytes:
    whole, one = b"", bz2.BZ2Decompressor()
    try:
        whole = one.decompress(stream, LARGEST_STREAM + 1)
        while one.unused_data:
            stream, one = one.unused_data, bz2.BZ2Decompressor()
            whole += one.decompress(stream, LARGEST_STREAM + 1 - len(whole))
        if len(whole) > LARGEST_STREAM:
            raise UsageError(f"{dump} has a stream of more than {LARGEST_STREAM} bytes; {_REMEDY}")
        if not one.eof:
            raise OSError("its data end early")
    except OSError as error:
        raise UsageError(f"cannot read {dump}: {error}; if it is cut off, load it again") from None
    return whole


def _split(
    stream: BinaryIO, dump: str, moved: Callable[[], object]
) -> Tuple[bytes, Iterator[bytes]]:
    """Return what stands before the first page, and an iterator over the pages' XML."""
    begin = stream.read(1000)
    if b"<mediawiki" not in begin:
        raise UsageError(f"{dump} is no XML dump of a wiki")
    chunks = _chunks(begin, stream, dump, moved)
    first = next(chunks)
    pages = (page for chunk in itertools.chain([first], chunks) for page in _pages(chunk))
    return first[: max(first.find(b"<page>"), 0)], pages


def _chunks(
    begin: bytes, stream: BinaryIO, dump: str, moved: Callable[[], object]
) -> Iterator[bytes]:
    """Yield pieces of about a block that end behind a page, the last one excepted.

    In XML, ``</page>`` cannot stand inside a page's text.
    """
    mark = b"</page>"
    kept = begin
    for block in iter(lambda: stream.read(BLOCK), b""):
        moved()
        # the mark may lie across two blocks
        kept += block
        end = kept.rfind(mark) + len(mark)
        if end >= len(mark):
            yield kept[:end]
            kept = kept[end:]
        elif len(kept) > LARGEST_PAGE:
            raise UsageError(f"{dump} holds pages with their history; take one of pages-articles")
    if b"</mediawiki>" not in kept:
        raise UsageError(f"{dump} is cut off: it does not end with </mediawiki>")
    yield kept


def _pages(chunk: bytes) -> Iterator[bytes]:
    for page in chunk.split(b"</page>")[:-1]:
        yield page[page.find(b"<page>") :] + b"</page>"


def _hidden_names(header: bytes) -> FrozenSet[str]:
    """Names of the namespaces whose links are no text, in the wiki's own language too."""
    names = set(HIDDEN)
    for tag, name in re.findall(rb"<namespace\b([^<>]*)>([^<]*)</namespace>", header):
        key = re.search(rb'\bkey="(-?\d+)"', tag)
        if key and key[1].decode() in HIDDEN_KEYS:
            names.add(html.unescape(name.decode("utf-8", errors="replace")).lower())
    return frozenset(names)


def _texts_of_stream(stream: bytes, hidden: FrozenSet[str], dump: str) -> List[List[str]]:
    xml = _unpacked(stream, dump)
    rest = xml.rpartition(b"</page>")[2]
    if b"<page>" in rest or not (
        rest.isspace() or rest.lstrip().startswith((b"<mediawiki", b"</"))
    ):
        raise UsageError(f"{dump}: a page lies across two streams; {_REMEDY}")
    return _texts(list(_pages(xml)), hidden, dump)


def _texts(pages: List[bytes], hidden: FrozenSet[str], dump: str) -> List[List[str]]:
    found = []
    for page in pages:
        try:
            element = ElementTree.fromstring(page)
        except ElementTree.ParseError as error:
            raise UsageError(f"{dump}: a page is no valid XML ({error})") from error
        if element.findtext("ns") != "0" or element.find("redirect") is not None:
            continue
        if element.findtext("revision/model", "wikitext") == "wikitext":
            found.append(paragraphs(element.findtext("revision/text") or "", hidden))
    return [texts for texts in found if texts]
