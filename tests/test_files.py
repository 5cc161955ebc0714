"""Reading of text files, whatever they are packed in, and folders that appear when complete."""

import bz2
import errno
import gzip
import lzma
import os
import shutil
import signal
import tarfile
from contextlib import ExitStack, suppress

import pytest

from fairseq_posenc import files
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines, stream_lines
from fairseq_posenc.tools import writing
from fairseq_posenc.tools.writing import replacing, replacing_all, replacing_files, replacing_folder


@pytest.mark.parametrize(
    "name, compress",
    [("a.txt", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress), ("a.xz", lzma.compress)],
)
def test_plain_and_compressed_files_are_read_alike(tmp_path, name, compress):
    path = tmp_path / name
    path.write_bytes(compress(("\ufeffé\nb\r\n" * 2).encode()))
    assert read_lines(str(path)) == ["é", "b", "\ufeffé", "b"]


TAR = tarfile.TarInfo("a").tobuf()
TMX = b'<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
CES = b'<?xml version="1.0"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD//EN" "">\n<cesAlign>'


@pytest.mark.parametrize(
    "content, told",
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "compressed with Zstandard.*: zstd -d .*a.en -o FILE$"),
        (
            gzip.compress(b"words", mtime=0),
            "gzip: unpack .* tar -xf .*a.en, .* call text .*a.en.gz$",
        ),
        (bz2.compress(b"words"), "compressed with bzip2: call it .*a.en.bz2$"),
        (lzma.compress(b"words"), "compressed with xz: call it .*a.en.xz$"),
        (
            b"PK\x03\x04%b\nmodel/data.pkl" % bytes(25),
            "a checkpoint of PyTorch, and no text; a log",
        ),
        (b"\x80\x02\x8a\nl\xfc\x9cF", "a checkpoint of PyTorch, and no text; a log is what "),
        (b"PK\x03\x04", "a ZIP archive: unzip .*a.en$"),
        (TAR, "a tar archive: tar -xf .*a.en$"),
        (b"PAR1\x15\x04", """a Parquet table: .*read_parquet\\(".*a.en"\\).translation"""),
        (b"\xff\xff\xff\xff\x10\0", """an Arrow file: .*load_from_disk\\("FOLDER"\\)"""),
        ("words".encode("utf-16"), "UTF-16: iconv -f UTF-16"),
        (TMX, "TMX: tmxt.py --codelist en,fr .*a.en FILE.tsv"),
        (CES, "XML as OPUS has it: opus_read .* -p raw -ln -wm moses"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><text>\n<s id="1">', "XML as OPUS has it: opus_read"),
        (b'<?xml version="1.0"?>\n<dataset id="wmttest2022">', "WMT's or .*: sacrebleu -t wmt22"),
        (b'<SRCSET setid="newstest2019" srclang="any">', "WMT's or .*: sacrebleu -t wmt22"),
        (b'<mteval>\n<refset setid="iwslt2014">', "IWSLT's XML: sacrebleu -t"),
        (b"<url>http://talk</url>\n", "IWSLT's tags: grep -v '\\^ \\*<' .*a.en > FILE"),
        (b'<doc docid="1" genre="lectures">\n<url>', "IWSLT's tags: grep"),
        (b'# Words\n#, fuzzy\n\nmsgid ""\nmsgstr ""\n', "a PO file: .*po_text FOLDER"),
        (b'<mediawiki xmlns="http">', "a dump of Wikipedia: wikiextractor .*a.en "),
        (b'<?xml version="1.0"?>\n<xliff version="1.2">', "XML: extract its text"),
    ],
)
def test_what_is_no_text_is_named_with_what_makes_text_of_it(tmp_path, content, told):
    (tmp_path / "a.en").write_bytes(content)
    with pytest.raises(UsageError, match=told):
        read_lines(str(tmp_path / "a.en"))


def test_text_that_begins_with_a_tag_is_text(tmp_path):
    lines = ["<doc id='1'>", "<b>bold</b>", "<tmxes>", "<text> PK"]
    for line in lines:
        (tmp_path / "a.en").write_text(line)
        assert read_lines(str(tmp_path / "a.en")) == [line]


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
def test_bad_files_are_reported_in_one_line(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=told):
        list(stream_lines(str(tmp_path / name.replace("b.txt", "a.txt"))))


def test_a_pipe_that_is_read_again_asks_for_a_file():
    end, other = os.pipe()
    os.write(other, b"line\n")
    os.close(other)
    path = f"/dev/fd/{end}"
    assert read_lines(path) == ["line"]
    with pytest.raises(
        UsageError, match=f"{path} is empty; a pipe can be read only once: give a file"
    ):
        read_lines(path)
    os.close(end)


@pytest.mark.parametrize("name, compress", [("a.txt", bytes), ("a.gz", gzip.compress)])
def test_a_line_without_end_is_not_held_in_memory(tmp_path, monkeypatch, name, compress):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    (tmp_path / name).write_bytes(compress(b"a\n" + b"b" * 998 + b"\n" + b"c" * 1000))
    lines = stream_lines(str(tmp_path / name))
    assert [next(lines), next(lines)] == ["a", "b" * 998]
    with pytest.raises(UsageError, match="line 3: longer than any line of text"):
        next(lines)


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


def test_a_folder_is_replaced_by_renames_and_the_old_one_is_back_if_the_second_fails(
    tmp_path, monkeypatch
):
    def rename(path, target):
        assert not removed, "nothing may be removed before the new folder has its name"
        if len(renamed) == fails:
            renamed.append(target)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        renamed.append(target)
        return really_rename(path, target)

    def remove(path, **options):
        removed.append(path)
        return really_remove(path, **options)

    path, fails, renamed, removed = tmp_path / "model", None, [], []
    really_rename, really_remove = os.replace, shutil.rmtree
    for content in ("old", "new"):
        with replacing_folder(str(path)) as folder:
            (tmp_path / folder / "file").write_text(content)
            monkeypatch.setattr(os, "replace", rename)
            monkeypatch.setattr(shutil, "rmtree", remove)
        monkeypatch.undo()
        assert str(path) not in removed and (path / "file").read_text() == content
        renamed, removed = [], []
    fails = 1
    monkeypatch.setattr(os, "replace", rename)
    with pytest.raises(UsageError, match="cannot write"), replacing_folder(str(path)) as folder:
        (tmp_path / folder / "file").write_text("newest")
    assert (path / "file").read_text() == "new" and os.listdir(tmp_path) == ["model"]


def test_another_file_that_fails_while_one_is_written_is_named(tmp_path):
    """Not to be taken for the one that is written, of which there is nothing wrong."""
    with pytest.raises(UsageError) as told, replacing(str(tmp_path / "new")):
        (tmp_path / "missing").read_text()
    assert str(told.value).endswith(f"No such file or directory: {tmp_path / 'missing'}")
    assert list(tmp_path.iterdir()) == []


def write_files(folder, manager, text="text"):
    """Write ``folder/out/model/{a,b}`` by one of the ways."""
    model = folder / "out" / "model"
    with ExitStack() as opened:
        if manager is replacing:
            streams = [opened.enter_context(replacing(str(model / name))) for name in "ab"]
        elif manager is replacing_all:
            begin = opened.enter_context(replacing_all())
            streams = [begin(str(model / name)) for name in "ab"]
        else:
            options = {"last": "b"} if manager is replacing_files else {}
            partial = opened.enter_context(manager(str(model), **options))
            streams = [opened.enter_context(open(f"{partial}/{name}", "w")) for name in "ab"]
        for stream in streams:
            stream.write(text)


WAYS = [replacing, replacing_all, replacing_folder, replacing_files]
every_way = pytest.mark.parametrize("manager", WAYS)


@every_way
def test_files_are_on_the_disk_before_they_get_their_names_and_these_after(
    manager, tmp_path, monkeypatch
):
    synced, named = {}, []

    def fsync(number, really=os.fsync):
        really(number)
        synced[os.fstat(number).st_ino] = (len(named), os.fstat(number).st_size)

    def replace(source, target, really=os.replace):
        named.append(target)
        really(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_files(tmp_path, manager)
    model = tmp_path / "out" / "model"
    for path in (model / "a", model / "b"):
        renamed = named.index(str(path if str(path) in named else model))
        done, size = synced[path.stat().st_ino]
        assert done <= renamed and size == 4
    folder = model.parent if manager is replacing_folder else model
    assert synced[folder.stat().st_ino][0] == len(named)


@every_way
def test_a_disk_that_cannot_sync_is_left_alone(manager, tmp_path, monkeypatch):
    def fail(number):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", fail)
    write_files(tmp_path, manager)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


@every_way
def test_processes_of_one_number_on_two_machines_write_one_name(manager, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 7)
    path = str(tmp_path / "a")
    if manager in (replacing, replacing_all):
        with replacing(path) as one, replacing(path) as two:
            one.write("one")
            two.write("two")
        assert (tmp_path / "a").read_text() == "one"
    else:
        options = {"last": "b"} if manager is replacing_files else {}
        with manager(path, **options) as one, manager(path, **options) as two:
            assert one != two
    assert os.listdir(tmp_path) == ["a"]


def left_by_a_killed_process(folder, manager):
    """Names that a process leaves which is killed while it writes."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 2)
        with suppress(BaseException):
            writing.sync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
            write_files(folder, manager)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return child, {path for path in folder.rglob("*") if ".part-" in path.name}


@every_way
def test_what_a_killed_process_has_left_is_removed_by_the_next(manager, tmp_path):
    child, left = left_by_a_killed_process(tmp_path, manager)
    assert left
    theirs, running = [], []
    for path in left:
        own = f"-{child}-"
        machine = path.name.rpartition(".part-")[2].partition("-")[0]
        theirs.append(path.with_name(path.name.replace(machine, "0" * 12)))
        running.append(path.with_name(path.name.replace(own, f"-{os.getppid()}-")))
        for name in (theirs[-1], running[-1]):
            name.mkdir()
    write_files(tmp_path, manager)
    assert not any(path.exists() for path in left)
    # of another machine, and of a process that runs
    assert all(path.exists() for path in (*theirs, *running))


def test_what_was_there_before_is_kept_until_there_is_a_new_one(tmp_path):
    child, [left] = left_by_a_killed_process(tmp_path, replacing_folder)
    before = left.with_name(left.name.replace(".part-", ".old-"))
    before.mkdir()
    beside = before.with_name(before.name.replace("model.", "model.v2."))  # of another folder
    beside.mkdir()
    with suppress(ZeroDivisionError), replacing_folder(str(tmp_path / "out" / "model")):
        raise ZeroDivisionError
    assert before.exists()
    write_files(tmp_path, replacing_folder)
    write_files(tmp_path, replacing_folder)
    assert sorted(os.listdir(tmp_path / "out")) == ["model", beside.name]


class LibrarysError(Exception):
    """As those of libraries in Rust."""


@every_way
def test_a_full_disk_is_one_line_in_whatever_words_a_library_tells_it(manager, tmp_path):
    def fail(kind):
        if kind is LibrarysError:
            raise kind("while serializing: I/O error: No space left on device (os error 28)")
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            raise kind("unexpected pos 64 vs 0") from None

    for kind in (LibrarysError, RuntimeError):
        with pytest.raises(UsageError, match="cannot write .*: No space left on device$"):
            options = {"last": "b"} if manager is replacing_files else {}
            with ExitStack() as opened:
                arguments = [] if manager is replacing_all else [str(tmp_path / "a")]
                found = opened.enter_context(manager(*arguments, **options))
                if manager is replacing_all:
                    found(str(tmp_path / "a"))
                fail(kind)
    for kind in (ZeroDivisionError, RuntimeError):
        with pytest.raises(kind), replacing(str(tmp_path / "b")):
            raise kind("something else")


def test_new_files_have_the_rights_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(str(tmp_path / "a"), "wb") as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("text", ["0_1", "２", "1 ", "", "1e", "0x1", "infinity", "١"])
def test_numbers_are_spelt_in_plain_digits(text):
    with pytest.raises(ValueError, match="is not a number"):
        parse_number(text)
    assert list(map(parse_number, ["3", "-.5", "+2.", "1e-3", "-inf"])) == [
        3, -0.5, 2, 0.001, float("-inf"),
    ]  # fmt: skip
