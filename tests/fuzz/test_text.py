"""Damaged text, plain and compressed, and what is made of it on the way to a binarised folder."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.prepare.parallel import bpe
from fairseq_posenc.tools.prepare.parallel.pairs import pairs_of_archive, pairs_of_files
from fairseq_posenc.tools.prepare.text.documents import read_documents
from fairseq_posenc.tools.prepare.text.wikipedia import articles

TEXT = "".join(f"der {i}. Hund , 2.5 & „Katze“ <unk>\u00ad {chr(200 + i)}\n" for i in range(30))
DOCUMENTS = "= A =\n\nOne two .\nThree .\n\n = = B = = \n\nFour\n\n= C =\n\nfive\n" * 3
PAGE = """<page><title>T</title><ns>0</ns><revision><text>'''Berlin''' is [[a|the]] {{b|c}} city.
{| class="x"
| cell
|}
[[File:x.png|thumb|[[b]]]] &lt;ref&gt;x&lt;/ref&gt; More text, -{zh-hans:a; zh-hant:b}-.</text></revision></page>
"""  # noqa: E501
DUMP = (
    '<mediawiki xml:lang="en"><siteinfo><namespaces><namespace key="6">Datei</namespace>'
    f"</namespaces></siteinfo>{PAGE * 4}</mediawiki>"
)
CODES = "#version: 0.2\nd e\nde r</w>\nH u\nHu n\nHun d</w>\n"


def decoded(lines, data):
    """Why lines are not those of UTF-8 text; a byte order mark at the beginning is none of it."""
    text = data.decode("utf-8-sig")
    expected = text.split("\n")
    expected = expected[:-1] if text.endswith("\n") else expected
    return [line.rstrip("\r") for line in expected] != lines and "other lines"


def unchanged(lines, data):
    return lines != TEXT.splitlines() and "other lines, and no word of it"


def archive():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name in ("x/a.en", "x/a.de"):
            member = tarfile.TarInfo(name)
            member.size = len(TEXT.encode())
            made.addfile(member, io.BytesIO(TEXT.encode()))
    return stream.getvalue()


def pairs(path):
    if not path.with_suffix(".en").exists():
        path.with_suffix(".en").write_text(TEXT)
    return list(pairs_of_files(str(path.with_suffix("")), ("en", "de")))


def archived(path):
    return [pair[0] for pair in pairs_of_archive(str(path), ("a.en", "a.de"))]


def tokenised(path):
    lines = read_lines(str(path))
    return lines, tokenise_lines(lines, Moses("de", printable=True))


def one_to_one(result, data):
    lines, tokens = result
    if len(lines) != len(tokens) or any(mark in line for line in tokens for mark in "\n\r"):
        return "lines were split or joined"
    return None


def apply(codes, text):
    """Return the text cut into subwords."""
    output = text.with_name("cut")
    output.unlink(missing_ok=True)
    bpe.apply(str(codes), str(text), str(output))
    return read_lines(str(output))


def coded(path):
    text = path.with_name("text")
    if not text.exists():
        text.write_text(TEXT)
    return "\n".join(apply(path, text)).replace("@@ ", "") + "\n"


def cut(path):
    codes = path.with_name("codes")
    if not codes.exists():
        codes.write_text(CODES)
    return read_lines(str(path)), apply(codes, path)


def learnt(path):
    codes = path.with_name("codes")
    codes.unlink(missing_ok=True)
    bpe.learn([str(path)], str(codes), 5)
    return apply(codes, path)


def lines(path):
    return read_lines(str(path))


def read_articles(path):
    return list(articles(str(path), quiet=True))


# name: file, what is in it, how to read it, what is wrong with a result, how many cases
READERS = {
    "plain text": ("a.txt", TEXT.encode(), lines, decoded, 1000),
    "gzip": ("a.gz", gzip.compress(TEXT.encode(), mtime=0), lines, unchanged, 1000),
    "bzip2": ("a.bz2", bz2.compress(TEXT.encode()), lines, unchanged, 1000),
    "xz": ("a.xz", lzma.compress(TEXT.encode()), lines, unchanged, 1000),
    "pairs": ("a.de", TEXT.encode(), pairs, None, 1000),
    "pairs of an archive": ("a.tgz", archive(), archived, unchanged, 1000),
    "tokenised": ("a.txt", TEXT.encode(), tokenised, one_to_one, 200),
    "BPE codes": (
        "codes", CODES.encode(), coded, lambda text, _: text != TEXT and "other text", 1000),
    "text to be cut": ("a.txt", TEXT.encode(), cut, one_to_one, 300),
    "text to learn BPE from": ("a.txt", TEXT.encode(), learnt, None, 50),
    "documents": (
        "a", DOCUMENTS.encode(), lambda p: list(read_documents([str(p)], "title")), None, 1000),
    "Wikipedia": ("a.xml", DUMP.encode(), read_articles, None, 1000),
    "Wikipedia, bzip2": (
        "a.bz2", bz2.compress(DUMP.encode()), read_articles,
        lambda found, _: found != [found[0]] * 4 and "other articles", 1000),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_damaged_text_is_told_or_read_right(fuzz, tmp_path, name):
    file, content, read, wrong, cases = READERS[name]
    (tmp_path / file).write_bytes(content)
    others = [CODES.encode(), DUMP.encode(), b"PK\3\4" + bytes(40), gzip.compress(b"")]
    fuzz(
        name, tmp_path / file, lambda: read(tmp_path / file), wrong, cases,
        others if wrong is not unchanged else (),
    )  # fmt: skip
