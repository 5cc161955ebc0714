"""Contestants in processes of their own, as trainings are.

In one process each would also pay for the memory that the one before has or has not left.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Dict, Iterator

import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark.timing import Contestant, Steps
from fairseq_posenc.tools.workers import exit_with_parent


def can_fork(device: str) -> bool:
    """Return whether this process can be copied: not with a GPU, nor with threads of PyTorch's."""
    return device == "cpu" and sys.platform == "linux" and torch.get_num_threads() == 1


@contextmanager
def forked(steps: Steps, device: str) -> Iterator[Dict[str, Contestant]]:
    """Give every step a process of its own until the context ends."""
    contestants: Dict[str, _ForkedContestant] = {}
    try:
        for name, step in steps.items():
            contestants[name] = _ForkedContestant(name, Contestant(step, device))
        yield dict(contestants)
    finally:
        for contestant in contestants.values():
            contestant.process.terminate()
            contestant.process.join()


class _ForkedContestant(Contestant):
    """A contestant whose steps are taken in a copy of this process."""

    def __init__(self, name: str, contestant: Contestant):
        context = multiprocessing.get_context("fork")
        self.name, (self.pipe, theirs) = name, context.Pipe()
        arguments = (contestant, theirs, os.getpid())
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def run(self) -> None:
        self._call("run")

    def seconds(self) -> float:
        return self._call("seconds")

    def megabytes(self) -> float:
        return self._call("megabytes")

    def _call(self, method: str) -> float:
        try:
            self.pipe.send(method)
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise UsageError(
                f"the process of {self.name} ended ({self.process.exitcode}): its error is above, "
                "or memory did not suffice: name fewer --encodings"
            ) from None


def _serve(contestant: Contestant, pipe: Connection, parent: int) -> None:
    """Call the methods that the parent names until it ends this process, or has ended itself."""
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    release_memory = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while True:
        answer = getattr(contestant, pipe.recv())()
        if release_memory is not None:  # or all of them hold a step's memory while they wait
            release_memory(0)
        pipe.send(answer)
