"""Reading of text files, whatever they are packed in, and folders that appear when complete."""

import bz2
import gzip
import lzma

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines, replacing, replacing_folder, stream_lines


@pytest.mark.parametrize(
    "name, compress",
    [("a.txt", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress), ("a.xz", lzma.compress)],
)
def test_plain_and_compressed_files_are_read_alike(tmp_path, name, compress):
    path = tmp_path / name
    path.write_bytes(compress(("\ufeffé\nb\r\n" * 2).encode()))
    assert read_lines(str(path)) == ["é", "b", "\ufeffé", "b"]


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("a.txt", b"good\nbad \xff\n", "a.txt, line 2: invalid UTF-8"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.gz", gzip.compress(b"", mtime=0), "a.gz is empty"),
        ("a.gz", gzip.compress(b"words " * 99, mtime=0)[:-9], "cannot read .*a.gz"),
        ("a.bz2", b"words", "cannot read .*a.bz2"),
        ("a.xz", b"words", "cannot read .*a.xz"),
        ("b.txt", b"", "cannot read .*a.txt: No such file"),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=told):
        list(stream_lines(str(tmp_path / name.replace("b.txt", "a.txt"))))


def test_a_folder_appears_when_it_is_complete_and_replaces_another(tmp_path):
    path = tmp_path / "model"
    for content in ("old", "new"):
        with replacing_folder(str(path)) as folder:
            (tmp_path / folder / "file").write_text(content)
            assert path.exists() == (content == "new")
        assert (path / "file").read_text() == content
    with pytest.raises(ZeroDivisionError), replacing_folder(str(path)) as folder:
        (tmp_path / folder / "file").write_text(str(1 / 0))
    assert (path / "file").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match="cannot write"), replacing_folder(f"{blocked}/model"):
        pass


def test_another_file_that_fails_while_one_is_written_is_named(tmp_path):
    """Not to be taken for the one that is written, of which there is nothing wrong."""
    with pytest.raises(UsageError) as told, replacing(str(tmp_path / "new")):
        (tmp_path / "missing").read_text()
    assert str(told.value).endswith(f"No such file or directory: {tmp_path / 'missing'}")
    assert list(tmp_path.iterdir()) == []
