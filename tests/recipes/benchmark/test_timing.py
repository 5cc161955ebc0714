"""The arithmetic of timings is right, and contestants are timed in turn."""

import pytest
import torch

from recipes.benchmark import timing


@pytest.fixture
def scripted(monkeypatch):
    """A function that makes the contestants' times what it is told; `asked` has their order."""

    def scripted(durations):
        class Timer:
            def __init__(self, statement, globals, **_):
                self.name = globals["step"].__name__
                self.taken = iter(durations[self.name])

            def timeit(self, times):
                scripted.asked.append(self.name)
                return type("Measurement", (), {"mean": next(self.taken)})

        scripted.asked = []
        monkeypatch.setattr(timing, "Timer", Timer)
        monkeypatch.setattr(timing, "peak_memory", lambda step, device: 2**20)
        steps = dict.fromkeys(durations)
        for name in steps:
            steps[name] = lambda: None
            steps[name].__name__ = name
        return steps

    return scripted


def test_ratios_are_taken_round_by_round(scripted):
    durations = {"sinusoidal": [2.0, 4.0, 8.0, 16.0, 10.0], "shaw": [1.0, 2.0, 4.0, 8.0, 10.0]}
    figures = timing.race(scripted(durations), "cpu", 5, "sinusoidal")
    assert figures["shaw"]["base"] == 0.5 and figures["shaw"]["seconds"] == 4
    assert figures["shaw"]["megabytes"] == 1 and "stock" not in figures["shaw"]
    assert scripted.asked == ["sinusoidal", "shaw", "shaw", "sinusoidal"] * 2 + scripted.asked[:2]


def test_peak_memory_is_what_is_held_at_once():
    def step():
        first = torch.zeros(1 << 20)
        del first
        return torch.zeros(1 << 19), torch.zeros(1 << 19)

    assert timing.peak_memory(step, "cpu") == pytest.approx(4 << 20, rel=0.01)
