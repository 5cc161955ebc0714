"""The trainings of the papers' recipes and of our evidence are those that were printed once."""

import json
import re
import shlex
from pathlib import Path

import pytest

FROZEN = json.loads(Path(__file__).with_name("frozen_plans.json").read_text(encoding="utf-8"))
EIGHT = "--device cuda --gpus 8 --gpu-memory 80".split()
SMALL = "quickstart.sh", "python_docs.sh", "claims.sh"


def options(line):
    """A command as a set: the program, and each option with its values."""
    words = [word.rpartition("/")[2] if word.endswith("/fairseq-train") else word
             for word in shlex.split(line.partition(" >")[0])]  # fmt: skip
    return {part.replace("\0", " ") for part in re.split(r"\0(?=--)", "\0".join(words))}


def test_the_papers_and_iwslt14_have_142_lines():
    assert sum(len(FROZEN[name]["lines"]) for name in FROZEN if name not in SMALL) == 142


@pytest.mark.parametrize("recipe", FROZEN)
def test_every_training_is_printed_as_it_was_options_in_any_order(run, recipe):
    where = ["--device", "cpu"] if recipe in SMALL else EIGHT
    if recipe.startswith(("glue", "xtreme")):
        where = []
    printed = run("bash", f"recipes/{recipe}", "--plan", *where).splitlines()
    found = [options(line) for line in printed if re.match("(torchrun|fairseq-train) ", line)]
    frozen = FROZEN[recipe]
    expected = [{*frozen["common"], *line} for line in frozen["lines"]]
    assert len(found) >= len(expected)
    assert not [line for line in expected if line not in found]
