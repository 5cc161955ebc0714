"""One process at a time has the lock of a file or folder, and none that is dead."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.locks import locked

HOLDER = """
import subprocess, sys, time
from fairseq_posenc.tools.locks import locked
with locked(sys.argv[1]):
    child = subprocess.Popen(["sleep", "30"], close_fds=sys.argv[2] == "alone")
    print(child.pid, flush=True)
    sys.stdin.read(1)
print("released", flush=True)
sys.stdin.read(1)
"""


@pytest.fixture(params=["file", "folder"])
def path(request, tmp_path):
    path = tmp_path / "it"
    if request.param == "file":
        path.write_text("content")
    elif request.param == "folder":
        path.mkdir()
    yield str(path)
    assert os.listdir(tmp_path) == ["it"]
    assert path.is_dir() or path.read_text() == "content"


@pytest.fixture
def hold(path):
    """A function that starts a process that has the lock, and a child, which may inherit it."""
    started = []

    def hold(child):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, path, child],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip
        started.extend([holder.pid, int(holder.stdout.readline())])
        return holder

    yield hold
    for process in started:
        subprocess.run(["kill", "-9", str(process)], stderr=subprocess.DEVNULL)


def is_free(path):
    try:
        with locked(path, 0, "busy") as is_held:
            return is_held
    except UsageError as error:
        assert str(error) == "busy"
        return False


@pytest.mark.parametrize("child", ["alone", "heir"])
def test_a_killed_process_frees_its_lock_unless_what_it_has_started_inherits_it(path, hold, child):
    holder = hold(child)
    assert not is_free(path) and not is_free(path)  # to ask does not take it
    holder.kill()
    holder.wait()
    assert is_free(path) == (child == "alone")


def test_a_lock_ends_with_its_block_whatever_has_inherited_it_and_who_waits_gets_it(path, hold):
    holder, waited = hold("heir"), []

    def on_wait():
        waited.append(path)
        holder.stdin.write("\n")
        holder.stdin.flush()

    with locked(path, 10, "the heir keeps it", on_wait) as is_held:  # the heir lives for 30 s
        assert is_held and waited == [path]
    with pytest.raises(ZeroDivisionError), locked(path):
        raise ZeroDivisionError
    assert is_free(path)


def test_without_locks_of_the_file_system_work_goes_on_and_is_told(path, monkeypatch):
    def fail(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with locked(path) as is_held:
        assert not is_held


def test_a_lock_that_cannot_be_made_is_one_line(tmp_path):
    path, message = tmp_path / "missing" / "it", "^cannot write .*missing/it: No such file"
    with pytest.raises(UsageError, match=message), locked(str(path)):
        pass
