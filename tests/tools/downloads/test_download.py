"""Downloads from servers that misbehave: what has a file's name is the whole file, or nothing."""

import bz2
import hashlib
import os
import threading
import time
from types import SimpleNamespace

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.downloads import download as module
from fairseq_posenc.tools.downloads.download import Checksum, download

CONTENT = bz2.compress(os.urandom(50_000))
OTHER = bz2.compress(os.urandom(60_000))
SHA1 = Checksum("sha1", hashlib.sha1(CONTENT).hexdigest())
CUT = -1000  # bytes until a connection ends


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between tries, none of which is made."""
    found = []
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=found.append))
    return found


@pytest.fixture
def get(server, tmp_path, pauses):
    """A function that downloads a file and returns what it holds; other files do not come."""
    server.files["/file.bz2"] = CONTENT

    def get(*urls, to="file.bz2", checksum=None):
        urls = [url if ":" in url else f"{server.url}/{url}" for url in urls or ["file.bz2"]]
        download(urls, str(tmp_path / to), checksum, quiet=True)
        assert os.listdir(tmp_path) == [to]
        return (tmp_path / to).read_bytes()

    return get


def ranges(server):
    return [asked for _, asked in server.requests]


@pytest.mark.parametrize("checksum", [SHA1, None])
def test_a_cut_connection_is_continued_and_tries_are_counted_from_the_last_byte(
    get, server, checksum
):
    server.faults = [CUT] * 9 + [429]
    assert get(checksum=checksum) == CONTENT
    assert ranges(server)[:3] == [None, "bytes=1000-", "bytes=2000-"] and len(ranges(server)) == 11


def test_pauses_grow_and_the_next_run_continues(get, server, tmp_path, pauses):
    server.faults = [CUT] + [503] * 5
    with pytest.raises(UsageError, match="error: 503"):
        get()
    assert os.listdir(tmp_path) == ["file.bz2.part"] and pauses == [1, 2, 4, 8, 16]
    assert get() == CONTENT and ranges(server)[-1] == "bytes=1000-"


@pytest.mark.parametrize("part", [CONTENT, CONTENT + b"more", b"?" * 1000, OTHER[:2000], OTHER])
@pytest.mark.parametrize("checksum", [SHA1, None])
def test_a_part_is_verified_with_what_is_joined_to_it(get, tmp_path, part, checksum):
    (tmp_path / "file.bz2.part").write_bytes(part)
    found = get(checksum=checksum)
    # without a checksum, another version that is whole is one too, and bz2 may have an appendix
    assert found == CONTENT or (not checksum and found == part)


def test_what_nothing_can_verify_is_never_continued(get, server, tmp_path):
    (tmp_path / "file.part").write_bytes(OTHER[:1000])
    server.files["/file"] = CONTENT
    assert get("file", to="file") == CONTENT and ranges(server) == [None]


def test_a_server_that_cannot_continue_begins_anew(get, server):
    server.faults, server.ranges = [CUT], False
    assert get() == CONTENT


def test_the_next_mirror_is_tried_and_continues_what_another_began(get, server):
    server.files["/cut/file.bz2"] = CONTENT
    server.faults = [404, CUT] + [500] * 5
    assert get("gone/file.bz2", "cut/file.bz2", "file.bz2") == CONTENT
    assert [path for path, _ in server.requests].count("/gone/file.bz2") == 1
    assert ranges(server)[-1] == "bytes=1000-"


def test_what_is_damaged_is_refused_and_the_next_mirror_taken(get, server, tmp_path):
    server.files.update({"/page": b"<html>Not found</html>", "/cut": CONTENT[:-20]})
    assert get("page", "cut", "file.bz2") == CONTENT
    (tmp_path / "file.bz2").unlink()
    with pytest.raises(UsageError, match="page: cannot unpack .*; .*cut: cannot unpack .*"):
        get("page", "cut")
    with pytest.raises(UsageError, match="page: the sha1 of .* is .*, not "):
        get("page", checksum=SHA1)
    assert os.listdir(tmp_path) == ["file.bz2.part"]


def test_a_file_that_is_there_is_not_loaded_but_compared(get, server, tmp_path):
    (tmp_path / "file.bz2").write_bytes(CONTENT)
    assert get(checksum=SHA1) == CONTENT and not server.requests
    (tmp_path / "file.bz2").write_bytes(b"mine")
    with pytest.raises(UsageError, match="the sha1 of .*file.bz2 is "):
        get(checksum=SHA1)
    assert get() == b"mine"


def test_of_two_processes_one_loads_and_the_other_waits(get, server, tmp_path):
    server.faults = [CUT] * 20
    other = threading.Thread(target=download, args=([f"{server.url}/file.bz2"],
                             str(tmp_path / "file.bz2"), SHA1, True))  # fmt: skip
    other.start()
    while not server.requests:
        time.sleep(0.01)
    assert get(checksum=SHA1) == CONTENT
    other.join()
    assert len(set(ranges(server))) == len(server.requests)


MOVED = b"HTTP/1.1 302 Found\r\nLocation: "


@pytest.mark.parametrize(
    "answer, message",
    [
        (MOVED + b"ftp://127.0.0.1/x\r\n\r\n", "ftp"),
        (MOVED + b"file:///etc/passwd\r\n\r\n", "file"),
        (MOVED + b"/answer\r\n\r\n", "redirects"),
        (b"HTTP/1.1 404 \x1b[31mNo\x07\r\n\r\n", "404"),
        (b"HTTP/1.1 503 No\r\nRetry-After: 99999\r\n\r\n", "503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "bytes remaining|Cannot resume"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "it is empty"),
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-9/10\r\n\r\nx", "cannot unpack"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 2_000_000, "header|[Ll]arge|[Rr]eceived|memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_server_that_lies_is_one_line_and_no_file(get, server, tmp_path, answer, message):
    server.files["/answer"] = answer
    with pytest.raises(UsageError, match=message) as caught:
        get("answer")
    assert len(str(caught.value)) < 500
    assert os.listdir(tmp_path) == ["file.bz2.part"]


@pytest.mark.parametrize(
    "url, told",
    [
        *((url, "give an http or https address") for url in
          ["ftp://x/y", "file:///etc/passwd", "http://a:b@c/d", "//x:1", ":"]),
        *((url, "^cannot download file.bz2: http") for url in
          ["http://127.0.0.1:9/f", "http://x:y/", "http://[/", "http://é b/"]),
    ],
)  # fmt: skip
def test_only_addresses_of_the_web_without_passwords_are_asked(get, url, told):
    with pytest.raises(UsageError, match=told):
        get(url)


def test_a_wrong_place_and_a_missing_curl_are_said(get, monkeypatch):
    with pytest.raises(UsageError, match="cannot write /dev/null/file"):
        get(to="/dev/null/file")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="curl, which is not installed"):
        get()


@pytest.mark.parametrize(
    "text, algorithm",
    [("a" * 32, "md5"), ("A" * 40, "sha1"), ("b" * 64, "sha256"), ("c" * 128, "sha512")],
)
def test_the_length_of_a_checksum_tells_its_kind(text, algorithm):
    assert Checksum.parse(text) == (algorithm, text.lower())


@pytest.mark.parametrize("text", ["", "abc", "z" * 40, "sha256:" + "a" * 64])
def test_what_is_no_checksum_is_refused(text):
    with pytest.raises(UsageError, match="is not a checksum"):
        Checksum.parse(text)


def test_the_command_verifies_and_unpacks(run, fails, server, tmp_path):
    text = b"one\n" * 9
    server.files["/f.bz2"] = bz2.compress(text)
    digest = hashlib.sha256(server.files["/f.bz2"]).hexdigest()
    command = ["posenc", "prepare", "download", f"{server.url}/f.bz2", "--quiet"]
    to = ["--output", tmp_path / "f.bz2", "--unpack", tmp_path / "out", "--checksum"]
    assert "1 files unpacked" in run(*command, *to, digest)
    assert (tmp_path / "out" / "f").read_bytes() == text
    printed = fails(*command, *to, "0" * 64)
    assert printed.count("\n") == 1 and "f.bz2 is " in printed
