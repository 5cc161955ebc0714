"""The trainings of the papers' recipes and of our evidence are those that were printed once."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

FROZEN = json.loads(Path(__file__).with_name("frozen_plans.json").read_text(encoding="utf-8"))
EIGHT = "--device cuda --gpus 8 --gpu-memory 80".split()
SMALL = "quickstart.sh", "python_docs.sh", "claims.sh"
GROWING = "iwslt14.sh", "python_docs.sh"  # which train every encoding, later ones too


def options(line):
    """A command as a set: the program, and each option with its values."""
    words = [word.rpartition("/")[2] if word.endswith("/fairseq-train") else word
             for word in shlex.split(line.partition(" >")[0])]  # fmt: skip
    return {part.replace("\0", " ") for part in re.split(r"\0(?=--)", "\0".join(words))}


@pytest.mark.parametrize("recipe", FROZEN)
def test_every_training_is_printed_as_it_was_options_in_any_order(run, recipe):
    where = ["--device", "cpu"] if recipe in SMALL else EIGHT
    if recipe.startswith(("glue", "xtreme")):
        where = []
    printed = run("bash", f"recipes/{recipe}", "--plan", *where).splitlines()
    found = [options(line) for line in printed if re.match("(torchrun|fairseq-train) ", line)]
    frozen = FROZEN[recipe]
    expected = [{*frozen["common"], *line} for line in frozen["lines"]]
    assert len(found) == len(expected) or recipe in GROWING
    assert expected and not [line for line in expected if line not in found]


def test_seeds_of_one_model_are_noted_to_be_one(run):
    words = "--plan --smoke --seeds 1,2 --device cpu".split()
    lines = run("bash", "recipes/longer_inputs.sh", *words).splitlines()
    noted = [("row=before" in line, "one-model=yes" in line)
             for line in lines if line.startswith("posenc score")]  # fmt: skip
    assert sorted(noted) == [(False, False)] * 4 + [(True, True)] * 2


@pytest.mark.parametrize("neighbours, texts", [("1", ["lines"]), ("2", ["lines", "test"])])
def test_pairs_that_are_not_joined_are_tested_once(run, neighbours, texts):
    words = f"--plan --smoke --seeds 1 --device cpu --neighbours {neighbours}".split()
    plan = run("bash", "recipes/longer_inputs.sh", *words)
    for language in ("en", "de"):
        found = re.findall(rf"(\w+)\.joined\.{language}\b(?=.*all\.{language})", plan)
        assert found == texts


TEXTS = "--source-lang en --target-lang fr --train HERE/a --valid HERE/b --test HERE/c"
PATHS = {
    f"own.sh {TEXTS} --run-dir HERE/r": ["--train HERE/a ", "--test HERE/c ", "--output HERE/r/"],
    "rel_scalar/pretrain_english.sh --text HERE/a --valid HERE/b": ["--train HERE/a ",
                                                                  "--valid HERE/b "],
    "rel_scalar/pretrain_multilingual.sh --text de=HERE/a,en=HERE/b": ["de=HERE/a,en=HERE/b "],
    "glue/run.sh --pretrained learned=HERE/model --text HERE/t": ["HERE/model", "HERE/t"],
    "shape/run.sh --ready HERE/a": ["--input HERE/a "],
    "lm.sh --data-dir HERE/a --language en": ["HERE/a/train.txt"],
}  # fmt: skip


LINES = "a\nJOB\n{}echo pwned_$((6*7))\nexit\n"  # one value; with --slurm it ends a substitution
WITH_LINES = [
    f"own.sh {TEXTS} --plan",
    f"own.sh {TEXTS} --slurm",
    f"own.sh {TEXTS} --plan -- --user HERE",
    "lm.sh --url HERE --plan",
    "iwslt14.sh --raw-dir HERE --plan",
    "shape/run.sh --raw-dir HERE --plan",
    "shape/run.sh --raw-dir HERE --slurm --gpus 1",
    "glue/run.sh --raw-dir HERE --plan",
]


@pytest.mark.parametrize("command", WITH_LINES)
def test_a_line_feed_in_a_value_runs_nothing_where_a_plan_is_pasted(command, tmp_path):
    lines = LINES.format(")\n" if "--slurm" in command else "")
    name, *options = (word.replace("HERE", lines) for word in command.split())
    printed = subprocess.run(
        ["bash", f"recipes/{name}", *options], capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert "pwned" in printed
    # no program is there, but what bash has itself
    script = "command_not_found_handle() { :; }\n" + printed
    ran = subprocess.run(
        [shutil.which("bash"), "-c", script], cwd=tmp_path, env={"PATH": str(tmp_path)},
        capture_output=True,
    )  # fmt: skip
    assert b"pwned_42" not in ran.stdout


@pytest.mark.parametrize("command", PATHS)
@pytest.mark.parametrize("here", ["", "elsewhere"])
def test_a_path_is_named_from_where_the_recipe_was_started(command, here, tmp_path):
    # from the top it stays as typed
    top = Path(__file__).resolve().parents[2]
    started = tmp_path if here else top
    (tmp_path / "some").mkdir()
    named = "some" if here else os.path.relpath(tmp_path / "some", top)
    (tmp_path / "some" / "model").touch()
    recipe, *words = command.replace("HERE", named).split()
    printed = subprocess.run(
        ["bash", str(top / "recipes" / recipe), *words, "--plan", "--device", "cpu"],
        cwd=started, capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    found = f"{tmp_path}/some" if here else named
    for path in PATHS[command]:
        assert path.replace("HERE", found) in printed


@pytest.mark.parametrize("recipe", ["rel_scalar/pretrain_english.sh",
    "rel_scalar/pretrain_multilingual.sh", "glue/run.sh", "xtreme/run.sh"])  # fmt: skip
def test_how_bert_is_trained_stands_on_the_recipes_page_alone(recipe):
    recipes = Path(__file__).resolve().parents[2] / "recipes"
    page = (recipes / recipe).read_text(encoding="utf-8")
    programs = "".join(path.read_text("utf-8") for path in recipes.glob("lib/*.py"))
    for option in "--weight-decay 0.01", "--dropout 0.1", "--attention-dropout 0.1":
        assert option in page and f'"{option.split()[0]}"' not in programs
