"""Contestants are timed in turn, in processes of their own where that can be, and compared."""

import ctypes
import multiprocessing
import os
import signal
import statistics
import sys
import time
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import torch
from tqdm import tqdm

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.tools.benchmark import steps
from fairseq_posenc.tools.benchmark.attention import attention
from fairseq_posenc.tools.benchmark.settings import STOCK, Setting, Step, Steps
from fairseq_posenc.tools.workers import exit_with_parent

SUBJECTS: Dict[str, Callable[[Setting], Steps]] = {
    "attention": attention,
    "layer": steps.layer,
    "encoder": steps.encoder,
    "decoder": steps.decoder,
    "training": steps.training,
    "bert training": steps.bert_training,
    "bert inference": steps.bert_inference,
    "generation": steps.generation,
}
# what GPUs, their libraries and CPUs say
_NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


def measure(setting: Setting) -> Dict[str, Any]:
    """Time the contestants of a setting in turn.

    Returns:
        ``batch``, the sentences in a batch, and ``contestants``: by name the figures of
        :func:`race`.
    """
    # the round that measures memory is the first of those that are not timed
    rounds = (setting.rounds, setting.title, setting.base, setting.warm_up - 1)
    try:
        prepared = SUBJECTS[setting.subject](setting)
        if setting.forked:
            with forked(prepared, setting.device) as processes:
                figures = race(processes, *rounds)
        else:
            here = {name: Contestant(step, setting.device) for name, step in prepared.items()}
            figures = race(here, *rounds)
    except (MemoryError, RuntimeError) as error:
        # PyTorch has a class of its own for one of these alone
        if isinstance(error, RuntimeError) and not any(w in str(error) for w in _NO_MEMORY):
            raise
        raise UsageError(
            f"{setting.title}: memory does not suffice for {setting.batch} sentences of "
            f"{setting.length} tokens: give fewer --tokens or --encodings ({first_line(error)})"
        ) from None
    return {"batch": setting.batch, "contestants": figures}


class Contestant:
    """A step that can be timed on a device, ``cpu`` or ``cuda``."""

    def __init__(self, step: Step, device: str):
        self.step, self.device = step, device

    def run(self) -> None:
        """Take the step."""
        self.step()

    def seconds(self) -> float:
        """Take the step twice and time the second: steps of a training follow their like."""
        self.step()
        started = _clock(self.device)
        self.step()
        return _clock(self.device) - started

    def megabytes(self) -> float:
        """Take the step and return the peak of what it holds beyond what was there before."""
        return peak_memory(self.step, self.device) / 2**20


def race(
    contestants: Mapping[str, Contestant], rounds: int, title: str, base: str, warm_up: int = 0
) -> Dict[str, Dict[str, float]]:
    """Time all contestants in turn, ``rounds`` times, after one untimed round for their memory.

    Args:
        contestants: by name.
        rounds: 2 or more.
        title: for the progress bar.
        base: the contestant that all are compared with, beside stock fairseq.
        warm_up: further untimed rounds before all others.

    Returns:
        per contestant: median ``seconds``; ``megabytes``, the peak of what the step allocates; and
        as ratios of its time to that of the base and of stock fairseq in the same round,
        ``base`` and ``stock``, each with the quartiles ``…_low`` and ``…_high``.
    """
    for _ in range(warm_up):
        for one in tqdm(contestants.values(), f"{title}, warm-up", mininterval=1, leave=False):
            one.run()
    megabytes = {name: contestant.megabytes() for name, contestant in contestants.items()}
    seconds: Dict[str, List[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in tqdm(range(rounds), desc=title, mininterval=1, leave=False):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            seconds[name].append(contestants[name].seconds())
    return {
        name: {
            "seconds": statistics.median(taken),
            "megabytes": megabytes[name],
            **_ratios("base", taken, seconds.get(base)),
            **_ratios("stock", taken, seconds.get(STOCK)),
        }
        for name, taken in seconds.items()
    }


def _ratios(name: str, taken: List[float], others: Optional[List[float]]) -> Dict[str, float]:
    if others is None:
        return {}
    low, middle, high = statistics.quantiles([t / b for t, b in zip(taken, others)], n=4)
    return {name: middle, f"{name}_low": low, f"{name}_high": high}


def _clock(device: str) -> float:
    """Return seconds: on a GPU once its work is done, on one thread those of this process alone.

    The latter leave out the time in which other programs had the processor.
    """
    if device != "cpu":
        torch.cuda.synchronize()
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def peak_memory(step: Step, device: str) -> float:
    """Return the bytes that a step holds at most beyond what was there before it."""
    if device != "cpu":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler tells of its every start
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        step()
    held = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def can_fork(device: str) -> bool:
    """Return whether this process can be copied: not with a GPU, nor with threads of PyTorch's."""
    return device == "cpu" and sys.platform == "linux" and torch.get_num_threads() == 1


@contextmanager
def forked(steps: Steps, device: str) -> Iterator[Dict[str, Contestant]]:
    """Give every step a process of its own until the context ends, as trainings have.

    In one process each would also pay for the memory that the one before has or has not left.
    """
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
