"""Commands in copies of one Python that has imported torch and fairseq, which takes seconds.

The plugin is not among what it has imported, and all else is as in a new Python: arguments, folder,
environment, what is printed, and how an error ends it.

As a program, ``forking.py SOCKET`` is that Python: the number of a socket, from which it reads one
command after the other as JSON, with a pipe for what it prints and one for its number and its end.
"""

import importlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys

PROGRAMS = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
}


class Forked:
    """What tests need of :class:`subprocess.Popen`, of a forked command."""

    def __init__(self, output, status):
        self.output = os.fdopen(output, encoding="utf-8")
        self.status = os.fdopen(status)
        self.pid, self.returncode = int(self.status.readline()), None
        os.set_blocking(status, False)

    def poll(self):
        """Return the exit status, negative for a signal, or None while it runs."""
        if self.returncode is None:
            line = self.status.readline()
            self.returncode = int(line) if line else None
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def communicate(self, timeout=None):
        """Wait for the end, and return what was printed."""
        printed = self.output.read()
        os.set_blocking(self.status.fileno(), True)
        self.poll()
        self.output.close()
        self.status.close()
        return printed, None


class Server:
    """The Python that is copied; it ends with the process that has made it."""

    def __init__(self, folder, environment):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], cwd=folder, env=environment,
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            # pipes, as those of a command are: Python looks at the kind when it starts
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        theirs.close()

    def start(self, command, environment):
        """Run one of ``PROGRAMS`` with arguments."""
        (output, theirs), (status, told) = os.pipe(), os.pipe()
        request = json.dumps([command, environment]).encode()
        socket.send_fds(self.socket, [request], [theirs, told])
        os.close(theirs)
        os.close(told)
        return Forked(output, status)

    def close(self):
        self.socket.close()
        self.process.communicate()


def serve(number):
    """Copy this process for each command; return the arguments of the one to run in this copy."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no copy waits to be asked for its end
    with socket.socket(fileno=number) as requests:
        while True:
            request, pipes, *_ = socket.recv_fds(requests, 1 << 20, 2)
            if not request:
                os._exit(0)
            if os.fork() == 0:
                break
            for pipe in pipes:
                os.close(pipe)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output, status = pipes
    child = os.fork()
    if child:
        os.close(output)
        os.write(status, f"{child}\n".encode())
        ended = os.waitpid(child, 0)[1]
        os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
        os._exit(0)
    os.close(status)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    command, environment = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    return command


if __name__ == "__main__":
    import fairseq.tasks  # noqa: F401 (with torch, and all that is fairseq's)

    sys.path[0] = os.path.dirname(sys.executable)
    sys.argv = serve(int(sys.argv[1]))
    if sys.argv[0] == "fairseq-train":  # sets up its log before it imports what else would
        logging.root.handlers.clear()
    sys.exit(importlib.import_module(PROGRAMS[sys.argv[0]]).cli_main())
