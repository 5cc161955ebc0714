"""Archives made to do harm: bombs, loops, names that are none. All is told, soon, in one line."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads import archives
from fairseq_posenc.tools.prepare.downloads.archives import Damaged, check_archive, unpack

ZEROS = bytes(3_000_000)


def zipped(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def overlapping():
    """A zip file all of whose names stand for one piece of it, which is announced as larger."""
    content = bytearray(zipped(("a", ZEROS)))
    start = content.rindex(b"PK\1\2")
    end = content.rindex(b"PK\5\6")
    content[end:] = content[start:end] * 99 + content[end:]
    return bytes(content)


def tarred(*members):
    """A tar file of (name, content or other attributes); a negative size is written as it is."""
    stream = io.BytesIO()
    for name, content in members:
        about = tarfile.TarInfo(name)
        attributes = content if isinstance(content, dict) else {"size": len(content)}
        for key, value in attributes.items():
            setattr(about, key, value)
        size, about.size = about.size, 0
        header = bytearray(about.tobuf(tarfile.GNU_FORMAT))
        if size < 0 or size >= 8**11:
            header[124:136] = (size % 2**96).to_bytes(12, "big")
            header[124] = 0xFF if size < 0 else 0x80
        else:
            header[124:136] = b"%011o\0" % size
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        stream.write(header)
        if isinstance(content, bytes):
            stream.write(content + bytes(-len(content) % 512))
    return stream.getvalue() + bytes(10_240)


def links(kind):
    return [("a", ZEROS), *((f"l{i}", {"type": kind, "linkname": "a"}) for i in range(300))]


BOMBS = {
    "x.zip": zipped(("a", ZEROS)),
    "overlapping.zip": overlapping(),
    "x.gz": gzip.compress(ZEROS),
    "x.bz2": bz2.compress(ZEROS),
    "x.xz": lzma.compress(ZEROS),
    "x.tgz": gzip.compress(tarred(("a", ZEROS))),
    "hard links.tar": tarred(*links(tarfile.LNKTYPE)),
    "symbolic links.tar": tarred(*links(tarfile.SYMTYPE)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_not_unpacked_and_not_read_to_its_end(tmp_path, monkeypatch, name):
    monkeypatch.setattr(archives, "_HARMLESS", 100_000)
    path = tmp_path / name
    path.write_bytes(BOMBS[name])
    with pytest.raises(Damaged, match="unpacks to more than 200 times its own size"):
        check_archive(str(path), name)
    with pytest.raises(UsageError, match="cannot unpack .* 200 times its own size") as caught:
        unpack(str(path), str(tmp_path / "out"))
    assert "\n" not in str(caught.value) and os.listdir(tmp_path) == [name]


def test_text_that_is_packed_well_is_no_bomb(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(ZEROS))
    assert check_archive(str(tmp_path / "x.gz"), "x.gz") == len(ZEROS)


LOOPS = {
    "itself": [("a", {"size": -512})],
    "the one before": [("a", b""), ("b", b""), ("c", {"size": -1024})],
    "before the file": [("a", {"size": -(1 << 40)})],
    "a link to itself": [("a", {"type": tarfile.SYMTYPE, "linkname": "a"})],
    "links in a circle": [
        ("a", {"type": tarfile.SYMTYPE, "linkname": "b"}),
        ("b", {"type": tarfile.SYMTYPE, "linkname": "a"}),
    ],
    "beyond the end": [("a", {"size": 1 << 80})],
    "a little beyond the end": [("a", {"size": 20_000})],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_tar_file_that_leads_in_circles_or_nowhere_is_told(tmp_path, name):
    path = tmp_path / "x.tar"
    path.write_bytes(tarred(*LOOPS[name]))
    with pytest.raises(UsageError, match="unpack") as caught:
        unpack(str(path), str(tmp_path / "out"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists() or not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "a/\x7f", "d/" * 101 + "a", "d/" * 2000 + "a"])
@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_what_is_no_name_for_a_file_is_refused(tmp_path, name, ending):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("good"))
        archive.addfile(tarfile.TarInfo(name))
    path = tmp_path / f"x.{ending}"
    path.write_bytes(stream.getvalue() if ending == "tar" else zipped(("good", b""), (name, b"")))
    with pytest.raises(UsageError, match="refused to unpack: .* is no name for a file") as caught:
        unpack(str(path), str(tmp_path / "out"))
    assert str(caught.value).isprintable() and not os.listdir(tmp_path / "out")


def test_rights_and_owners_are_not_those_of_the_archive(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(tarred(("a", {"size": 0, "mode": 0o7777, "uid": 12345})))
    unpack(str(path), str(tmp_path / "out"))
    about = (tmp_path / "out" / "a").stat()
    assert not about.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | 0o111)
    assert about.st_uid == os.getuid()


def test_two_names_that_differ_in_case_are_two_files_or_told(tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(("a", b"one"), ("A", b"two"), ("b/c", b"3"), ("B/c", b"4")))
    assert unpack(str(path), str(tmp_path / "out")) == 4
    assert (tmp_path / "out" / "a").read_bytes() == b"one"
