"""Damaged and hostile archives: what is unpacked is what was packed, and nothing lies elsewhere."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads.archives import unpack

FILES = {"a/b.txt": b"one " * 300, "c.txt": bytes(range(256)) * 3, "d/e/f": b"x"}
TEXT = FILES["a/b.txt"]


def packed(mode, files=None):
    stream, files = io.BytesIO(), files or FILES.items()
    if mode == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files:
                archive.writestr(name, content)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def other_files(found, data):
    return found != FILES and "other files"


def other_names(found, data):
    """Of plain tar files, names have checksums, and contents have none."""
    return set(found) != set(FILES) and "other names"


def other_text(found, data):
    """A compressed file may be several, one behind the other."""
    return b"".join(found.values()).replace(TEXT, b"") and "other text"


KINDS = {
    "x.zip": (packed("zip"), other_files, 1000),
    "x.tar": (packed("w"), other_names, 1000),
    "x.tgz": (packed("w:gz"), other_files, 1000),
    "x.tar.bz2": (packed("w:bz2"), other_files, 300),
    "x.tar.xz": (packed("w:xz"), other_files, 300),
    "x.gz": (gzip.compress(TEXT), other_text, 1000),
    "x.bz2": (bz2.compress(TEXT), other_text, 300),
    "x.xz": (lzma.compress(TEXT), other_text, 300),
}


@pytest.fixture
def unpacked(tmp_path):
    """A function that unpacks an archive into an empty folder, and returns its files."""
    inner = tmp_path / "inner"

    def unpacked(path):
        folder = inner / "out"
        shutil.rmtree(inner, ignore_errors=True)
        inner.mkdir()
        try:
            unpack(str(path), str(folder))
        except UsageError:
            assert not folder.exists() or not list(folder.iterdir())
            raise
        finally:
            assert set(os.listdir(tmp_path)) == {"inner", path.name}
            assert set(os.listdir(inner)) <= {"out"}
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return unpacked


@pytest.mark.parametrize("name", KINDS)
def test_damaged_archives_are_told_or_unpacked_right(fuzz, tmp_path, unpacked, name):
    content, wrong, cases = KINDS[name]
    (tmp_path / name).write_bytes(content)
    fuzz(name, tmp_path / name, lambda: unpacked(tmp_path / name), wrong, cases=cases)


WILD = ["../x", "/x", "a/../../x", "..", ".", "a/", "//x", "a\\..\\..\\x", "C:\\x", "~/x", "x"]
WILD += ["\n", "x" * 300, "a/b/c", "é", ".unpack", "a" * 200 + "/b"]


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz"])
@pytest.mark.parametrize("first", ["a", "x"])
@pytest.mark.parametrize("name", WILD, ids=repr)
def test_any_name_stays_in_the_folder_or_is_told(tmp_path, unpacked, mode, first, name):
    files = [(first, b"one"), (name, b"two"), ("a/last", b"three")]
    path = tmp_path / f"archive{'.zip' if mode == 'zip' else '.tgz' if ':' in mode else '.tar'}"
    path.write_bytes(packed(mode, files))
    try:
        found = unpacked(path)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert set(found.values()) <= {b"one", b"two", b"three"} and b"three" in found.values()
