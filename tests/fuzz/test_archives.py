"""Damaged and hostile archives: what is unpacked is what was packed, and nothing lies elsewhere."""

import bz2
import gzip
import lzma
import os
import shutil

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.downloads.archives import unpack

FILES = {"a/b.txt": b"one " * 300, "c.txt": bytes(range(256)) * 3, "d/e/f": b"x"}
TEXT = FILES["a/b.txt"]


def other_files(found, data):
    return found != FILES and "other files"


def other_names(found, data):
    """Of plain tar files, names have checksums; their contents and their end have none."""
    return not set(found) <= set(FILES) and "other names"


def other_text(found, data):
    """A compressed file may be several, one behind the other."""
    return b"".join(found.values()).replace(TEXT, b"") and "other text"


KINDS = {
    "x.zip": (FILES, other_files),
    "x.tar": (FILES, other_names),
    "x.tgz": (FILES, other_files),
    "x.tar.bz2": (FILES, other_files),
    "x.tar.xz": (FILES, other_files),
    "x.gz": (gzip.compress(TEXT), other_text),
    "x.bz2": (bz2.compress(TEXT), other_text),
    "x.xz": (lzma.compress(TEXT), other_text),
}


@pytest.mark.parametrize("name", KINDS)
def test_damaged_archives_are_reported_or_unpacked_right(fuzz, tmp_path, make_archive, name):
    content, wrong = KINDS[name]
    inner, path = tmp_path / "inner", tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        make_archive(path, content)

    def unpacked():
        """Unpack into an empty folder, and return the files."""
        shutil.rmtree(inner, ignore_errors=True)
        try:
            unpack(str(path), str(inner / "out"))
        except UsageError:
            assert not list(inner.glob("out/*"))
            raise
        finally:
            assert set(os.listdir(tmp_path)) <= {"inner", name}
            assert not inner.exists() or set(os.listdir(inner)) <= {"out"}
        files = (path for path in inner.rglob("*") if path.is_file())
        return {str(path.relative_to(inner / "out")): path.read_bytes() for path in files}

    fuzz(name, path, unpacked, wrong)
