"""Time in turn, compare round by round."""

import os
import statistics
import time
from typing import Callable, Dict, List, Optional

import torch
from tqdm import tqdm

from fairseq_posenc.benchmark.setting import STOCK

Steps = Dict[str, Callable[[], object]]


def race(
    steps: Steps, rounds: int, device: str, title: str, base: str, warm_up: int = 0
) -> Dict[str, Dict[str, float]]:
    """Run all steps in turn, ``rounds`` times, after one untimed round for their memory.

    Every timed step follows an untimed one of the same contestant, as steps of a training do: after
    another's, it would also be charged with the memory that the other has or has not left behind.

    Args:
        steps: one function per contestant.
        rounds: 2 or more.
        device: ``cpu`` or ``cuda``.
        title: for the progress bar.
        base: the contestant that all are compared with, beside stock fairseq.
        warm_up: further untimed rounds before all others.

    Returns:
        per contestant: median ``seconds``; ``megabytes``, the peak of what the step allocates; and
        as ratios of its time to that of the base and of stock fairseq in the same round,
        ``base`` and ``stock``, each with the quartiles ``…_low`` and ``…_high``.
    """
    for _ in range(warm_up):
        for step in tqdm(steps.values(), desc=f"{title}, warm-up", mininterval=1, leave=False):
            step()
    megabytes = {name: peak_memory(step, device) / 2**20 for name, step in steps.items()}
    seconds: Dict[str, List[float]] = {name: [] for name in steps}
    names = list(steps)
    for turn in tqdm(range(rounds), desc=title, mininterval=1, leave=False):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            steps[name]()
            seconds[name].append(_seconds(steps[name], device))
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


def _seconds(step: Callable[[], object], device: str) -> float:
    started = _clock(device)
    step()
    return _clock(device) - started


def _clock(device: str) -> float:
    """Return seconds: on a GPU once its work is done, on one thread those of this process alone.

    The latter leave out the time in which other programs had the processor.
    """
    if device != "cpu":
        torch.cuda.synchronize()
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def peak_memory(step: Callable[[], object], device: str) -> float:
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
