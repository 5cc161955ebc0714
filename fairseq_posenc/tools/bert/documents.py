"""Raw text as a stream: lines, and ``None`` where a document ends. Nothing is held in memory.

The name of a file tells what it is: ``.parquet`` has a column ``text`` with a document per row, as
the snapshots of ``wikimedia/wikipedia``; ``.json`` and ``.jsonl``, and the files ``wiki_00`` … of
``wikiextractor --json``, have a line of JSON per document, whose member ``text`` it is; all others
are plain text. All but ``.parquet`` may be compressed (``.gz``, ``.bz2``, ``.xz``). Plain text that
begins with ``<doc …>`` is wikiextractor's, whatever its name, and so is ``wiki_00`` without JSON.
Rows that begin with a title of WikiText are lines, as Hugging Face has WikiText.
wikiextractor writes ``&``, ``<`` and ``>`` as entities, into each of its formats: they become
characters again.
"""

import os
import re
from itertools import chain
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import check_plain, file_error, stream_lines
from fairseq_posenc.json_files import parse_json, schema_error

_UNFINISHED = re.compile(r"\.part(\d*|\.note|-[-0-9a-f]+)$")
_TITLE = re.compile(r"= (?!= ).*\S =(?<! = =)")
_HEADING = re.compile(r"= = .* = =")
_ARTICLE = re.compile(r"<doc id=.*>")  # the first line of wikiextractor's, without --json
_JSON_LINES = re.compile(r".*\.jsonl?(\.gz|\.bz2|\.xz)?")
_WIKI = re.compile(r"wiki_\d+(\.gz|\.bz2|\.xz)?")
_EXTRACTED = {"revid", "url", "title"}  # beside a text, in wikiextractor's JSON
_ROWS = 1000  # of a parquet file, which are in memory at a time

Stream = Iterator[Optional[str]]


class LanguageFiles(NamedTuple):
    """The files of one language; its name is empty if no languages are named."""

    language: str
    files: Tuple[str, ...]


def _by_blank_lines(line: str, previous: str) -> Tuple[bool, bool]:
    return not line, bool(line)


def _by_titles(line: str, previous: str) -> Tuple[bool, bool]:
    if not line.startswith("= "):
        return False, bool(line)
    # WikiText holds formulas that look like titles but for the empty line before
    title = not previous and bool(_TITLE.fullmatch(line))
    return title, not title and not _HEADING.fullmatch(line)


def _by_articles(line: str, previous: str) -> Tuple[bool, bool]:
    if _ARTICLE.fullmatch(line) or line == "</doc>":
        return True, False
    # an article begins with its title, as an attribute and as a line
    title = f'title="{_without_entities(line)}"'
    is_title = bool(_ARTICLE.fullmatch(previous)) and title in _without_entities(previous)
    return False, bool(line) and not is_title


def _without_entities(text: str) -> str:
    """Return what ``html.escape(quote=False)`` has made the text of."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


# from a line and the one before to what it is: (end of a document, text)
BOUNDARIES: Dict[str, Callable[[str, str], Tuple[bool, bool]]] = {
    "blank": _by_blank_lines,
    "title": _by_titles,
}


def read_documents(files: Iterable[str], boundary: str) -> Stream:
    """Yield the lines of all documents, without space around them, and None after each document.

    Args:
        files: of any kind; the end of a file ends a document.
        boundary: what divides the documents of plain text. ``blank``: empty lines. ``title``:
            lines ``= Title =`` at the beginning or after an empty line, as in WikiText; they and
            headings ``= = Heading = =`` are left out, as BERT does with headers, and empty lines
            alone divide nothing; also if it is ``blank`` and a file begins with such a line. In
            wikiextractor's files it is ``<doc …>`` and ``</doc>``; titles are left out.
    """
    for file in files:
        texts = _texts(file)
        if texts is None:
            check_plain(file)
            yield from _plain(stream_lines(file), _first_line(file), boundary, file)
            continue
        first = next((text for text in texts if text.strip()), "")
        texts = chain([first], texts)
        if _TITLE.fullmatch(first.strip()):
            # a row's own line feed begins no empty line, which would make a title of a formula
            lines = (line for text in texts for line in text.removesuffix("\n").split("\n"))
            yield from _plain(lines, first.strip(), boundary, file)
            continue
        for text in texts:
            document = [line for line in map(str.strip, text.split("\n")) if line]
            yield from document
            if document:
                yield None


def _plain(lines: Iterable[str], begin: str, boundary: str, file: str) -> Stream:
    """Yield the documents of lines, of which ``begin`` is the first that is not blank."""
    by_boundary = BOUNDARIES["title" if _TITLE.fullmatch(begin) else boundary]
    classify = _by_articles if _ARTICLE.fullmatch(begin) else by_boundary
    is_extracted = classify is _by_articles or _WIKI.fullmatch(os.path.basename(file))
    inside, previous = False, ""
    for line in map(str.strip, lines):
        ends, is_text = classify(line, previous)
        previous = line
        if is_text:
            yield _without_entities(line) if is_extracted else line
            inside = True
        elif ends and inside:
            yield None
            inside = False
    if inside:
        yield None


def _first_line(file: str) -> str:
    """Return the first line that is not blank, without space around it; of none, nothing."""
    return next(filter(None, map(str.strip, stream_lines(file))), "")


def _texts(file: str) -> Optional[Iterator[str]]:
    """Return the documents of a file that divides them itself, None for plain text."""
    name = os.path.basename(file)
    if name.endswith(".parquet"):
        return _texts_of_parquet(file)
    begin = _first_line(file) if _WIKI.fullmatch(name) or _JSON_LINES.fullmatch(name) else ""
    is_plain = _ARTICLE.fullmatch(begin) or _WIKI.fullmatch(name) and not begin.startswith("{")
    return _texts_of_json(file) if begin and not is_plain else None


def _texts_of_parquet(file: str) -> Iterator[str]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file) as table:
            text_type = table.schema_arrow.field("text").type
            if not (pyarrow.types.is_string(text_type) or pyarrow.types.is_large_string(text_type)):
                raise UsageError(f"{file}: the column text is {text_type}, not text")
            for batch in table.iter_batches(_ROWS, columns=["text"]):
                yield from (text or "" for text in batch.column("text").to_pylist())
    except (pyarrow.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise file_error("read", file, error) from error


def _texts_of_json(file: str) -> Iterator[str]:
    for number, line in enumerate(stream_lines(file), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        if number == 1 and line.lstrip().startswith("["):
            raise UsageError(
                f"{file} is an array of JSON, not a line of JSON per document; write it so: "
                f"jq -c '.[]' {file} > {os.path.splitext(file)[0]}.jsonl"
            )
        document = parse_json(line, where)
        misfit = schema_error(document, {"text": str})
        if misfit:
            raise UsageError(f"{where} is not an object with a text: {misfit}")
        text = document["text"]
        yield _without_entities(text) if document.keys() >= _EXTRACTED else text


def find_corpora(arguments: Sequence[str], language_folders: bool = False) -> List[LanguageFiles]:
    """Return the files that command-line arguments name, by language, in the order given.

    Args:
        arguments: each a file or folder, or ``LANGUAGE=PATH`` and more of them behind commas.
            Folders are searched to any depth, in alphabetic order; hidden files and unfinished
            ones (``.part``) are left out.
        language_folders: arguments are folders whose sub-folders are named by language.
    """
    paths: Dict[str, List[str]] = {}
    for argument in arguments:
        for language, path in _languages(argument, language_folders):
            paths.setdefault(language, []).append(path)
    if "" in paths and len(paths) > 1:
        raise UsageError(
            f"{paths[''][0]} has no language, other texts have; give LANGUAGE=PATH for every text"
        )
    return [
        LanguageFiles(language, tuple(file for path in of_language for file in _files(path)))
        for language, of_language in paths.items()
    ]


def _languages(argument: str, language_folders: bool) -> List[Tuple[str, str]]:
    if language_folders:
        names = sorted(os.listdir(argument)) if os.path.isdir(argument) else []
        pairs = [(name, os.path.join(argument, name)) for name in names if name[0] != "."]
        folders = [(name, path) for name, path in pairs if os.path.isdir(path)]
        if not folders:
            raise UsageError(f"{argument} holds no folders that could be languages")
        return folders
    if os.path.exists(argument) or "=" not in argument:
        return [("", argument)]
    parts = [part.strip().partition("=") for part in argument.split(",") if part.strip()]
    for language, _, path in parts:
        if not language or not path:
            raise UsageError(f"expected LANGUAGE=PATH,LANGUAGE=PATH…, not {argument!r}")
    return [(language, path) for language, _, path in parts]


def _files(path: str) -> List[str]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise UsageError(f"there is no file or folder {path}")
        return [path]
    files = []
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        visible = (
            name for name in sorted(names) if name[0] != "." and not _UNFINISHED.search(name)
        )
        files += [os.path.join(folder, name) for name in visible]
    if not files:
        raise UsageError(f"the folder {path} holds no text files")
    return files
