"""--plan of the fine-tuning recipes is what they run."""

import os
import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from fairseq_posenc.tools.bert.xtreme import find_questions
from recipes.lib.recipe import TIME_IS_UP, Recipe

GLUE, XTREME = "recipes/glue/run.sh", "recipes/xtreme/run.sh"
TASKS = {GLUE: "CoLA,MNLI", XTREME: "XNLI,SQuAD"}
RAW = {
    GLUE: ["CoLA/train.tsv"],
    XTREME: ["MNLI/train.tsv", "XNLI-1.0/xnli.test.tsv", "squad/train-v1.1.json",
             "squad/dev-v1.1.json", *(file.path for file in find_questions("", official=True)[0])],
}  # fmt: skip


@pytest.mark.parametrize("recipe", [GLUE, XTREME])
def test_the_plan_run_as_printed_is_the_recipe(finetuning, recipe):
    recipe, tasks, raw = finetuning("a home", recipe), TASKS[recipe], RAW[recipe]
    for name in raw:
        (recipe.home / name).parent.mkdir(exist_ok=True, parents=True)
        (recipe.home / name).write_text(name)
    options = ["--tasks", tasks, "--seeds", "1,2", "--lrs", "1e-5,2e-5", "--stop-stage", "5"]
    options += ["--epochs", "20", "--", "--adam-betas", "(0.8, 0.9)"]
    plan = recipe("--plan", *options)
    assert "\n# 8 trainings: 1 rows × 2 tasks × 2 learning rates × 2 seeds\n" in plan
    assert not recipe.runs.exists() and not recipe.commands()
    recipe(*options)
    expected, results = _commands(recipe), _results(recipe.runs)
    assert len(results) == 8 + 8 + 2 * len(list(recipe.runs.glob("*.md"))) > 16
    assert [words[0] for words in expected].count("fairseq-train") == 8
    for path in recipe.runs, recipe.home / "commands":
        path.rename(f"{path}.before")
    (recipe.home / "plan.sh").write_text(plan)
    recipe.run("bash", "-e", recipe.home / "plan.sh")
    assert _commands(recipe) == expected and _results(recipe.runs) == results
    assert not list(recipe.runs.rglob("checkpoint*.pt"))
    assert "8 finished before" in recipe(*options)


def _commands(recipe):
    """All commands but those that look, without notes of after training."""
    found = []
    for words in recipe.commands():
        if words[0] not in ("newest_checkpoint", "lib"):
            *words, last = re.split(r"\0--note\0pretrained=[^\0]*", "\0".join(words))
            found.append("".join([*words, last]).split("\0"))
    return sorted(found)


def _results(runs):
    names = ["*.md", "*.csv", "cell.json", "score.json"]
    return {path.relative_to(runs): path.read_text() for name in names for path in runs.rglob(name)}


# Test sets of each command, and how many commands there are.
@pytest.mark.parametrize(
    "recipe, options, trainings, tests",
    [(GLUE, [], 480, {1: 5 * 4, 2: 4}),
     (GLUE, ["--rows", "all", "--submission"], 1620, {2: 8 * 9, 5: 9}),
     (XTREME, ["--rows", "all"], 480, {16: 12, 28: 12}),
     (XTREME, ["--smoke", "--stage", "3"], 8, {6: 2, 12: 2})],
)  # fmt: skip
def test_without_a_set_up_the_plan_has_all_trainings_and_tests(
    run, tmp_path, recipe, options, trainings, tests
):
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    command = ["bash", recipe, "--plan", "--run-dir", tmp_path / "run", *options]
    printed = run(*command, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert "--cpu" not in printed  # whatever this machine has
    assert f"\n# {trainings} trainings: " in printed and not (tmp_path / "run").exists()
    assert len(re.findall("(?m)^fairseq-train ", printed)) == sum(tests.values())
    subsets = re.findall(r"(?m)^posenc predict .* --subsets (\S+) ", printed)
    assert Counter(names.count(",") + 1 for names in subsets) == tests


def test_the_plan_names_a_task_or_file_that_is_not_there(finetuning):
    glue, xtreme = finetuning("glue"), finetuning("xtreme", XTREME)
    assert "no task of GLUE is called Cola (--tasks)" in glue("--plan", "--tasks", "Cola", status=1)
    assert "holds none of MNLI/train.tsv, " in xtreme("--plan", "--tasks", "XNLI", status=1)


@pytest.mark.parametrize(
    "options, tables",
    [([], "4"), (["--rows", "8"], "8"), (["--rows", "all", "--pretrain", "-- --bf16"], "4 8 10"),
     (["--tables", "chen2021-8,chen2021-10"], "8 10"), (["--encodings", "none"], "4 8 10")],
)  # fmt: skip
def test_no_table_is_half_empty_unless_asked_for(run, options, tables):
    printed = run("bash", GLUE, "--plan", *options)
    assert " ".join(re.findall(r"(?m)^posenc table --paper chen2021-(\d+)", printed)) == tables
    made = re.findall(r"(?m)^bash recipes/rel_scalar/pretrain_english.sh .*", printed)
    assert [line[-10:] for line in made] == ([" -- --bf16"] if "--pretrain" in options else [])


@pytest.mark.parametrize(
    "options, made",
    [(["--pretrain", "-- --bf16"], "--hours 9 -- --bf16"),
     (["--pretrain", "--hours 3 --jobs 2"], "all=none --hours 3 --jobs 2"), ([], "")],
)  # fmt: skip
def test_the_hours_are_also_those_of_the_pretraining(run, options, made):
    printed = run("bash", GLUE, "--plan", "--hours", "9", "--encodings", "all=none", *options)
    commands = re.findall(r"(?m)^bash recipes/rel_scalar/pretrain_english.sh .*", printed)
    assert [" ".join(commands).endswith(made), len(commands)] == [True, bool(made)]


def test_a_recipe_ends_as_the_one_that_it_runs_where_the_time_is_up():
    with pytest.raises(SystemExit) as ended:
        Recipe.execute(SimpleNamespace(is_plan=False), ["bash", "-c", "exit 75"])
    assert ended.value.code == TIME_IS_UP


@pytest.mark.parametrize("anchor, commands", [("wmt14", 7), ("bert", 6)])
def test_the_plan_of_an_anchor_needs_no_environment(run, tmp_path, anchor, commands):
    command = ["bash", "recipes/anchors.sh", anchor, "--plan", "--run-dir", tmp_path / "run"]
    printed = run(*command, PATH="/usr/bin:/bin")
    found = re.findall(r"(?m)^(?:posenc|fairseq-generate|bash recipes)", printed)
    assert len(found) == commands and not (tmp_path / "run").exists()
