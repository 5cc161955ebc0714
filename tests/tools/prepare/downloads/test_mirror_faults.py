"""Downloads of WMT's archives from a mirror that misbehaves: a whole file or none, and one line."""

import os
import threading

import pytest

from fairseq_posenc.tools.corpus.mirror import Sizes, write_mirror
from fairseq_posenc.tools.corpus.mirror.faults import Fault, Faults
from fairseq_posenc.tools.corpus.mirror.server import MirrorServer
from fairseq_posenc.tools.prepare.downloads.download import download
from fairseq_posenc.tools.prepare.downloads.web import Patience

QUICK = Patience(attempts=2, pause=0.01, timeout=5)
ARCHIVES = ("wmt13/training-parallel-europarl-v7.tgz", "wmt10/training-giga-fren.tar")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(str(folder), ["wmt14_en_fr"], Sizes(100, 2))
    return folder


@pytest.fixture
def server(mirror, monkeypatch):
    """A server of the mirror; ``misbehave`` sets its faults."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with MirrorServer(str(mirror), verbose=True) as server:

        def misbehave(*faults):
            server.faults = Faults([Fault.parse(fault) for fault in faults])

        server.misbehave = misbehave
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def fetch(server, tmp_path):
    """A function that downloads an archive, without long pauses, and returns its bytes."""

    def fetch(name):
        target = tmp_path / os.path.basename(name)
        download([f"{server.url}/{name}"], str(target), quiet=True, patience=QUICK)
        assert os.listdir(tmp_path) == [target.name]
        return target.read_bytes()

    return fetch


@pytest.fixture
def script(start, server, tmp_path):
    """A function that runs the script on an archive; returns its status, its words, the file."""

    def script(name):
        target = tmp_path / os.path.basename(name)
        process = start(
            *("posenc", "prepare", "download", f"{server.url}/{name}", "--output", target),
            *("--quiet", "--unpack", tmp_path / "unpacked"),
        )
        printed = process.communicate(timeout=30)[0]
        return process.returncode, printed, target

    return script


@pytest.mark.parametrize("name", ARCHIVES)
def test_cuts_are_continued_until_the_archive_is_whole(fetch, server, mirror, capfd, name):
    server.misbehave("cut=*@3")
    whole = (mirror / name).read_bytes()
    assert fetch(name) == whole
    half = len(whole) // 2
    three_quarters = half + (len(whole) - half) // 2
    asked = [line.split()[2:] for line in capfd.readouterr().err.splitlines()]
    assert asked[:3] == [["cut"], [f"bytes={half}-", "cut"], [f"bytes={three_quarters}-", "cut"]]
    assert len(asked) == 4 and asked[3][0] > "bytes="


def test_errors_of_the_server_before_and_between_cuts_pass(fetch, server, mirror, capfd):
    server.misbehave("500=*@2", "cut=*@1", "500=*@2", "cut=*@1")
    assert fetch(ARCHIVES[0]) == (mirror / ARCHIVES[0]).read_bytes()
    statuses = [line.split()[0] for line in capfd.readouterr().err.splitlines()]
    assert statuses == ["500", "500", "200", "206"]


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize(
    "fault, message",
    [
        ("404", "404 Not Found"),
        ("wrong", "what it gave is damaged: it is no whole "),
        ("truncated", "what it gave is damaged: it is no whole "),
    ],
)
def test_a_lasting_fault_is_one_line_and_no_file_and_mends_itself(
    script, server, mirror, name, fault, message
):
    server.misbehave(f"{fault}={name}")
    status, printed, target = script(name)
    assert status == 1 and printed.count("\n") == 1
    assert f"{server.url}/{name}: {message}" in printed
    assert not target.exists() and not (target.parent / "unpacked").exists()
    server.misbehave()
    status, printed, target = script(name)
    assert status == 0 and printed.endswith(f" files unpacked into {target.parent / 'unpacked'}\n")
    assert target.read_bytes() == (mirror / name).read_bytes()


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("fault", ["wrong", "truncated"])
def test_a_page_or_another_file_after_a_cut_is_never_joined_to_its_bytes(
    fetch, server, mirror, name, fault
):
    server.misbehave("cut=*@1", f"{fault}=*@1")
    with pytest.raises(SystemExit, match="damaged"):
        fetch(name)
    assert fetch(name) == (mirror / name).read_bytes()
