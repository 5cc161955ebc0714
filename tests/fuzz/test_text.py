"""Damaged text, plain and compressed, and what is made of it; damaged output of fairseq."""

import bz2
import gzip
import io
import lzma

import pyarrow
import pytest
from pyarrow import parquet

from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.bert.documents import read_documents
from fairseq_posenc.tools.scores.generate_output import read_generate_output
from fairseq_posenc.tools.scores.training_log import read_log
from fairseq_posenc.tools.translation import bpe
from fairseq_posenc.tools.translation.pairs import pairs_of_archive

TEXT = "".join(f"der {i}. Hund , 2.5 & „Katze“ <unk>\u00ad {chr(200 + i)}\n" for i in range(30))
PAIRS = {"x/a.en": TEXT.encode(), "x/a.de": TEXT.encode()}
DOCUMENTS = "= A =\n\nOne two .\nThree .\n\n = = B = = \n\nFour\n\n= C =\n\nfive\n" * 3
JSON_LINES = '{"id": "1", "text": "One two .\\nThree ."}\n{"text": "Four \\u00e4"}\n' * 3
CODES = "#version: 0.2\nd e\nde r</w>\nH u\nHu n\nHun d</w>\n"
GENERATED = "".join(
    f"S-{i}\tder Hu@@ nd {i} .\nT-{i}\tthe do@@ g {i} .\n"
    + "".join(f"{kind}-{i}\t{score}\tthe do@@ g .\n" for score in (-0.9, -0.5) for kind in "HD")
    for i in range(6)
)
TIME = "2026-11-21 03:59:00 | INFO |"
LOG = f"""{TIME} fairseq_cli.train | {{'common': {{'cpu': True}}}}
{TIME} fairseq_cli.train | num. shared model params: 1,768,960 (num. trained: 7)
{TIME} fairseq.utils | rank   0: capabilities =  7.0  ; total memory = 31.7 GB ; name = V100
{TIME} fairseq_cli.train | training on 1 devices (GPUs/TPUs)
{TIME} fairseq.trainer | Loaded checkpoint c.pt (epoch 2 @ 50 updates)
{TIME} train_inner | epoch 001:    100 / 265 loss=11.1, wps=3631.3, num_updates=100, wall=51
{TIME} train | epoch 014 | loss 4.349 | wps 3485.9 | num_updates 265 | train_wall 133 | wall 150
{TIME} fairseq_cli.train | done training in 149.5 seconds
"""


def parquet_of(texts):
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": list(map(str, range(18))), "text": texts}), stream)
    return stream.getvalue()


def decoded(lines, data):
    """Why lines are not those of UTF-8 text; a byte order mark at the beginning is none of it."""
    text = data.decode("utf-8-sig")
    expected = text.split("\n")
    expected = expected[:-1] if text.endswith("\n") else expected
    return [line.rstrip("\r") for line in expected] != lines and "other lines"


def unchanged(lines, data):
    return lines != TEXT.splitlines() and "other lines, and no word of it"


def archived(path):
    return [pair[0] for pair in pairs_of_archive(path, ("a.en", "a.de"))]


def cut(codes):
    """The text, cut into subwords and joined again."""
    with open(f"{codes}.text", "w", encoding="utf-8") as stream:
        stream.write(TEXT)
    bpe.apply(codes, stream.name, f"{codes}.cut")
    return [line.replace("@@ ", "") for line in read_lines(f"{codes}.cut")]


# name: file, what is in it, how to read it, what is wrong with a result
READERS = {
    "plain text": ("a.txt", TEXT.encode(), read_lines, decoded),
    "gzip": ("a.gz", gzip.compress(TEXT.encode(), mtime=0), read_lines, unchanged),
    "bzip2": ("a.bz2", bz2.compress(TEXT.encode()), read_lines, unchanged),
    "xz": ("a.xz", lzma.compress(TEXT.encode()), read_lines, unchanged),
    "pairs of an archive": ("a.tgz", PAIRS, archived, unchanged),
    "BPE codes": ("codes", CODES.encode(), cut, unchanged),
    "documents": (
        "a", DOCUMENTS.encode(), lambda path: list(read_documents([path], "title")), None),
    "JSON lines": (
        "a.jsonl", JSON_LINES.encode(), lambda path: list(read_documents([path], "blank")), None),
    "parquet": (
        "a.parquet", parquet_of(["One two .\nThree .", "Four ä"] * 9),
        lambda path: list(read_documents([path], "blank")), None),
    "output of fairseq-generate": (
        "a.out", GENERATED.encode(), read_generate_output,
        lambda found, _: len(found.hypotheses) != len(found.decoded) and "no text"),
    "log of fairseq-train": (
        "a.log", (LOG * 2).encode(), read_log,
        lambda facts, _: not 0 <= facts["seconds"] < 1e16 and "no time"),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_damaged_text_is_reported_or_read_right(fuzz, tmp_path, make_archive, name):
    file, content, read, wrong = READERS[name]
    path = tmp_path / file
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        make_archive(path, content)
    fuzz(name, path, lambda: read(str(path)), wrong)
