"""Downloads from a server that misbehaves: what has a file's name is the whole file, or nothing."""

import bz2
import hashlib
import os
from types import SimpleNamespace

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads import web
from fairseq_posenc.tools.prepare.downloads.archives import Checksum
from fairseq_posenc.tools.prepare.downloads.download import download
from fairseq_posenc.tools.prepare.downloads.web import Patience

CONTENT = bytes(range(256)) * 400
SHA1 = Checksum("sha1", hashlib.sha1(CONTENT).hexdigest())
QUICK = Patience(attempts=2, pause=0.01, timeout=5)


@pytest.fixture
def get(server, tmp_path):
    """A function that downloads a file and returns what it holds."""

    def get(*names, to="file.bin", **options):
        options = {"patience": QUICK, "quiet": True, **options}
        urls = [name if "://" in name else f"{server.url}/{name}" for name in names]
        download(urls or [f"{server.url}/file.bin"], str(tmp_path / to), **options)
        assert os.listdir(tmp_path) == [to]
        return (tmp_path / to).read_bytes()

    return get


def ranges(server):
    return [asked for _, asked, _ in server.requests]


def test_a_file_is_loaded_and_the_program_says_who_it_is(get, server):
    assert get() == CONTENT
    assert [agent.split("/")[0] for _, _, agent in server.requests] == ["fairseq_posenc"]


def test_a_cut_connection_is_continued_where_it_broke(get, server):
    server.cuts = [1000, 50000]
    assert get() == CONTENT
    assert ranges(server) == [None, "bytes=1000-", "bytes=51000-"]


def test_tries_are_counted_from_the_last_byte_that_came(get, server):
    server.cuts = [10] * 8
    assert get() == CONTENT
    assert len(server.requests) == 9


def test_a_killed_download_is_continued_by_the_next_run(get, server, tmp_path):
    server.cuts = [700] + [0] * 3
    with pytest.raises(UsageError, match="the connection ended early"):
        get()
    assert not (tmp_path / "file.bin").exists()
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:700]
    assert get() == CONTENT
    assert ranges(server)[-1] == "bytes=700-"


def test_a_part_that_is_whole_is_not_loaded_again(get, server, tmp_path):
    server.cuts = [0] * 3
    with pytest.raises(UsageError):
        get()
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    server.requests.clear()
    assert get() == CONTENT and not server.requests


def test_a_server_without_ranges_starts_anew(get, server):
    server.cuts, server.ranges = [1000], False
    assert get() == CONTENT


@pytest.mark.parametrize(
    "shorter, careless", [(0, False), (9, False), (51200, False), (9, True), (51200, True)]
)
def test_two_versions_of_a_file_are_never_joined(get, server, shorter, careless):
    server.careless = careless
    server.cuts = [60000] + [0] * 3
    with pytest.raises(UsageError):
        get()
    server.files["/file.bin"] = CONTENT[shorter:][::-1]
    assert get() == CONTENT[shorter:][::-1]


def test_a_part_of_unknown_origin_is_not_continued(get, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"something else")
    assert get() == CONTENT


def test_passing_errors_of_the_server_are_waited_out(get, server):
    server.failures = [503, 429]
    assert get() == CONTENT


def test_the_next_mirror_is_tried_and_a_missing_file_is_not_asked_for_twice(get, server):
    assert get("gone/file.bin", "file.bin") == CONTENT
    assert [path for path, _, _ in server.requests] == ["/gone/file.bin", "/file.bin"]


def test_a_mirror_continues_what_another_began_where_that_can_be_verified(get, server):
    server.files["/other"] = CONTENT
    server.cuts = [5000] + [0] * 3
    assert get("file.bin", "other", checksum=SHA1) == CONTENT
    assert ranges(server)[-1] == "bytes=5000-"


def test_a_mirror_does_not_continue_what_nothing_can_verify(get, server):
    server.files["/other"] = CONTENT[::-1]
    server.cuts = [5000] + [0] * 3
    assert get("file.bin", "other") == CONTENT[::-1]
    assert ranges(server)[-1] is None


def test_every_mirror_is_named_when_all_fail(get):
    with pytest.raises(UsageError) as caught:
        get("a.bin", "b.bin")
    message = str(caught.value)
    assert "a.bin: 404 Not Found; " in message and "b.bin: 404" in message and "\n" not in message


def test_no_server_at_all_is_said_in_one_line(get):
    with pytest.raises(UsageError, match=r"127.0.0.1:9/f: Connection refused \(3 times\)$"):
        get("http://127.0.0.1:9/f")


def test_a_wrong_checksum_is_refused_and_the_good_mirror_taken(get, server, tmp_path):
    server.files["/bad"] = b"x" * 10
    with pytest.raises(UsageError, match="damaged: its sha1 is"):
        get("bad", checksum=SHA1)
    assert not (tmp_path / "file.bin").exists()
    assert get("bad", "file.bin", checksum=SHA1) == CONTENT


def test_a_continued_file_that_is_damaged_is_loaded_afresh_once(get, server, tmp_path):
    server.cuts = [1000] + [0] * 3
    with pytest.raises(UsageError):
        get()
    (tmp_path / "file.bin.part").write_bytes(b"?" * 1000)
    assert get(checksum=SHA1) == CONTENT
    assert ranges(server)[-2:] == ["bytes=1000-", None]


def test_an_archive_is_read_to_its_end(get, server):
    whole = bz2.compress(CONTENT)
    server.files.update({"/a": b"<html>Not found</html>", "/b": whole[:-20], "/c": whole})
    assert get("a", "b", "c", to="file.bz2") == whole
    with pytest.raises(UsageError, match="a: what it gave is damaged: it is no whole bz2 file"):
        get("a", to="other.bz2")


def test_a_file_that_is_there_is_not_loaded_but_compared(get, server, tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT)
    assert get(checksum=SHA1) == CONTENT and not server.requests
    (tmp_path / "file.bin").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there already, but its sha1 is"):
        get(checksum=SHA1)
    assert get() == b"mine"


def test_two_processes_do_not_write_one_file(server, tmp_path, get):
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / "file.bin.part", "ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process is downloading"):
            get()


def test_a_full_disk_and_a_wrong_place_are_said(get, monkeypatch):
    with pytest.raises(UsageError, match="cannot write /dev/null/file"):
        get(to="/dev/null/file")
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(UsageError, match="0.0 GB of disk are free"):
        get()


def test_other_addresses_than_of_the_web_are_refused(get):
    with pytest.raises(UsageError, match="ftp://x/y: it is no http or https address"):
        get("ftp://x/y")


def test_proxies_come_from_the_environment(server, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.files["http://example.test/f"] = CONTENT
    download(["http://example.test/f"], str(tmp_path / "f"), quiet=True, patience=QUICK)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_pauses_grow_and_respect_the_server(monkeypatch):
    slept = []
    monkeypatch.setattr(web.time, "sleep", slept.append)
    errors = [web.Cut("a"), web.Cut("b", 30.0), web.Cut("c"), web.Cut("d", 1e9)]

    def action():
        if errors:
            raise errors.pop(0)
        return "done"

    assert web.insist(action, Patience(attempts=5)) == "done"
    assert slept == [1.0, 30.0, 4.0, web.LONGEST_PAUSE]


def test_the_script_verifies_by_a_list_of_checksums_and_unpacks(run, start, server, tmp_path):
    packed = bz2.compress(CONTENT)
    server.files["/file.bin.bz2"] = packed
    server.files["/sums"] = f"{hashlib.sha256(packed).hexdigest()} *x/file.bin.bz2\n".encode()
    command = ["posenc", "prepare", "download", f"{server.url}/file.bin.bz2", "--checksums"]
    to = ["--output", tmp_path / "file.bin.bz2", "--unpack", tmp_path / "out"]
    assert "1 files unpacked" in run(*command, f"{server.url}/sums", *to)
    assert (tmp_path / "out" / "file.bin").read_bytes() == CONTENT
    (tmp_path / "sums").write_text("a" * 40 + "  other.bz2\n")
    process = start(*command, tmp_path / "sums", *to)
    printed = process.communicate()[0]
    assert process.returncode == 1 and printed.count("\n") == 1
    assert "sums has no checksum of file.bin.bz2" in printed
