"""The peak memory of many updates is the largest resident set of their process."""

import resource
from argparse import Namespace

import torch

from recipes.benchmark import memory


def test_what_one_of_the_updates_holds_counts(monkeypatch):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    steps = []

    def step():
        steps.append(setting)
        if len(steps) == 2:
            torch.ones(int(before) + 64, 2**18)  # as many MiB as there are rows

    def updates(of):
        nonlocal setting
        setting = of
        return dict.fromkeys(["stock", *of.contestants], step)

    setting = None
    monkeypatch.setattr(memory, "updates", updates)
    args = Namespace(shape="tiny", length=8, tokens=32, dropout=0.1, updates=3)
    assert memory.peak_memory("sinusoidal --amp", args) >= before + 64
    assert len(steps) == 3 and setting.batch == 4 and setting.contestants == ["sinusoidal --amp"]
