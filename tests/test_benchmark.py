"""The benchmark runs and its arithmetic is right; how fast anything is, no test asks."""

import json

import pytest

from fairseq_posenc import benchmark
from fairseq_posenc.encodings import names


def test_the_command_times_every_encoding(run, tmp_path):
    output = tmp_path / "speed.json"
    options = "--lengths 6 --tokens 12 --rounds 5".split()
    printed = run("python", "scripts/benchmark.py", *options, "--output", output)
    table = json.loads(output.read_text())["lengths"]["6"]
    assert list(table) == [benchmark.STOCK, *names()]
    assert table["sinusoidal"]["speed"] == 1
    for name, figures in table.items():
        assert figures["low"] <= figures["speed"] <= figures["high"]
        assert f"| {name} | {figures['speed']:.3f} (" in printed


def test_ratios_are_taken_round_by_round():
    figures = benchmark._summary([1.0, 2.0, 4.0, 8.0, 10.0], [2.0, 4.0, 8.0, 16.0, 10.0])
    assert figures["speed"] == 2 and figures["seconds"] == 4


@pytest.mark.parametrize("rounds", ["4", "0"])
def test_too_few_rounds_are_refused(start, rounds):
    process = start("python", "scripts/benchmark.py", "--rounds", rounds)
    assert "5 or more" in process.communicate()[0] and process.returncode != 0
