"""The parts of recipes/claims.sh: what they run, and what they do not run again."""

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from recipes.claims import measuring, parts
from recipes.lib.cell import PlannedCell


@pytest.fixture
def part(tmp_path):
    """A run of claims that makes the files of its commands, and keeps their words in `commands`."""
    commands = []

    def execute(words, output="", log=""):
        commands.append(words)
        made = words[words.index("--output") + 1] if "--output" in words else ""
        if words[0] == "mkdir":
            os.makedirs(words[-1], exist_ok=True)
        for file in filter(None, (made, output)):
            Path(file).touch()

    arrays = {"speed_training": [], "speed_bert": []}
    part = SimpleNamespace(
        is_plan=False, seeds=["1"], say=print, execute=execute, score=lambda *_: None,
        script=SimpleNamespace(arrays=arrays), devices=SimpleNamespace(options=[]),
        path=lambda *names: "/".join([str(tmp_path), *names]), commands=commands,
    )  # fmt: skip
    part.once = partial(measuring.Measuring.once, part)
    return part


def test_times_that_are_there_are_not_measured_again(part):
    parts.Claims.speed(part, "speed")
    assert [words[0] for words in part.commands] == ["mkdir", "env", "env"]
    parts.Claims.speed(part, "speed")
    assert [words[0] for words in part.commands[3:]] == ["mkdir"]


def test_an_export_that_was_cut_is_replaced(part, tmp_path):
    cell = PlannedCell("", "shape", ["shape"], "1", "", str(tmp_path), str(tmp_path))
    measuring.Measuring.decode_in_stock(part, "length", cell)
    assert part.commands[0][:2] == ["posenc", "export"] and "--force" in part.commands[0]


def test_no_stage_looks_for_switched_models_under_other_options_than_their_trainings(run, tmp_path):
    words = "--parts length,switch --rows sinusoidal,rotary --seeds 1,2 --plan --device cpu"
    printed = run("bash", "recipes/claims.sh", *words.split(), "--run-dir", tmp_path / "run")
    calls = [line for line in printed.splitlines() if "quickstart.sh" in line and "/switch" in line]
    assert len(calls) == 2 and all(" --finetune-from-model " in line for line in calls)
