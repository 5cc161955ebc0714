"""Unpacking: nothing leaves the folder, and nothing broken passes for whole."""

import gzip
import io
import shutil
import tarfile
import zipfile

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads.archives import Checksum, Damaged, check_archive, unpack


def make_tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                archive.addfile(member)
    return str(path)


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return str(path)


FILES = [("a/b.txt", b"one"), ("./c.txt", b"two")]


@pytest.mark.parametrize(
    "make, name, mode",
    [
        (make_tar, "x.tar.gz", ["w:gz"]),
        (make_tar, "x.tgz", ["w:gz"]),
        (make_tar, "x.tar.bz2", ["w:bz2"]),
        (make_tar, "x.tar.xz", ["w:xz"]),
        (make_tar, "x.tar", ["w"]),
        (make_zip, "x.zip", []),
    ],
)
def test_archives_are_checked_and_unpacked(make, name, mode, tmp_path):
    path = make(tmp_path / name, FILES, *mode)
    check_archive(path, name)
    assert unpack(path, str(tmp_path / "out")) == 2
    assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"one"
    assert (tmp_path / "out" / "c.txt").read_bytes() == b"two"
    assert sorted(found.name for found in (tmp_path / "out").iterdir()) == ["a", "c.txt"]


def test_archives_add_to_a_folder(tmp_path):
    out = tmp_path / "out"
    unpack(make_zip(tmp_path / "x.zip", FILES), str(out))
    unpack(make_zip(tmp_path / "y.zip", [("a/d.txt", b"three"), ("c.txt", b"new")]), str(out))
    assert (out / "a" / "b.txt").read_bytes() == b"one"
    assert (out / "a" / "d.txt").read_bytes() == b"three"
    assert (out / "c.txt").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil"])
@pytest.mark.parametrize("make, ending", [(make_tar, "tar.gz"), (make_zip, "zip")])
def test_no_path_leaves_the_folder(make, ending, name, tmp_path):
    path = make(tmp_path / f"x.{ending}", [("good.txt", b"x"), (name, b"evil")])
    with pytest.raises(UsageError, match="leaves the archive's folder"):
        unpack(path, str(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir()) and not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "missing"])
def test_no_link_leaves_the_archive(kind, target, tmp_path):
    (tmp_path / "secret").write_text("mine")
    path = make_tar(tmp_path / "x.tar.gz", [("link", (kind, target)), ("link/evil", b"x")])
    with pytest.raises(UsageError, match="'link' is no file, or a link to none in"):
        unpack(path, str(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir())


def test_a_link_inside_the_archive_becomes_a_copy(tmp_path):
    members = [("a/b.txt", b"one"), ("a/l.txt", (tarfile.SYMTYPE, "b.txt"))]
    unpack(make_tar(tmp_path / "x.tar", members, "w"), str(tmp_path / "out"))
    copy = tmp_path / "out" / "a" / "l.txt"
    assert copy.read_bytes() == b"one" and not copy.is_symlink()


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.gz", "x.tar"])
def test_half_an_archive_is_noticed_and_leaves_nothing(name, tmp_path):
    path = tmp_path / name
    content = bytes(range(256)) * 100
    if name == "x.zip":
        make_zip(path, [("a", content), ("b", content)])
    elif name == "x.gz":
        path.write_bytes(gzip.compress(content))
    else:
        make_tar(path, [("a", content), ("b", content)], "w:gz" if name != "x.tar" else "w")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(Damaged):
        check_archive(str(path), name)
    with pytest.raises(UsageError, match="cannot unpack"):
        unpack(str(path), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_changed_byte_in_a_zip_is_noticed(tmp_path):
    path = make_zip(tmp_path / "x.zip", [("a.txt", bytes(range(256)))])
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[100] ^= 1
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(Damaged):
        check_archive(path, "x.zip")


def test_a_changed_byte_in_a_compressed_tar_is_not_unpacked(tmp_path):
    path = make_tar(tmp_path / "x.tgz", [("a.txt", bytes(5000))])
    whole = (tmp_path / "x.tgz").read_bytes()
    # in the checksum, which stands at the end
    (tmp_path / "x.tgz").write_bytes(whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])
    with pytest.raises(UsageError, match="no whole tgz file .CRC check failed"):
        unpack(path, str(tmp_path / "out"))


@pytest.mark.parametrize("damage", [lambda whole: whole[:1024], lambda whole: b"x".join([
    whole[:1024], whole[1025:]])], ids=["cut off", "broken header"])  # fmt: skip
def test_a_tar_that_ends_after_its_first_file_is_not_unpacked(tmp_path, damage):
    path = make_tar(tmp_path / "x.tar", [("a.txt", b"one"), ("b.txt", b"two")], "w")
    (tmp_path / "x.tar").write_bytes(damage((tmp_path / "x.tar").read_bytes()))
    with pytest.raises(UsageError, match="broken or cut off behind 1024 bytes"):
        unpack(path, str(tmp_path / "out"))


def test_more_than_the_disk_holds_is_not_begun(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"one"))
    paths = [make_zip(tmp_path / "x.zip", FILES), make_tar(tmp_path / "x.tgz", FILES)]
    for path in [*paths, str(tmp_path / "x.gz")]:
        with pytest.raises(UsageError, match=r"x\.\w+ takes .* unpacked, and only .* are free"):
            unpack(path, str(tmp_path / "out"))
        assert not list((tmp_path / "out").iterdir())


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(UsageError, match="its name ends like no archive's"):
        unpack(str(tmp_path / "x.rar"), str(tmp_path / "out"))


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
    assert Checksum.from_listing(iter(lines), "file.bz2").value == "b" * 40
    assert Checksum.from_listing(iter(lines), "bsd.bz2").value == "c" * 40
    assert Checksum.from_listing(iter(lines), "le.bz2") is None
