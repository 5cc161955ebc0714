"""Unpacking: nothing leaves the folder, nothing broken passes for whole, and nothing is endless."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import zipfile

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads import archives
from fairseq_posenc.tools.prepare.downloads.archives import Checksum, Damaged, check_archive, unpack

FILES = [("a/b.txt", b"one"), ("./c.txt", b"two" * 10_000)]
ZEROS = bytes(3_000_000)


def zipped(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(*members, mode="w"):
    """A tar file of (name, content or other attributes); an odd size is written as it is."""
    stream = io.BytesIO()
    for name, content in members:
        about = tarfile.TarInfo(name)
        attributes = content if isinstance(content, dict) else {"size": len(content)}
        for key, value in attributes.items():
            setattr(about, key, value)
        size, about.size = about.size, 0
        header = bytearray(about.tobuf(tarfile.GNU_FORMAT))
        if size < 0 or size >= 8**11:
            header[-388:-376] = (size % 2**96).to_bytes(12, "big")
            header[-388] = 0xFF if size < 0 else 0x80
        else:
            header[-388:-376] = b"%011o\0" % size
        header[-364:-356] = b" " * 8
        header[-364:-356] = b"%06o\0 " % sum(header[-512:])
        stream.write(header)
        if isinstance(content, bytes):
            stream.write(content + bytes(-len(content) % 512))
    return stream.getvalue() + bytes(10_240)


def link(target, kind=tarfile.SYMTYPE):
    return {"type": kind, "linkname": target}


KINDS = {
    "x.tar": lambda *members: tarred(*members),
    "x.tar.gz": lambda *members: gzip.compress(tarred(*members)),
    "x.tgz": lambda *members: gzip.compress(tarred(*members)),
    "x.tar.bz2": lambda *members: bz2.compress(tarred(*members)),
    "x.tar.xz": lambda *members: lzma.compress(tarred(*members)),
    "x.zip": zipped,
}


@pytest.fixture
def unpacked(tmp_path):
    """A function that unpacks bytes under a name, and returns the files; none if it is refused."""
    out = tmp_path / "in" / "out"

    def unpacked(name, content):
        (tmp_path / name).write_bytes(content)
        try:
            count = unpack(str(tmp_path / name), str(out))
        except UsageError as error:
            assert str(error).isprintable()
            assert not out.exists() or not os.listdir(out)
            raise
        finally:
            assert set(os.listdir(tmp_path)) <= {"in", name}
        paths = [path for path in out.rglob("*") if path.is_file() and not path.is_symlink()]
        assert len(paths) == count
        return {str(path.relative_to(out)): path.read_bytes() for path in paths}

    return unpacked


@pytest.mark.parametrize("name", KINDS)
def test_archives_are_unpacked(unpacked, name):
    assert unpacked(name, KINDS[name](*FILES)) == {"a/b.txt": b"one", "c.txt": b"two" * 10_000}


def test_archives_add_to_a_folder(tmp_path):
    for name, files in (("x.zip", FILES), ("y.zip", [("a/d.txt", b"three"), ("c.txt", b"new")])):
        (tmp_path / name).write_bytes(zipped(*files))
        unpack(str(tmp_path / name), str(tmp_path / "out"))
    assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"one"
    assert (tmp_path / "out" / "c.txt").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil"])
@pytest.mark.parametrize("kind", ["x.tgz", "x.zip"])
def test_no_path_leaves_the_folder(unpacked, kind, name):
    with pytest.raises(UsageError, match="leaves the archive's folder"):
        unpacked(kind, KINDS[kind](("good.txt", b"x"), (name, b"evil")))


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "a/\x7f", "d/" * 101 + "a"])
@pytest.mark.parametrize("kind", ["x.tar", "x.zip"])
def test_what_is_no_name_for_a_file_is_refused(tmp_path, unpacked, kind, name):
    with pytest.raises(UsageError, match="refused to unpack: .* is no name for a file"):
        unpacked(kind, KINDS[kind](("good", b"x"), (name, b"x")))


@pytest.mark.parametrize("name", [*".. . a a/ //x ~/x a/b/c .unpack".split(), "x" * 300])
@pytest.mark.parametrize("kind", ["x.tar", "x.zip"])
def test_an_odd_name_stays_in_the_folder_or_is_refused(unpacked, kind, name):
    with contextlib.suppress(UsageError):
        found = unpacked(kind, KINDS[kind](("a", b"one"), (name, b"two"), ("a/last", b"three")))
        assert b"three" in found.values()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "missing", "link"])
def test_no_link_leaves_the_archive(unpacked, kind, target):
    with pytest.raises(UsageError, match="'link' is no file, or a link to none in|unpack"):
        unpacked("x.tar", tarred(("link", link(target, kind)), ("link/evil", b"x")))


def test_devices_are_refused_and_links_inside_become_copies(unpacked):
    with pytest.raises(UsageError, match="'pipe' is no file"):
        unpacked("x.tar", tarred(("pipe", {"type": tarfile.FIFOTYPE})))
    found = unpacked("x.tar", tarred(("a/b", b"one"), ("a/l", link("b"))))
    assert found == {"a/b": b"one", "a/l": b"one"}


def test_rights_and_owners_are_not_those_of_the_archive(tmp_path, unpacked):
    unpacked("x.tar", tarred(("a", {"size": 0, "mode": 0o7777, "uid": 12345})))
    about = (tmp_path / "in" / "out" / "a").stat()
    assert not about.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | 0o111)
    assert about.st_uid == os.getuid()


WHOLE = {**{name: make(*FILES) for name, make in KINDS.items()}, "x.gz": gzip.compress(ZEROS)}
# a plain tar file has no checksum of contents; the one of gzip stands at the end
DAMAGED = [(name, content[: len(content) * 2 // 3]) for name, content in WHOLE.items()]
DAMAGED += [("x.tgz", WHOLE["x.tgz"][:-8] + b"\0" + WHOLE["x.tgz"][-7:])]
DAMAGED += [("x.tar", WHOLE["x.tar"][:1024])]
DAMAGED += [("x.tar", WHOLE["x.tar"][:1024] + b"x" + WHOLE["x.tar"][1025:])]
DAMAGED += [("x.zip", WHOLE["x.zip"][:40] + b"?" + WHOLE["x.zip"][41:])]
DAMAGED += [("x.zip", zipped())]
DAMAGED += [(name, b"") for name in WHOLE] + [(name, b"<html></html>") for name in WHOLE]


@pytest.mark.parametrize("name, content", DAMAGED)
def test_what_is_damaged_is_not_unpacked(tmp_path, unpacked, name, content):
    with pytest.raises(UsageError, match="cannot unpack"):
        unpacked(name, content)
    with pytest.raises(Damaged):
        check_archive(str(tmp_path / name), name)


def overlapping():
    """A zip file all of whose names stand for one piece of it, which is announced as larger."""
    content = bytearray(zipped(("a", ZEROS)))
    start, end = content.rindex(b"PK\1\2"), content.rindex(b"PK\5\6")
    content[end:] = content[start:end] * 99 + content[end:]
    return bytes(content)


def links(kind):
    return [("a", ZEROS), *((f"l{i}", link("a", kind)) for i in range(300))]


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
def test_a_bomb_is_not_unpacked(tmp_path, unpacked, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(archives, "_HARMLESS", 100_000)
        with pytest.raises(UsageError, match="unpacks to more than 200 times its own size"):
            unpacked(name, BOMBS[name])
    if name == "x.gz":  # text that is packed well
        assert check_archive(str(tmp_path / name), name) == len(ZEROS)


LOOPS = {
    "itself": [("a", {"size": -512})],
    "the one before": [("a", b""), ("b", b""), ("c", {"size": -1024})],
    "before the file": [("a", {"size": -(1 << 40)})],
    "links in a circle": [("a", link("b")), ("b", link("a"))],
    "beyond the end": [("a", {"size": 1 << 80})],
    "a little beyond the end": [("a", {"size": 20_000})],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_tar_file_that_leads_in_circles_or_nowhere_is_refused(unpacked, name):
    with pytest.raises(UsageError, match="unpack"):
        unpacked("x.tar", tarred(*LOOPS[name]))


@pytest.mark.parametrize("name", ["x.zip", "x.tgz", "x.gz"])
def test_more_than_the_disk_holds_is_not_begun(unpacked, monkeypatch, name):
    usage = shutil.disk_usage("/")._replace(free=2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UsageError, match=r"x\.\w+ takes .* unpacked, and .* are free"):
        unpacked(name, WHOLE[name])


def test_an_unknown_kind_is_refused(unpacked):
    with pytest.raises(UsageError, match="its name ends like no archive's"):
        unpacked("x.rar", b"")


@pytest.mark.parametrize(
    "text, algorithm",
    [("a" * 32, "md5"), ("SHA1:" + "A" * 40, "sha1"), ("b" * 64, "sha256"), ("c" * 128, "sha512")],
)
def test_the_length_of_a_checksum_tells_its_kind(text, algorithm):
    assert Checksum.parse(text).algorithm == algorithm


@pytest.mark.parametrize("text", ["", "abc", "z" * 40, "sha256:" + "a" * 40])
def test_what_is_no_checksum_is_refused(text):
    with pytest.raises(UsageError, match="is no checksum"):
        Checksum.parse(text)


def test_a_checksum_is_found_in_either_kind_of_list():
    lines = ["a" * 40 + "  other.bz2", "b" * 40 + " *dir/file.bz2", f"SHA1 (bsd.bz2) = {'c' * 40}"]
    assert Checksum.from_listing(lines, "file.bz2").value == "b" * 40
    assert Checksum.from_listing(lines, "bsd.bz2").value == "c" * 40
    assert Checksum.from_listing(lines, "le.bz2") is None
