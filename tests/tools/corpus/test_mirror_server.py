"""The web server of a mirror: ranges, faults on demand, and an end with its parent."""

import http.client
import os
import signal
import threading
import time
import urllib.error
import urllib.request

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.mirror.faults import Fault
from fairseq_posenc.tools.corpus.mirror.server import MirrorServer

CONTENT = bytes(range(200)) * 10


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "served" / "wmt13").mkdir(parents=True)
    (tmp_path / "served" / "wmt13" / "test.tgz").write_bytes(CONTENT)
    (tmp_path / "served" / "other.tgz").write_bytes(CONTENT[::-1])
    (tmp_path / "served" / "empty").touch()
    (tmp_path / "secret").write_text("secret")
    return tmp_path / "served"


@pytest.fixture
def ask(folder):
    """A function that asks a server with faults: (status, headers, body) of a raw path."""
    servers = {}

    def ask(path="/wmt13/test.tgz", faults=(), **headers):
        if faults not in servers:
            servers[faults] = server = MirrorServer(str(folder), faults=map_faults(faults))
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", servers[faults].server_port)
        connection.request(
            "GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        response = connection.getresponse()
        try:
            body = response.read()
        except http.client.IncompleteRead as error:
            body = error.partial
        return response.status, response.headers, body

    yield ask
    for server in servers.values():
        server.shutdown()
        server.server_close()


def map_faults(faults):
    return [Fault.parse(fault) for fault in faults]


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)
    return int(path.read_text())


def test_a_file_is_served_whole(ask):
    status, headers, body = ask()
    assert (status, body, headers["Content-Length"]) == (200, CONTENT, "2000")
    assert headers["ETag"].startswith('"') and headers["Content-Range"] is None
    assert ask("/empty")[::2] == (200, b"") and ask("/empty", Range="bytes=3-")[::2] == (200, b"")


@pytest.mark.parametrize(
    "asked, first, end",
    [
        ("5-", 5, 2000),
        ("1999-", 1999, 2000),
        ("0-0", 0, 1),
        ("7-9", 7, 10),
        ("1000-9999", 1000, 2000),
    ],
)
def test_a_part_of_a_file_is_served(ask, asked, first, end):
    tag = ask()[1]["ETag"]
    for headers in ({}, {"If_Range": tag}):
        status, answered, body = ask(Range=f"bytes={asked}", **headers)
        assert (status, body) == (206, CONTENT[first:end])
        assert answered["Content-Range"] == f"bytes {first}-{end - 1}/2000"
        assert answered["Content-Length"] == str(end - first)


def test_a_range_of_another_version_gives_the_whole_and_one_beyond_the_end_an_error(ask):
    assert ask(Range="bytes=5-", If_Range='"old"')[::2] == (200, CONTENT)
    assert ask(Range="bytes=x-")[::2] == (200, CONTENT)
    status, headers, body = ask(Range="bytes=2000-")
    assert (status, headers["Content-Range"], body) == (416, "bytes */2000", b"")


@pytest.mark.parametrize(
    "path", ["/wmt13", "/", "/../secret", "/%2e%2e/secret", "//etc/passwd", "/%00"]
)
def test_nothing_but_files_of_the_folder_is_served(ask, path):
    assert ask(path)[0] == 404


def test_other_hosts_and_odd_spellings_of_a_path_lead_to_the_same_file(ask):
    for path in ("http://www.statmt.org/wmt13/test.tgz", "/wmt13//x/../test%2Etgz?a=b#c"):
        assert ask(path)[::2] == (200, CONTENT)


def test_a_cut_connection_ends_after_half_of_what_is_missing(ask):
    faults = ("cut=*.tgz@2",)
    assert ask(faults=faults)[2] == CONTENT[:1000]
    status, headers, body = ask(faults=faults, Range="bytes=1999-")
    assert (status, headers["Content-Length"], body) == (206, "1", b"")
    assert ask(faults=faults)[2] == CONTENT


@pytest.mark.parametrize("kind, status", [("404", 404), ("500", 500), ("wrong", 200)])
def test_errors_come_as_often_as_asked_for_each_file(ask, kind, status):
    faults = (f"{kind}=*.tgz@2",)
    for path in ("/wmt13/test.tgz", "/other.tgz"):
        answers = [ask(path, faults) for _ in range(3)]
        assert [answer[0] for answer in answers] == [status, status, 200]
        assert b"<html" in answers[1][2].lower() and b"<html" not in answers[2][2]


def test_without_a_number_faults_are_as_lasting_as_their_kind(ask):
    kinds = {"cut": 1, "500": 1, "404": 4, "wrong": 4, "truncated": 4}
    for kind, times in kinds.items():
        answers = [ask(faults=(f"{kind}=/wmt13/*",))[::2] for _ in range(4)]
        assert answers[times:] == [(200, CONTENT)] * (4 - times)
        assert (200, CONTENT) not in answers[:times]


def test_a_truncated_file_looks_whole(ask):
    faults = ("truncated=wmt13/test.tgz",)
    status, headers, body = ask(faults=faults)
    assert (status, headers["Content-Length"], body) == (200, "1000", CONTENT[:1000])
    assert headers["ETag"] != ask()[1]["ETag"]
    assert ask(faults=faults, Range="bytes=900-")[2] == CONTENT[900:1000]
    assert ask("/other.tgz", faults)[2] == CONTENT[::-1]


def test_faults_of_one_file_come_one_after_the_other(ask):
    faults = ("500=*@1", "404=wmt13/*@1", "cut=other*@1")
    assert [ask(faults=faults)[0] for _ in range(3)] == [500, 404, 200]
    assert [len(ask("/other.tgz", faults)[2]) == 1000 for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("text", ["cut", "cut=", "slow=*", "=*", ""])
def test_unknown_faults_are_refused(text):
    with pytest.raises(UsageError, match="is no fault: give KIND=PATTERN"):
        Fault.parse(text)


def test_a_pattern_may_hold_the_sign_before_the_number():
    assert Fault.parse("404=a@b@12") == ("404", "a@b", 12)
    assert Fault.parse("404=a@b") == ("404", "a@b", None)


def test_a_wrong_folder_or_port_is_said(folder):
    with pytest.raises(UsageError, match="there is no folder .*nowhere to serve"):
        MirrorServer(str(folder / "nowhere"))
    with MirrorServer(str(folder)) as server:
        for port in (server.server_port, 99999):
            with pytest.raises(UsageError, match=f"cannot serve on port {port}: "):
                MirrorServer(str(folder), port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_script_serves_until_a_signal(start, folder, tmp_path, number):
    port_file = tmp_path / "port"
    options = ["--port-file", port_file, "--verbose", "--fault", "404=wmt13/*@1"]
    process = start("python", "-m", "fairseq_posenc.tools.corpus.serve", folder, *options)
    port = wait_for(port_file)
    url = f"http://127.0.0.1:{port}/wmt13/test.tgz"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url)
    asked = urllib.request.Request(url, headers={"Range": "bytes=1990-"})
    assert urllib.request.urlopen(asked).read() == CONTENT[1990:]
    process.send_signal(number)
    printed = process.communicate(timeout=20)[0].splitlines()
    assert printed[0] == str(port)
    assert printed[1:] == ["404 /wmt13/test.tgz 404", "206 /wmt13/test.tgz bytes=1990-"]
    assert process.returncode == 0 and not port_file.exists()


def test_the_script_ends_with_the_process_that_started_it(start, folder, tmp_path):
    port_file = tmp_path / "port"
    command = (
        f"python -m fairseq_posenc.tools.corpus.serve '{folder}' --port-file '{port_file}' & wait"
    )
    parent = start("bash", "-c", command)
    port = wait_for(port_file)
    os.kill(parent.pid, signal.SIGKILL)
    # the server holds the other end of the pipe, which closes when it has ended
    assert parent.communicate(timeout=20)[0] == f"{port}\n"
    assert not port_file.exists()


def test_the_script_is_quiet_and_says_what_is_wrong_in_a_line(start, folder, tmp_path):
    for options, message in (
        (["--fault", "none=*"], "'none=*' is no fault"),
        (["--port-file", "/dev/null/port"], "cannot write /dev/null/port"),
    ):
        process = start("python", "-m", "fairseq_posenc.tools.corpus.serve", folder, *options)
        printed = process.communicate(timeout=20)[0]
        assert process.returncode == 1 and printed.count("\n") == 1 and message in printed
