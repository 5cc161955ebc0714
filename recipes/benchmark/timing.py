"""Contestants are timed in turn, round after round, and compared within each round."""

import os
import statistics
import time
from typing import Dict, List, Optional

import torch
from torch.utils.benchmark import Timer, timer
from tqdm import tqdm

from recipes.benchmark.settings import STOCK, Step, Steps

Figures = Dict[str, float]


def race(steps: Steps, device: str, rounds: int, base: str, title: str = "") -> Dict[str, Figures]:
    """Time all contestants in turn, ``rounds`` times, after two untimed rounds, one for memory.

    A machine whose speed drifts slows all of a round alike. Each timed step follows two untimed
    ones of its own, as the steps of a training do.

    Args:
        steps: by the contestants' names.
        device: ``cpu`` or ``cuda``.
        rounds: 2 or more.
        base: the contestant that all are compared with, beside stock fairseq.
        title: for the progress bar.

    Returns:
        per contestant: median ``seconds``; ``megabytes``, the peak of what the step allocates; and
        as ratios of its time to that of the base and of stock fairseq in the same round,
        ``base`` and ``stock``, each with the quartiles ``…_low`` and ``…_high``.
    """
    for step in steps.values():  # what stays from one step to the next is made here
        step()
    megabytes = {name: peak_memory(step, device) / 2**20 for name, step in steps.items()}
    threads = torch.get_num_threads()
    # With one thread, processor time counts: other programs' is left out. Else wall time counts,
    # on a GPU once its work is done.
    clock = time.process_time if device == "cpu" and threads == 1 else timer
    timers = {
        name: Timer("step()", globals={"step": step}, timer=clock, num_threads=threads)
        for name, step in steps.items()
    }
    seconds: Dict[str, List[float]] = {name: [] for name in steps}
    names = list(steps)
    for turn in tqdm(range(rounds), desc=title, mininterval=1, leave=False):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            seconds[name].append(timers[name].timeit(1).mean)
    return {
        name: {
            "seconds": statistics.median(taken),
            "megabytes": megabytes[name],
            **_ratios("base", taken, seconds.get(base)),
            **_ratios("stock", taken, seconds.get(STOCK)),
        }
        for name, taken in seconds.items()
    }


def _ratios(name: str, taken: List[float], base: Optional[List[float]]) -> Figures:
    if base is None:
        return {}
    low, middle, high = statistics.quantiles([t / b for t, b in zip(taken, base)], n=4)
    return {name: middle, f"{name}_low": low, f"{name}_high": high}


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
