"""Reading files of text, plain and compressed, and their digests, with errors in one line."""

import bz2
import functools
import gzip
import hashlib
import itertools
import lzma
import os
import re
import tarfile
import zlib
from contextlib import contextmanager
from typing import BinaryIO, Callable, Dict, Iterator, List, Sequence

from fairseq_posenc.errors import UsageError, first_line

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?inf|nan")
LONGEST_LINE = 1 << 28  # bytes; whole files of questions in JSON are one line of up to 2 ** 26
_BLOCK = 1 << 20  # bytes
OPENERS: Dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_HEAD = 1 << 12  # bytes
_LOOKED_AT, _FEWEST_ROWS = 100, 5  # lines, to tell a table or JSON
_OBJECT = re.compile(r'\s*\{\s*"')
_DECLARATIONS = rb"(?:\xef\xbb\xbf)?\s*(?:<[?!][^>]*>\s*)*"  # <?xml …>, <!DOCTYPE …>
_XML = rb"(?:\xef\xbb\xbf)?\s*<\?xml\b"
PAIRS_OF_HUGGING_FACE = (
    """python -c 'import pandas; [print(*pair["en"].split()) for pair in pandas.{1}.translation]'"""
    " > train.en (pip install pandas pyarrow), where pairs are in a column translation"
)
# how a file begins that is given for text -> what it is, and what to do
_OTHER_FORMATS = {
    rb"\x28\xb5\x2f\xfd": "compressed with Zstandard, which is not read: zstd -d {0} -o FILE",
    rb"\x1f\x8b": "compressed with gzip: unpack an archive, tar -xf {0}, and call text {0}.gz",
    rb"BZh\d1AY&SY": "compressed with bzip2: call it {0}.bz2",
    rb"\xfd7zXZ\0": "compressed with xz: call it {0}.xz",
    # of torch ≥ 1.6, and of older ones
    rb"(?s:PK\x03\x04.{26}[^/]*/data\.pkl|\x80.\x8a\n)": "a checkpoint of PyTorch, and no text; a "
    "log is what fairseq-train --log-format simple prints",
    rb"PK\x03\x04": "a ZIP archive: unzip {0}",
    rb"(?s:.{257})ustar": "a tar archive: tar -xf {0}",
    rb"PAR1[^ -~\s]": "a Parquet table: "
    + PAIRS_OF_HUGGING_FACE.replace("{1}", 'read_parquet("{0}")'),
    rb"\xff{4}": "an Arrow file: write its folder as Parquet, python -c 'import datasets; "
    """datasets.load_from_disk("FOLDER").to_parquet("text.parquet")'""",
    rb"\xff\xfe|\xfe\xff": "UTF-16: iconv -f UTF-16 -t UTF-8 {0} > FILE",
    _DECLARATIONS + rb"<tmx\b": "TMX: tmxt.py --codelist en,fr {0} FILE.tsv (pip install tmxt "
    "docopt; languages as the file spells them) writes a pair a line, inline tags too; "
    "cut -f 1 FILE.tsv > train.en, and -f 2 > train.fr",
    rb"(?=%b)%b<(?:cesAlign|text|document)\b" % (_XML, _DECLARATIONS): "XML as OPUS has it: "
    # without -p raw it writes tokens, without -ln lines with an empty side
    "opus_read -d CORPUS -s en -t fr -p raw -ln -wm moses -w train.en train.fr (pip install "
    "opustools) writes a file of each language",
    _DECLARATIONS + rb"<(?i:mteval|dataset|srcset|refset|tstset)\b": "a test set in WMT's or "
    "IWSLT's XML: sacrebleu -t wmt22 -l en-de --echo src > test.en, and --echo ref > test.de, "
    "write its lines; --list names the sets",
    rb"\s*(?:<doc [^>]*>\s*)?<(?:url|keywords|speaker|talkid)>": "talks with IWSLT's tags: "
    "grep -v '^ *<' {0} > FILE leaves their sentences; do so in both languages",
    rb"(?:\xef\xbb\xbf)?\s*(?:#[^\n]*\n\s*)*msgid \"\"\s*\nmsgstr \"\"": "a PO file: python -m "
    "recipes.lib.po_text FOLDER --language fr --output text, at the top of a clone, takes the "
    "pairs of such files",
    _DECLARATIONS + rb"<mediawiki\b": "a dump of Wikipedia: wikiextractor {0} (pip install "
    "wikiextractor) extracts its text",
    _XML: "XML: extract its text, a sentence a line",
}


def file_error(action: str, path: str, error: Exception) -> UsageError:
    """Return the error of an action, with the name of its file if that is not ``path`` or in it."""
    reason, name = getattr(error, "strerror", None) or str(error), getattr(error, "filename", None)
    is_other_file = name is not None and not str(name).startswith(path)
    suffix = f": {name}" if is_other_file else ""
    return UsageError(f"cannot {action} {path}: {reason}{suffix}")


def disk_error(error: Exception) -> OSError:
    """Return what went wrong with the disk, of which libraries tell in errors of their own.

    torch raises another error while an OSError is handled; safetensors and tokenizers write
    its number into their text. An error of another kind is raised again.
    """
    if isinstance(error, OSError):
        return error
    if isinstance(error.__context__, OSError) and isinstance(error, RuntimeError):
        return error.__context__
    number = re.search(r"\(os error (\d+)\)", first_line(error))
    if number is None:
        raise error
    return OSError(int(number[1]), os.strerror(int(number[1])))


def file_digest(path: str, algorithm: str = "sha256") -> str:
    """Return the digest of a file's content in hexadecimal digits.

    Args:
        algorithm: a name that :func:`hashlib.new` takes.

    Raises:
        UsageError: the file is missing or unreadable.
    """
    digest = hashlib.new(algorithm)
    with reading(path), open(path, "rb") as stream:
        for block in iter(lambda: stream.read(_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def read_lines(path: str) -> List[str]:
    """Return the lines that :func:`stream_lines` yields; errors are the same."""
    return list(stream_lines(path))


def stream_lines(path: str) -> Iterator[str]:
    """Yield the lines of UTF-8 text, plain, ``.gz``, ``.bz2`` or ``.xz``, without their ends.

    Only ``\\n`` and ``\\r\\n`` end a line; other separators inside a line stay, also ``\\r``, which
    ends a line for fairseq-preprocess. A byte order mark is left out.

    Raises:
        UsageError: the file is missing or unreadable, is empty, is of a format that is no text, or
            holds invalid UTF-8 or a line that no text has (the line's number is named).
    """
    opener = OPENERS.get(os.path.splitext(path)[1], open)
    with reading(path), opener(path, "rb") as stream:
        check_format(path, stream.peek(_HEAD)[:_HEAD])
        yield from decode_lines(stream, path)


def check_format(path: str, head: bytes) -> None:
    """Check that a file is not in a format that its first bytes tell from text.

    Raises:
        UsageError: it is; the message says which, and how to get text of it.
    """
    for pattern, advice in _OTHER_FORMATS.items():
        if re.match(pattern, head):
            raise UsageError(f"{path} is {advice.format(path)}")


def check_no_json(path: str, lines: Sequence[str]) -> None:
    """Check that the lines of a text are not JSON, whose keys would be words.

    Raises:
        UsageError: all begin as objects do.
    """
    rows = [line for line in lines if line.strip()]
    if len(rows) >= _FEWEST_ROWS and all(map(_OBJECT.match, rows)):
        raise UsageError(
            f"{path} has lines of JSON, and not text: jq -r .KEY {path} > FILE takes the text of "
            "a key; documents for posenc prepare text stand in a file called .jsonl"
        )


def check_plain(path: str) -> None:
    """Check that text is no table, as XTREME's, whose labels would be trained on, and no JSON.

    Raises:
        UsageError: all of its first lines have a tab, or as :func:`check_no_json` and
            :func:`stream_lines`.
    """
    lines = [line for line in itertools.islice(stream_lines(path), _LOOKED_AT) if line.strip()]
    check_no_json(path, lines)
    if len(lines) >= _FEWEST_ROWS and all("\t" in line.strip() for line in lines):
        raise UsageError(
            f"{path} is a table, as all of its first lines have a tab, and not text: "
            f"cut -f 1 {path} > FILE takes its first column"
        )


def existing(path: str) -> str:
    """Return the path, or what is there with ``.gz``, ``.bz2`` or ``.xz`` behind it instead.

    Of text that is there with ``.zst`` alone, which is not read, its reader says what to do.
    """
    names = (path, *(path + ending for ending in (*OPENERS, ".zst")))
    return next(filter(os.path.exists, names), path)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn errors while a file, compressed file or tar archive is read into one line.

    Raises:
        UsageError: the file is missing, unreadable or damaged.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError) as error:
        raise file_error("read", path, error) from error


def decode_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """Yield the lines of a stream as :func:`stream_lines` does; ``name`` is for messages."""
    number = 0
    lines = iter(functools.partial(stream.readline, LONGEST_LINE), b"")
    try:
        for number, line in enumerate(lines, 1):
            if len(line) == LONGEST_LINE:
                raise UsageError(f"{name}, line {number}: longer than any line of text")
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield text.rstrip("\n").rstrip("\r")
    except UnicodeDecodeError:
        raise UsageError(f"{name}, line {number}: invalid UTF-8; convert the file first") from None
    if not number:
        pipe = os.path.exists(name) and not os.path.isfile(name)
        hint = "; a pipe can be read only once: give a file if it held text" if pipe else ""
        raise UsageError(f"{name} is empty{hint}")


def parse_number(text: str) -> float:
    """Return the number that a file spells, as ``3``, ``-0.5``, ``1e-3``, ``nan`` or ``-inf``.

    Raises:
        ValueError: it is spelt otherwise; Python's ``float`` takes ``0_1`` and ``２`` too.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(text)
