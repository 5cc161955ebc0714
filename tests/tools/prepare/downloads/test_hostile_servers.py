"""Servers that lie: only the web is asked, nothing endless is kept, all is said in one line."""

import gzip
import hashlib
import os
import time

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads import dumps, web
from fairseq_posenc.tools.prepare.downloads.archives import Checksum
from fairseq_posenc.tools.prepare.downloads.download import download
from fairseq_posenc.tools.prepare.downloads.web import Patience, fetch_text

OK, MOVED = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\n"
QUICK = Patience(attempts=1, pause=0.01, timeout=5)
# less than a buffer, as a file's last piece is: it must be written before it is checked
CONTENT = bytes(range(256)) * 12


def answer(status=OK, body=b"", **headers):
    lines = (f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    return status + "".join(lines).encode("latin-1") + b"\r\n" + body


def chunked(body):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:])) + b"0\r\n"


@pytest.fixture
def get(server, tmp_path):
    """A function that downloads what a server answers and returns it; other files do not come."""

    def get(answer, to="file", **options):
        server.raw["/file"] = answer
        options = {"quiet": True, "patience": QUICK, **options}
        download([f"{server.url}/file"], str(tmp_path / to), **options)
        assert os.listdir(tmp_path) == [to]
        return (tmp_path / to).read_bytes()

    return get


@pytest.mark.parametrize(
    "headers, body",
    [
        ({}, CONTENT),
        ({"Content_Length": "²"}, CONTENT),
        ({"Content_Length": "-1"}, CONTENT),
        ({"Content_Length": "9" * 5000}, CONTENT),
        ({"Content_Length": "many"}, CONTENT),
        ({"Transfer_Encoding": "chunked"}, chunked(CONTENT) + b"\r\n"),
        ({"ETag": '"a\r\n b"', "Content_Length": len(CONTENT)}, CONTENT),
        ({"Content_Encoding": "identity"}, CONTENT),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("checked", [True, False])
def test_a_file_without_a_length_is_whole_before_it_is_checked(get, headers, body, checked):
    checksum = Checksum("sha1", hashlib.sha1(CONTENT).hexdigest()) if checked else None
    assert get(answer(body=body, **headers), checksum=checksum) == CONTENT


def test_an_archive_without_a_length_is_read_to_its_end(get):
    packed = gzip.compress(os.urandom(3000))
    headers = {"Content_Encoding": "x-gzip"}  # as some servers say of every archive
    assert get(answer(body=packed, **headers), to="file.gz") == packed


@pytest.mark.parametrize(
    "raw, told",
    [
        (answer(MOVED, Location="ftp://127.0.0.1/x"), "it is no http or https address"),
        (answer(MOVED, Location="file:///etc/passwd"), "is not allowed"),
        (answer(MOVED, Location="data:,x"), "is not allowed"),
        (answer(MOVED, Location="gopher://127.0.0.1:25/x"), "is not allowed"),
        (answer(MOVED, Location="http://me:secret@127.0.0.1/"), "names and passwords"),
        (answer(MOVED, Location="http://127.0.0.1:99999/"), "it is no address"),
        (answer(MOVED, Location="http://[::1/"), "it is no address"),
        (answer(MOVED, Location="file"), "infinite loop"),
        (answer(b"HTTP/1.1 404 \x1b[31mNo\x07\r\n"), r"404 \?\[31mNo\?"),
        (answer(b"HTTP/1.1 404 " + b"x" * 9999 + b"\r\n"), "404 x{200}$"),
        (answer(b"HTTP/1.1 503 No\r\n", Retry_After="²"), "503 No .2 times"),
        (answer(b"HTTP/1.1 503 No\r\n", Retry_After="-9"), "503 No .2 times"),
        (answer(b"HTTP/1.1 503 No\r\n", Retry_After="9" * 5000), "503 No .2 times"),
        (
            answer(b"HTTP/1.1 503 No\r\n", Retry_After="Fri, 31 Dec 9999 23:59:59 GMT"),
            "503 No .2 times",
        ),
        (answer(Content_Encoding="gzip", body=b"x"), "sent the file packed"),
        (answer(Content_Length="2000", body=b"x"), "bytes allowed"),
        (answer(body=b"x" * 1001), "more than the 1,000 bytes allowed"),
        (answer(Content_Length="9", body=b"x"), "ended early"),
        (answer(Transfer_Encoding="chunked", body=chunked(b"x" * 99)[:50]), "IncompleteRead"),
        (answer(body=b""), "it is empty"),
        (answer(**{f"x{i}": "x" for i in range(200)}), "more than 100 headers"),
        (answer(x="x" * 70_000), "header line"),
        (b"\x1b[2J<html>\r\n\r\n", "html"),
        (b"", "closed connection"),
        (answer(b"HTTP/1.1 206 Partial\r\n", Content_Range="bytes 5-9/10"), "has changed"),
        (
            answer(b"HTTP/1.1 206 Partial\r\n", Content_Range=f"bytes {'9' * 5000}-9/²"),
            "has changed",
        ),
        (answer(b"HTTP/1.1 416 No\r\n"), "416 No .2 times"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_lie_is_one_line_and_no_file(get, server, tmp_path, monkeypatch, raw, told):
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(seconds))
    pauses = []
    with pytest.raises(UsageError, match=told) as caught:
        get(raw, most=1000)
    message = str(caught.value)
    assert "\n" not in message and message.isprintable() and len(message) < 500
    assert max(pauses, default=0) <= web.LONGEST_PAUSE
    assert all(name.startswith("file.part") for name in os.listdir(tmp_path))


def test_more_than_was_told_of_when_a_file_is_continued_is_refused(get, server, tmp_path):
    with pytest.raises(UsageError, match="ended early"):
        get(answer(Content_Length="90", body=b"x" * 10))
    partial = b"HTTP/1.1 206 Partial\r\n"
    with pytest.raises(UsageError, match="more than the 90 bytes that it told of"):
        get(answer(partial, Content_Range="bytes 10-89/90", body=b"x" * 5000))
    assert os.path.getsize(tmp_path / "file.part") == 0


def test_what_comes_with_a_redirection_is_not_read(get, server):
    server.files["/file.bin"] = CONTENT
    began = time.monotonic()
    raw = answer(MOVED, Location="/file.bin", Content_Length=1 << 40, body=b"x" * 100)
    assert get(raw) == CONTENT and time.monotonic() - began < QUICK.timeout


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "file:///etc/passwd", "http://a:b@c/d", "http://[/", "http://x:y/", "//x",
            "http://127.0.0.1:9/é", "http://127.0.0.1:9/a b", "http://" + "a" * 70 + "/", ""],
)  # fmt: skip
def test_what_is_no_address_of_the_web_is_refused_at_once(tmp_path, monkeypatch, url):
    monkeypatch.setattr(time, "sleep", lambda seconds: 1 / 0)
    for work in (lambda: download([url], str(tmp_path / "file")), lambda: fetch_text(url)):
        with pytest.raises(UsageError, match="cannot download") as caught:
            work()
        assert "\n" not in str(caught.value)


def test_a_list_of_checksums_that_does_not_end_is_refused(server, tmp_path, monkeypatch):
    for module in (web, dumps):
        monkeypatch.setattr(module, "LARGEST_TEXT", 100_000)
    endless = answer(body=b"x" * 200_000)
    server.raw.update({"/sums": endless, "/xwiki/latest/xwiki-latest-sha1sums.txt": endless})
    with pytest.raises(UsageError, match="more than the 100,000 bytes allowed"):
        fetch_text(f"{server.url}/sums", QUICK)
    with pytest.raises(UsageError, match="more than the 100,000 bytes allowed"):
        dumps.fetch_dump("x", str(tmp_path), [server.url], quiet=True, patience=QUICK)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1000
    server.raw["/sums"] = answer(Content_Length="99", body=b"cut")
    with pytest.raises(UsageError, match="ended early"):
        fetch_text(f"{server.url}/sums", QUICK)


def test_without_locks_another_process_is_noticed_by_the_size(get, server, tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert get(answer(Content_Length=len(CONTENT), body=CONTENT)) == CONTENT
    os.remove(tmp_path / "file")

    def meanwhile(response, really=web.blocks):
        for block in really(response):
            with open(tmp_path / "file.part", "ab") as other:
                other.write(b"other")
            yield block

    monkeypatch.setattr("fairseq_posenc.tools.prepare.downloads.download.blocks", meanwhile)
    with pytest.raises(UsageError, match="another process is downloading"):
        get(answer(Content_Length=len(CONTENT), body=CONTENT))
    assert not (tmp_path / "file").exists()
