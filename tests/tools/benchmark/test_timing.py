"""The arithmetic of timings is right, and contestants disturb each other as little as they can."""

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import timing
from fairseq_posenc.tools.benchmark.timing import SUBJECTS, can_fork, forked, measure

IMPORT = "from fairseq_posenc.tools.benchmark.timing import forked\n"
WORDS = [
    "CUDA out of memory. Tried to allocate 20.00 MiB",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.",
    "shapes do not fit",
]


class Scripted(timing.Contestant):
    """Takes the seconds it is told, and tells what it was asked."""

    def __init__(self, name, taken, asked):
        self.name, self.taken, self.asked = name, iter(taken), asked

    def run(self):
        self.asked.append(f"run {self.name}")

    def seconds(self):
        self.asked.append(f"time {self.name}")
        return next(self.taken)

    def megabytes(self):
        self.asked.append(f"weigh {self.name}")
        return 0.0


def test_ratios_are_taken_round_by_round():
    durations = {"sinusoidal": [2.0, 4.0, 8.0, 16.0, 10.0], "shaw": [1.0, 2.0, 4.0, 8.0, 10.0]}
    contestants = {name: Scripted(name, taken, []) for name, taken in durations.items()}
    figures = timing.race(contestants, 5, "test", "sinusoidal")
    assert figures["shaw"]["base"] == 0.5 and figures["shaw"]["seconds"] == 4
    assert "stock" not in figures["shaw"]


def test_rounds_for_warming_up_come_first_and_are_not_timed():
    asked = []
    contestants = {name: Scripted(name, [1.0, 1.0], asked) for name in ("sinusoidal", "shaw")}
    timing.race(contestants, 2, "test", "sinusoidal", warm_up=2)
    assert asked == [
        *["run sinusoidal", "run shaw"] * 2,
        *["weigh sinusoidal", "weigh shaw"],
        *["time sinusoidal", "time shaw"],
        *["time shaw", "time sinusoidal"],
    ]


def test_a_timed_step_follows_an_untimed_one(monkeypatch):
    taken = []
    monkeypatch.setattr(timing, "_clock", lambda device: float(len(taken)))
    contestant = timing.Contestant(lambda: taken.append("step"), "cpu")
    contestant.run()
    assert len(taken) == 1
    assert contestant.seconds() == 1 and len(taken) == 3


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_contestants_in_processes_share_nothing(one_thread):
    """Each has a process, which ends with the race; all start from the same state."""
    state = []

    def step(name):
        state.append(name)
        if state != [name] * len(state):
            raise AssertionError(state)

    steps = {name: partial(step, name) for name in ("sinusoidal", "shaw")}
    with forked(steps, "cpu") as contestants:
        figures = timing.race(contestants, 5, "test", "sinusoidal", warm_up=1)
        processes = multiprocessing.active_children()
        assert len(processes) == 2
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)
    assert not state and figures["shaw"]["seconds"] > 0


def test_a_contestant_that_dies_is_named(one_thread):
    steps = {"sinusoidal": lambda: None, "shaw": lambda: os.kill(os.getpid(), signal.SIGKILL)}
    told = pytest.raises(UsageError, match=r"process of shaw ended \(-9\).*fewer --encodings")
    with told, forked(steps, "cpu") as contestants:
        timing.race(contestants, 5, "test", "sinusoidal")


@pytest.fixture
def alone():
    """A function that runs a program with one thread and in a group of its own, to its end."""

    def alone(program):
        return subprocess.run(
            [sys.executable, "-c", f"import os, signal\n{IMPORT}{program}"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
        )

    return alone


def test_processes_end_with_the_one_that_made_them(alone):
    """A killed command leaves none behind that waits; they would hold its output open."""
    done = alone(
        "with forked({'a': print, 'b': print}, 'cpu') as found:\n"
        "    print(*(c.process.pid for c in found.values()), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.returncode == -signal.SIGKILL and len(done.stdout.split()) == 2


def test_processes_say_nothing_of_an_interrupt(alone):
    """Ctrl-C reaches all; only the one that made them answers."""
    done = alone(
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with forked({'a': lambda: os.killpg(0, signal.SIGINT)}, 'cpu') as found:\n"
        "    try:\n"
        "        found['a'].run()\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_with_threads_or_a_gpu_all_share_one_process(one_thread):
    assert can_fork("cpu") and not can_fork("cuda")
    torch.set_num_threads(2)
    assert not can_fork("cpu")


def test_peak_memory_is_what_is_held_at_once():
    def step():
        first = torch.zeros(1 << 20)
        del first
        return torch.zeros(1 << 19), torch.zeros(1 << 19)

    assert timing.peak_memory(step, "cpu") == pytest.approx(4 << 20, rel=0.01)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("building", [True, False])
def test_too_little_memory_is_reported_and_other_errors_are_not_hidden(
    monkeypatch, settings_of, words, building
):
    setting = settings_of("cape-9", "--quick")[0]

    def fail():
        raise RuntimeError(words)

    monkeypatch.setitem(
        SUBJECTS, setting.subject, lambda s: fail() if building else {"stock": fail}
    )
    with pytest.raises(RuntimeError if words == WORDS[-1] else UsageError) as caught:
        measure(setting)
    assert words in str(caught.value)
    assert words == WORDS[-1] or "6 sentences of 10 tokens" in str(caught.value)
