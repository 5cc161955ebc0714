"""Contestants are timed in turn, and compared round by round."""

import os
import statistics
import time
from typing import Callable, Dict, List, Mapping, Optional

import torch
from tqdm import tqdm

from fairseq_posenc.tools.benchmark.settings import STOCK

Step = Callable[[], object]
Steps = Dict[str, Step]


class Contestant:
    """A step that can be timed.

    Args:
        step: what to time.
        device: ``cpu`` or ``cuda``.
    """

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
        """Take the step and return the peak of what it allocates."""
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
        warming = tqdm(contestants.values(), f"{title}, warm-up", mininterval=1, leave=False)
        for contestant in warming:
            contestant.run()
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
