"""Contestants in processes of their own, as trainings are.

In one process each would be charged with the memory that the one before has or has not left.
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


def possible(device: str) -> bool:
    """Return whether this process can be copied: not with a GPU, nor with threads of PyTorch's."""
    return device == "cpu" and sys.platform == "linux" and torch.get_num_threads() == 1


@contextmanager
def contestants(steps: Steps, device: str) -> Iterator[Dict[str, Contestant]]:
    """Give every step a process of its own where that is possible, until the context ends."""
    here = {name: Contestant(step, device) for name, step in steps.items()}
    if not possible(device):
        yield here
        return
    there: Dict[str, _Apart] = {}
    try:
        for name, contestant in here.items():
            there[name] = _Apart(contestant, name)
        yield dict(there)
    finally:
        for copy in there.values():
            copy.process.terminate()
            copy.process.join()


class _Apart(Contestant):
    """A contestant that lives in a copy of this process."""

    def __init__(self, contestant: Contestant, name: str):
        context = multiprocessing.get_context("fork")
        self.name, (self.pipe, theirs) = name, context.Pipe()
        arguments = (contestant, theirs, os.getpid())
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def run(self) -> None:
        self._ask("run")

    def seconds(self) -> float:
        return self._ask("seconds")

    def megabytes(self) -> float:
        return self._ask("megabytes")

    def _ask(self, question: str) -> float:
        try:
            self.pipe.send(question)
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise UsageError(
                f"the process of {self.name} ended ({self.process.exitcode}): its error is above, "
                "or memory did not suffice: name fewer --encodings"
            ) from None


def _serve(contestant: Contestant, pipe: Connection, parent: int) -> None:
    """Answer until the parent ends this, or has ended."""
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while True:
        answer = getattr(contestant, pipe.recv())()
        if give_back is not None:  # or all of them hold a step's memory while they wait
            give_back(0)
        pipe.send(answer)
