"""The benchmark runs and its arithmetic is right; how fast anything is, no test asks."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import SUBJECTS, Column, Setting, apart, timing
from fairseq_posenc.tools.benchmark.attention import NAIVE_SHAW, SEGMENTS, prepare
from fairseq_posenc.tools.benchmark.bert import SEGMENTED
from fairseq_posenc.tools.benchmark.record import Record
from fairseq_posenc.tools.benchmark.report import render

EXTRA = {
    "attention": {SEGMENTS, NAIVE_SHAW},
    "bert": set(SEGMENTED.values()),
}


def test_the_command_times_every_encoding_in_every_subject(run, tmp_path):
    output = tmp_path / "speed.json"
    options = "--shape tiny --lengths 8 --tokens 16 --rounds 5 --dropout 0.1".split()
    printed = run("posenc", "benchmark", *options, "--device", "cpu", "--output", output)
    results = json.loads(output.read_text())["cells"]
    assert [result["cell"]["subject"] for result in results] == list(SUBJECTS)
    for result in results:
        subject = result["cell"]["subject"]
        extra = EXTRA.get(subject, set())
        assert set(result["contestants"]) == {"stock", *names()} | extra
        for name, figures in result["contestants"].items():
            assert figures["base_low"] <= figures["base"] <= figures["base_high"]
            assert figures["megabytes"] > 0
            assert f"| {name} | {figures['stock']:.3f} (" in printed
        base = "learned" if subject == "bert" else "sinusoidal"
        assert result["contestants"][base]["base"] == 1


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
    column = Column("training", Setting("tiny", ["shaw"], 8), 5, "a machine")
    record = Record()
    record.add(column, {"batch": 1, "contestants": figures})
    text = render(record.results)
    assert "| shaw | 0.500 (0.50-0.75), 0 MB |" in text and "of 5 rounds; a machine" in text


def test_an_interrupted_command_continues(tmp_path, capsys, monkeypatch):
    columns = [Column("layer", Setting("tiny", [], n), 5, "a machine") for n in (1, 2, 3)]
    path, measured = str(tmp_path / "speed.json"), []

    def measure(column):
        if column.setting.length == 3 and len(measured) == 2:
            measured.append("interrupted")
            raise KeyboardInterrupt
        measured.append(column.setting.length)
        return {"batch": column.setting.length, "contestants": {}}

    with pytest.raises(UsageError, match=f"the same command continues from {path}"):
        Record(path).complete(columns, measure)
    assert "2 of 3: layer, length 2, dropout 0: " in capsys.readouterr().err
    assert len(json.loads(Path(path).read_text())["cells"]) == 2
    results = Record(path).complete(columns, measure)
    assert [result["batch"] for result in results] == [1, 2, 3]
    assert measured == [1, 2, "interrupted", 3]
    others = [replace(columns[0], rounds=6), replace(columns[0], hardware="another")]
    others.append(replace(columns[0], setting=replace(columns[0].setting, encodings=["t5"])))
    assert all(Record(path).find(other) is None for other in others)
    assert Record(path).find(columns[0]) is not None
    apart_now = apart.possible("cpu")
    monkeypatch.setattr(apart, "possible", lambda device: not apart_now)
    assert Record(path).find(columns[0]) is None


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


def test_contestants_apart_share_nothing(one_thread):
    """Each has a process, which ends with the race; all start from the same state."""
    state = []

    def step(name):
        state.append(name)
        if state != [name] * len(state):
            raise AssertionError(state)

    steps = {name: partial(step, name) for name in ("sinusoidal", "shaw")}
    with apart.contestants(steps, "cpu") as contestants:
        figures = timing.race(contestants, 5, "test", "sinusoidal", warm_up=1)
        processes = multiprocessing.active_children()
        assert len(processes) == 2
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)
    assert not state and figures["shaw"]["seconds"] > 0


def test_a_contestant_that_dies_is_named(one_thread):
    steps = {"sinusoidal": lambda: None, "shaw": lambda: os.kill(os.getpid(), signal.SIGKILL)}
    told = pytest.raises(UsageError, match=r"process of shaw ended \(-9\).*fewer --encodings")
    with told, apart.contestants(steps, "cpu") as contestants:
        timing.race(contestants, 5, "test", "sinusoidal")


@pytest.fixture
def alone():
    """A function that runs a program with one thread and in a group of its own, to its end."""

    def alone(program):
        return subprocess.run(
            [sys.executable, "-c", f"import os, signal\n{program}"],
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
        "from fairseq_posenc.tools.benchmark import apart\n"
        "with apart.contestants({'a': print, 'b': print}, 'cpu') as found:\n"
        "    print(*(c.process.pid for c in found.values()), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.returncode == -signal.SIGKILL and len(done.stdout.split()) == 2


def test_processes_say_nothing_of_an_interrupt(alone):
    """Ctrl-C reaches all; only the one that made them answers."""
    done = alone(
        "from fairseq_posenc.tools.benchmark import apart\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with apart.contestants({'a': lambda: os.killpg(0, signal.SIGINT)}, 'cpu') as found:\n"
        "    try:\n"
        "        found['a'].run()\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_with_threads_or_a_gpu_all_share_one_process(one_thread):
    assert apart.possible("cpu") and not apart.possible("cuda")
    torch.set_num_threads(2)
    with apart.contestants({"shaw": lambda: None}, "cpu") as contestants:
        assert type(contestants["shaw"]) is timing.Contestant


def test_peak_memory_is_what_is_held_at_once():
    def step():
        first = torch.zeros(1 << 20)
        del first
        return torch.zeros(1 << 19), torch.zeros(1 << 19)

    assert timing.peak_memory(step, "cpu") == pytest.approx(4 << 20, rel=0.01)


def test_shaw_by_pairs_computes_the_same_as_ours(monkeypatch):
    """Both ways of the comparison do the same work: same outputs, same gradients."""
    torch.manual_seed(0)
    seen = []
    monkeypatch.setattr(torch.autograd, "backward", lambda outputs, _: seen.append(outputs))
    steps = prepare(Setting("tiny", ["sinusoidal", "shaw"], 40, tokens=160))
    for name in ("shaw", NAIVE_SHAW):
        steps[name]()
    real = slice(0, 30)
    for ours, pairs in zip(*seen):
        torch.testing.assert_close(ours[real], pairs[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options, words",
    [
        ("--rounds 4", "5 or more, not 4"),
        ("speed", "unknown: speed"),
        ("--encodings shaw,sinusodial", "unknown: sinusodial"),
        ("--lengths 8,x", "expected a whole number, 1 or more: x"),
        ("--tokens 0", "expected a whole number, 1 or more: 0"),
        ("--dropout 0,1.5", "expected probabilities below 1: 0,1.5"),
        ("--dropout x", "expected probabilities below 1: x"),
    ],
)
def test_mistakes_are_answered_in_one_line(start, options, words):
    process = start("posenc", "benchmark", *options.split())
    printed = process.communicate()[0]
    assert words in printed.splitlines()[-1] and process.returncode != 0
    assert "Traceback" not in printed
