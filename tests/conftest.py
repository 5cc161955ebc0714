"""What the tests share: tiny tasks and models, and a place to run command lines."""

import contextlib
import gc
import gzip
import http.server
import io
import logging
import os
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fairseq_posenc.errors import UsageError
from tests import forking, tiny

STARTED = time.monotonic()
REPOSITORY = Path(__file__).resolve().parent.parent
BIN = os.path.dirname(sys.executable)
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
# as fairseq sets it where it reads batches: a program of another environment would be no copy
os.environ["PYTHONWARNINGS"] = "ignore:semaphore_tracker:UserWarning"

# What earlier tests left may wait, when it is collected, for threads that no forked process has.
os.register_at_fork(after_in_child=gc.disable)


@pytest.fixture(autouse=True)
def logs_of_all_levels():
    """Undo what an earlier test left: commands make logs quiet for the rest of their process."""
    for name in ("fairseq", "fairseq_posenc"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def pytest_addoption(parser):
    text = "after so many minutes no test is begun; those left out are named"
    parser.addoption("--minutes", type=float, default=float("inf"), help=text)


def pytest_runtest_setup(item):
    minutes = item.config.getoption("--minutes")
    if time.monotonic() - STARTED > 60 * minutes:
        pytest.skip(f"left out, as {minutes:g} minutes have passed")


@pytest.fixture
def tiny_task():
    """A translation task with a dictionary of 40 types and no data."""
    dictionary = tiny.dictionary_of(36)
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def build_model(tiny_task):
    """A function that builds a tiny model: `encoding` names ours, None the stock Transformer."""

    def build(encoding="sinusoidal", seed=1, **options):
        limits = {"max_source_positions": 64, "max_target_positions": 64}
        options = {"position_encoding": encoding, **limits, **options}
        return tiny.build_model("transformer", tiny_task, seed, encoding is None, **options).eval()

    return build


@pytest.fixture
def hostile(tmp_path):
    """An object that leaves the file `hostile.witness` when a credulous loader loads its pickle."""

    class Hostile:
        witness = tmp_path / "witness"

        def __reduce__(self):
            return open, (str(self.witness), "w")

    return Hostile()


@pytest.fixture(scope="session")
def outcome():
    """A function that makes a call in a process of its own, with so much memory and time.

    With ``largest``, no file becomes larger than so many bytes. It returns what the
    :class:`UsageError` says that ended the call, "done" if none did, with what the call returned,
    or else what the process has died of; nothing else may end it.
    """

    def outcome(call, megabytes=500, seconds=10, largest=None):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                torch.set_num_threads(1)
                if largest is not None:
                    # what pytest has put there is a file, too
                    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
                signal.alarm(10 * seconds)  # a call that only waits takes no time of the processor
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
                told = f"done {call() or ''}".strip()
            except UsageError as error:
                told = str(error)
            except BaseException as error:
                told = f"unexpected {error!r}"
            os.write(writer, told.encode()[:4000])
            os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8") as stream:
            told = stream.read()
        status = os.waitpid(child, 0)[1]
        assert not told.startswith("unexpected"), told
        return told or f"ended with status {status}"

    return outcome


@pytest.fixture(scope="session")
def copies(tmp_path_factory):
    """A Python with torch and fairseq that runs commands in copies of itself."""
    made = forking.Copies(tmp_path_factory.mktemp("copies"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def start(copies):
    """A function that starts a command line at the top of the repository, as a user would.

    Programs that import fairseq run in copies of a Python that has it already.
    """

    def start(*command, **environment):
        known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "."}
        assert forking.of_python(known) == copies.environment, "no program would be a copy"
        known.update((name, str(value)) for name, value in environment.items())
        # what stands in for a program comes before
        known["PATH"] = known["PATH"].replace(BIN, f"{copies.bin}:{BIN}", 1)
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=REPOSITORY,
            env=known,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_heed_signals,
        )

    return start


def _heed_signals():
    """Undo nohup and &, under which tests may run: what they start ignores no signal."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def run(start):
    """A function that runs a command line to its good end and returns what it printed."""

    def run(*command, **environment):
        process = start(*command, **environment)
        printed = process.communicate()[0]
        assert process.returncode == 0, printed[-4000:]
        return printed

    return run


@pytest.fixture(scope="session")
def fails(start):
    """A function that runs a command line to its bad end, and returns what it printed."""

    def fails(*command, **environment):
        process = start(*command, **environment)
        printed = process.communicate()[0]
        assert process.returncode and "Traceback" not in printed, printed[-4000:]
        return printed

    return fails


@pytest.fixture
def serve(monkeypatch):
    """A function that starts a web server on this machine, and returns it with its ``url``."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with contextlib.ExitStack() as servers:

        def serve(handler):
            address = ("127.0.0.1", 0)
            server = servers.enter_context(http.server.ThreadingHTTPServer(address, handler))
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            servers.callback(server.shutdown)
            server.url = f"http://127.0.0.1:{server.server_port}"
            return server

        yield serve


@pytest.fixture(scope="session")
def make_archive():
    """A function that writes members (name -> lines or bytes) as a zip or (compressed) tar file."""

    def make(path, members):
        path.parent.mkdir(parents=True, exist_ok=True)
        contents = {}
        for name, content in members.items():
            if not isinstance(content, bytes):
                content = "".join(f"{line}\n" for line in content).encode()
            contents[name] = gzip.compress(content) if name.endswith(".gz") else content
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in contents.items():
                    archive.writestr(name, content)
            return str(path)
        kinds = {".tar": "w", ".bz2": "w:bz2", ".xz": "w:xz"}
        with tarfile.open(path, kinds.get(path.suffix, "w:gz")) as archive:
            for name, content in contents.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return str(path)

    return make
