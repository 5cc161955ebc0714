"""Commands in copies of one Python that has imported torch and fairseq, which takes seconds.

``Copies`` starts that Python, and makes a folder of programs for the PATH: fairseq-train, posenc,
``python -m recipes.…`` and others, which hand their words, environment, folder and streams to it.
It answers each with a copy of itself. The plugin is not among what it has imported, and all else is
as in a new Python: what is printed, how an error ends it, and that it dies with its program.
"""

import atexit
import gc
import importlib
import json
import logging
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
REAL = os.path.dirname(sys.executable)
PROGRAMS = {
    "posenc": ("fairseq_posenc.tools.cli", "main"),
    **{
        f"fairseq-{name}".replace("_", "-"): (f"fairseq_cli.{name}", "cli_main")
        for name in ("train", "generate", "validate", "preprocess", "eval_lm", "hydra_train")
    },
}
# These import little, or need more of their caller than its streams.
OTHERS = ("recipes.lib",)
PROGRAM = """#!{0} -IS
import sys
sys.path.insert(0, {1!r})
import forking
forking.ask({2!r}, {3!r})
"""


def of_python(environment):
    """What Python and its libraries read of an environment when they start."""
    starts = ("PYTHON", "LC_", "LANG", "OMP_", "MKL_", "LD_")
    found = {name: environment[name] for name in environment if name.startswith(starts)}
    return {**found, "PYTHONPATH": "", "PYTHONIOENCODING": ""}


class Copies:
    """The Python that is copied, and ``bin``, the folder of programs; ``close`` ends both."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        self.bin.mkdir()
        address, environment = str(folder / "socket"), {**os.environ, "OMP_NUM_THREADS": "1"}
        self.environment = of_python(environment)
        for name in ("python", *PROGRAMS):
            about = str(Path(__file__).parent), address, self.environment
            (self.bin / name).write_text(PROGRAM.format(sys.executable, *about))
            (self.bin / name).chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(address)
            server.listen(64)
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(server.fileno())], cwd=REPOSITORY,
                env=environment, pass_fds=[server.fileno()],
                # pipes, as those of a command are: Python looks at the kind when it starts
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def close(self):
        self.process.kill()
        self.process.communicate()


def ask(address, environment):
    """Be a program of ``bin``: run in a copy, or for real where a copy would not be the same."""
    name, *words = os.path.basename(sys.argv[0]), *sys.argv[1:]
    real = os.path.join(REAL, name)
    known = words[:1] == ["-m"] and words[1].startswith("recipes.") and words[1] not in OTHERS
    if (name == "python" and not known) or of_python(os.environ) != environment:
        os.execv(real, [real, *words])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as copy:
        try:
            copy.connect(address)
            request = json.dumps([name, words, dict(os.environ), os.getcwd()]).encode()
            socket.send_fds(copy, [request], [0, 1, 2])
        except OSError:  # more words than a packet takes
            os.execv(real, [real, *words])
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGUSR1:
            signal.signal(number, lambda number, _: copy.send(bytes([number])))
        code = int(copy.recv(9) or 1)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(server):
    """Copy this process for each program that asks; return, in the copy, what is asked."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no copy waits to be asked for its end
    while True:
        program, _ = server.accept()
        if os.fork() == 0:
            break
        program.close()
    server.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, *_ = socket.recv_fds(program, 1 << 20, 3)
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        threading.Thread(target=_pass_signals, args=(program, child), daemon=True).start()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(OSError):  # it has been killed
            program.send(str(code).encode())
        os._exit(0)
    program.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return json.loads(request)


def _pass_signals(program, child):
    while True:
        number = program.recv(1)
        os.kill(child, number[0] if number else signal.SIGKILL)
        if not number:
            return


def run(name, words, environment, folder):
    """Be the command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.path[0] = folder if name == "python" else REAL
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [os.path.abspath(path) for path in paths if path]  # as Python makes them
    sys.argv = [os.path.join(REAL, name), *words]
    if name == "python":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if name != "fairseq-generate":  # they set up their log before they import fairseq
        logging.root.handlers.clear()
    module, function = PROGRAMS[name]
    sys.exit(getattr(importlib.import_module(module), function)())


def end():
    """Leave at once: a Python that takes all its modules apart needs half a second for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(CODE)


if __name__ == "__main__":
    CODE = 1
    atexit.register(end)  # first, so that it is called last
    import fairseq.tasks  # with torch, and all that is fairseq's
    import fairseq.trainer  # noqa: F401
    import torch._dynamo  # noqa: F401 (a second, which any optimizer would take)

    gc.freeze()  # else each copy collects it all at its end, which takes a second
    try:
        run(*serve(socket.socket(fileno=int(sys.argv[1]))))
        CODE = 0
    except SystemExit as error:
        CODE = error.code if isinstance(error.code, int) else bool(error.code)
        raise
