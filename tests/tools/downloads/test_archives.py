"""Unpacking: nothing leaves the folder, nothing broken passes for whole, and nothing is endless."""

import bz2
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
from fairseq_posenc.tools.downloads import archives
from fairseq_posenc.tools.downloads.archives import unpack

FILES = [("a/b.txt", b"one"), ("./c.txt", b"two" * 10_000)]
ZEROS = bytes(3_000_000)


def zipped(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(*members):
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


def links(kind, count=300):
    """A file, and links to it."""
    return [("a", ZEROS), *((f"l{i}", link("a", kind)) for i in range(count))]


def overlapping():
    """A zip file all of whose names stand for one piece of it, which is announced as larger."""
    content = bytearray(zipped(("a", ZEROS)))
    start, end = content.rindex(b"PK\1\2"), content.rindex(b"PK\5\6")
    content[end:] = content[start:end] * 99 + content[end:]
    return bytes(content)


KINDS = {
    "x.tar": tarred,
    "x.tar.gz": lambda *members: gzip.compress(tarred(*members)),
    "x.tgz": lambda *members: gzip.compress(tarred(*members)),
    "x.tar.bz2": lambda *members: bz2.compress(tarred(*members)),
    "x.tar.xz": lambda *members: lzma.compress(tarred(*members)),
    "x.zip": zipped,
}
WHOLE = {**{name: make(*FILES) for name, make in KINDS.items()}, "x.gz": gzip.compress(ZEROS)}


@pytest.fixture
def unpacked(tmp_path):
    """A function that unpacks bytes under a name, and returns the files; none if it is refused."""
    out = tmp_path / "in" / "out"

    def unpacked(name, content):
        (tmp_path / name).write_bytes(content)
        try:
            count = unpack(str(tmp_path / name), str(out))
        except UsageError:
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


@pytest.mark.parametrize(
    "members",
    [
        [("a/b", b"one"), ("a/l", link("b"))],
        [("a/l", link("b")), ("a/b", b"one")],
        [("a/b", b"one"), ("a/l", link("a/b", tarfile.LNKTYPE))],
    ],
)
def test_links_inside_become_copies(unpacked, members):
    assert unpacked("x.tar", tarred(*members)) == {"a/b": b"one", "a/l": b"one"}


def test_special_rights_and_owners_are_not_those_of_the_archive(tmp_path, unpacked):
    unpacked("x.tar", tarred(("a", {"size": 0, "mode": 0o7777, "uid": 12345})))
    about = (tmp_path / "in" / "out" / "a").stat()
    assert not about.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | 0o022)
    assert about.st_uid == os.getuid()


OUTSIDE = ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil", "d/" * 101 + "a"]
GOOD = ("good", b"x")
SYMBOLIC, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
# (name, content, what is said)
HOSTILE = [
    (kind, KINDS[kind](GOOD, (name, b"evil")), "leaves the archive's folder")
    for kind in ("x.tgz", "x.zip") for name in OUTSIDE
]  # fmt: skip
HOSTILE += [
    ("x.tar", tarred(GOOD, ("link", about), ("link/evil", b"x")), "'link' is refused: not a file")
    for about in [
        *(link(to, kind) for kind in (SYMBOLIC, HARD)
          for to in ("../secret", "/etc/passwd", "missing", "link", ".", "a" * 99)),
        *({"type": kind} for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE)),
    ]
]  # fmt: skip
HOSTILE += [
    ("x.tgz", gzip.compress(tarred(GOOD, ("l0", link("good", kind)), *(
        (f"l{i}", link(f"l{i - 1}", kind)) for i in range(1, 900)))), "'l1' is refused: not a file")
    for kind in (SYMBOLIC, HARD)
]  # fmt: skip
HOSTILE += [
    ("x.tar", tarred(*members), "unpack")
    for members in [
        [("itself", {"size": -512})],
        [("a", b""), ("b", b""), ("the one before", {"size": -1024})],
        [("before the file", {"size": -(1 << 40)})],
        [("beyond the end", {"size": 1 << 80})],
        [("a little beyond the end", {"size": 20_000})],
        [("file", b"x"), ("file/in it", b"x")],
    ]
]
# a plain tar file has no checksum of contents; the one of gzip stands at the end
HOSTILE += [(name, content[: len(content) * 2 // 3], "cannot unpack")
            for name, content in WHOLE.items()]  # fmt: skip
HOSTILE += [(name, page, "cannot unpack") for name in WHOLE for page in (b"", b"<html></html>")]
HOSTILE += [
    ("x.tgz", WHOLE["x.tgz"][:-8] + b"\0" + WHOLE["x.tgz"][-7:], "CRC"),
    ("x.tar", WHOLE["x.tar"][:1024], "cut off behind"),
    ("x.tar", WHOLE["x.tar"][:1024] + b"x" + WHOLE["x.tar"][1025:], "cut off behind"),
    ("x.zip", WHOLE["x.zip"][:40] + b"?" + WHOLE["x.zip"][41:], "'a/b.txt' in it is broken"),
    ("x.rar", b"x", "its name ends like no archive's"),
]


@pytest.mark.parametrize("case", range(len(HOSTILE)))
def test_what_is_hostile_or_damaged_leaves_no_file(unpacked, case):
    name, content, told = HOSTILE[case]
    with pytest.raises(UsageError, match=told):
        unpacked(name, content)


BOMBS = {
    "x.zip": zipped(("a", ZEROS)),
    "overlapping.zip": overlapping(),
    "x.gz": gzip.compress(ZEROS),
    "x.bz2": bz2.compress(ZEROS),
    "x.xz": lzma.compress(ZEROS),
    "x.tgz": gzip.compress(tarred(("a", ZEROS))),
    "hard links.tar": tarred(*links(HARD)),
    "symbolic links.tar": tarred(*links(SYMBOLIC)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_not_unpacked_and_text_that_is_packed_well_is(unpacked, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(archives, "_HARMLESS", 100_000)
        with pytest.raises(UsageError, match="unpacks to more than 200 times its own size"):
            unpacked(name, BOMBS[name])
    if name == "x.gz":
        assert unpacked(name, BOMBS[name]) == {"x": ZEROS}


def test_more_members_than_any_corpus_has_are_refused(unpacked, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 10)
    with pytest.raises(UsageError, match="it has over 10 members"):
        unpacked("x.tar", tarred(*((f"f{i}", b"") for i in range(11))))


@pytest.mark.parametrize("name", ["x.zip", "x.tgz", "x.gz"])
def test_more_than_the_disk_holds_is_not_begun(unpacked, monkeypatch, name):
    usage = shutil.disk_usage("/")._replace(free=2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UsageError, match=r"x\.\w+ takes .* unpacked, and .* are free"):
        unpacked(name, WHOLE[name])
