"""Downloads from servers that misbehave: what has a file's name is the whole file, or nothing."""

import bz2
import errno
import hashlib
import os
import threading
import time
from types import SimpleNamespace

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads import download as module
from fairseq_posenc.tools.prepare.downloads.archives import Checksum
from fairseq_posenc.tools.prepare.downloads.download import RetryPolicy, download

CONTENT = bz2.compress(os.urandom(50_000))
OTHER = bz2.compress(os.urandom(60_000))
SHA1 = Checksum("sha1", hashlib.sha1(CONTENT).hexdigest())
QUICK = RetryPolicy(attempts=2, pause=0.01, timeout=2)
CUT = -1000  # bytes until a connection ends


@pytest.fixture
def get(server, tmp_path):
    """A function that downloads a file and returns what it holds; other files do not come."""
    server.files["/file.bz2"] = CONTENT

    def get(*urls, to="file.bz2", **options):
        options = {"retries": QUICK, "quiet": True, **options}
        urls = [url if ":" in url else f"{server.url}/{url}" for url in urls or ["file.bz2"]]
        download(urls, str(tmp_path / to), **options)
        assert os.listdir(tmp_path) == [to]
        return (tmp_path / to).read_bytes()

    return get


def ranges(server):
    return [asked for _, asked in server.requests]


def test_a_file_is_loaded_and_the_program_says_who_it_is(get, server):
    assert get() == CONTENT and server.agents[0].startswith("fairseq_posenc/")


@pytest.mark.parametrize("checksum", [SHA1, None])
def test_a_cut_connection_is_continued_and_tries_are_counted_from_the_last_byte(
    get, server, checksum
):
    server.faults = [CUT] * 5 + [429]
    assert get(checksum=checksum) == CONTENT
    assert ranges(server)[:3] == [None, "bytes=1000-", "bytes=2000-"] and len(ranges(server)) == 7


def test_a_download_that_ended_is_continued_by_the_next_run(get, server, tmp_path):
    server.faults = [CUT] + [503] * 3
    with pytest.raises(UsageError, match=r"error: 503 \(3 times\)"):
        get()
    assert os.listdir(tmp_path) == ["file.bz2.part"]
    assert get() == CONTENT and ranges(server)[-1] == "bytes=1000-"


@pytest.mark.parametrize("part", [CONTENT, CONTENT + b"more", b"?" * 1000, OTHER[:2000], OTHER])
@pytest.mark.parametrize("checksum", [SHA1, None])
def test_a_part_is_verified_with_what_is_joined_to_it(get, tmp_path, part, checksum):
    (tmp_path / "file.bz2.part").write_bytes(part)
    found = get(checksum=checksum)
    # without a checksum, another version that is whole is one too, and bz2 may have an appendix
    assert found == CONTENT or (not checksum and found == part)


def test_what_nothing_can_verify_is_never_continued(get, server):
    server.faults = [CUT] + [503] * 3
    server.files["/file"] = OTHER
    with pytest.raises(UsageError):
        get("file", to="file")
    server.files["/file"] = CONTENT
    assert get("file", to="file") == CONTENT and ranges(server)[-1] is None


def test_a_server_that_cannot_continue_begins_anew(get, server):
    server.faults, server.ranges = [CUT], False
    assert get() == CONTENT


def test_the_next_mirror_is_tried_and_continues_what_another_began(get, server):
    server.files["/cut/file.bz2"] = CONTENT
    server.faults = [404, CUT] + [500] * 3
    assert get("gone/file.bz2", "cut/file.bz2", "file.bz2") == CONTENT
    assert [path for path, _ in server.requests].count("/gone/file.bz2") == 1
    assert ranges(server)[-1] == "bytes=1000-"


def test_what_is_damaged_is_refused_and_the_next_mirror_taken(get, server, tmp_path):
    server.files.update({"/page": b"<html>Not found</html>", "/cut": CONTENT[:-20]})
    assert get("page", "cut", "file.bz2") == CONTENT
    (tmp_path / "file.bz2").unlink()
    with pytest.raises(UsageError, match="page: what it gave is damaged: it is no whole bz2 .*; .*"
                       "cut: what it gave is damaged"):  # fmt: skip
        get("page", "cut")
    with pytest.raises(UsageError, match="what it gave is damaged: its sha1 is"):
        get("page", checksum=SHA1)
    assert os.listdir(tmp_path) == ["file.bz2.part"]


def test_a_file_that_is_there_is_not_loaded_but_compared(get, server, tmp_path):
    (tmp_path / "file.bz2").write_bytes(CONTENT)
    assert get(checksum=SHA1) == CONTENT and not server.requests
    (tmp_path / "file.bz2").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there already, but its sha1 is"):
        get(checksum=SHA1)
    assert get() == b"mine"


def test_of_two_processes_one_loads_and_the_other_waits(get, server, tmp_path):
    server.faults = [CUT] * 20
    other = threading.Thread(target=download, args=([f"{server.url}/file.bz2"],
                             str(tmp_path / "file.bz2"), SHA1, True, QUICK))  # fmt: skip
    other.start()
    while not server.requests:
        time.sleep(0.01)
    assert get(checksum=SHA1) == CONTENT
    other.join()
    assert len(set(ranges(server))) == len(server.requests)


def test_without_locks_two_processes_do_not_disturb_each_other(get, server, tmp_path, monkeypatch):
    def flock(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", flock)
    server.faults, server.files["/plain"] = [CUT] * 40, OTHER
    for name, checksum in (("file.bz2", SHA1), ("plain", None)):
        path = tmp_path / name
        url, told = f"{server.url}/{name}", []

        def load(url=url, path=path, checksum=checksum, told=told):
            try:
                download([url], str(path), checksum, True, QUICK)
            except UsageError as error:
                told.append(error)

        others = [threading.Thread(target=load) for _ in range(3)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        assert told == [] and path.read_bytes() == server.files[f"/{name}"]
        assert os.listdir(tmp_path) == [name]
        path.unlink()


MOVED = b"HTTP/1.1 302 Found\r\nLocation: "


@pytest.mark.parametrize(
    "answer, message",
    [
        (MOVED + b"ftp://127.0.0.1/x\r\n\r\n", "ftp"),
        (MOVED + b"file:///etc/passwd\r\n\r\n", "file"),
        (MOVED + b"/answer\r\n\r\n", "redirects"),
        (b"HTTP/1.1 404 \x1b[31mNo\x07\r\n\r\n", "404$"),
        (b"HTTP/1.1 503 No\r\nRetry-After: 99999\r\n\r\n", r"503 \(3 times\)"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, "more than the 1,000 bytes allowed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nx", "[Mm]aximum|bytes allowed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "bytes remaining"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "it is empty"),
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-9/10\r\n\r\nx", "damaged"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 2_000_000, "header|[Ll]arge|[Rr]eceived|memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_server_that_lies_is_one_line_and_no_file(get, server, tmp_path, answer, message):
    server.files["/answer"] = answer
    with pytest.raises(UsageError, match=message) as caught:
        get("answer", largest=1000)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500
    assert os.listdir(tmp_path) == ["file.bz2.part"]


@pytest.mark.parametrize("url", ["ftp://x/y", "file:///etc/passwd", "http://a:b@c/d", "//x:1", ":"])
def test_only_addresses_of_the_web_without_passwords_are_asked(get, url):
    with pytest.raises(UsageError, match="give an http or https address"):
        get(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/f", "http://x:y/", "http://[/", "http://é b/"])
def test_no_server_at_all_is_said_in_one_line(get, url):
    with pytest.raises(UsageError, match="^cannot download file.bz2: http"):
        get(url)


def test_a_silent_server_is_given_up(get, server):
    server.faults = [0]
    with pytest.raises(UsageError, match=r"too slow.*\(1 times\)"):
        get(retries=RetryPolicy(attempts=0, timeout=1))


def test_a_full_disk_a_wrong_place_and_a_missing_curl_are_said(get, server, monkeypatch):
    with pytest.raises(UsageError, match="cannot write /dev/null/file"):
        get(to="/dev/null/file")
    free = module.shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: free)
    with pytest.raises(UsageError, match="[Mm]aximum file size"):
        get()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="curl, which is not installed"):
        get()


def test_pauses_grow_to_a_minute(get, server, monkeypatch):
    pauses = []
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=pauses.append))
    server.faults = [503] * 9
    assert get(retries=RetryPolicy(attempts=9)) == CONTENT
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_command_verifies_and_unpacks(run, fails, server, tmp_path):
    text = b"one\n" * 9
    server.files["/f.bz2"] = bz2.compress(text)
    digest = hashlib.sha256(server.files["/f.bz2"]).hexdigest()
    command = ["posenc", "prepare", "download", f"{server.url}/f.bz2", "--quiet"]
    to = ["--output", tmp_path / "f.bz2", "--unpack", tmp_path / "out", "--checksum"]
    assert "1 files unpacked" in run(*command, *to, digest)
    assert (tmp_path / "out" / "f").read_bytes() == text
    printed = fails(*command, *to, "0" * 64)
    assert printed.count("\n") == 1
    assert "f.bz2 is there already, but its sha256 is" in printed
