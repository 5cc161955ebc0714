"""The script that --slurm prints, run with stand-ins for SLURM's programs."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# A recipe's kind, whose trainings have four updates, with a checkpoint after each.
KIND = """
import sys
from recipes.lib import slurm
from recipes.lib.cell import PlannedCell, Step
from recipes.lib.config import RecipeScript, read_options
from recipes.lib.experiment import Experiment
from recipes.lib.runner import run_cells

HELP = '''
  --slurm             x
  --run-dir DIR       x
  --gpus N            x
  --device cpu|cuda   x
  --jobs N            x
  --cell N            x
  --hours N           x
  --stage N           x
  --stop-stage N      x
'''
page = RecipeScript("tiny", {script!r}, "/", {{"defaults": []}})
recipe = Experiment(page, read_options(page, HELP, sys.argv[1:]))
run, home = recipe.run_dir, {home!r}
cells = [
    PlannedCell("", row, [row], "1", "", f"{{run}}/{{row}}/seed1", f"{{run}}/{{row}}", [
        Step("train", ["bash", f"{{home}}/train", f"{{run}}/{{row}}/seed1", row, *recipe.extra],
             ("train.done",))])
    for row in ("sinusoidal", "shape", "cape")
]
if recipe.config["slurm"]:
    slurm.print_script(recipe, cells, 2, 3, 5, recipe.config.number("gpus"))
    sys.exit()


def log(text):
    with open(f"{{run}}/log", "a") as stream:
        print(text, "on", recipe.devices.type, file=stream)


def table():
    updates = [open(f"{{cell.folder}}/update").read().strip() for cell in cells]
    open(f"{{run}}/table.md", "w").write(" ".join(updates) + "\\n")


recipe.choose_devices()
recipe.open_folder()
recipe.stage(2, "load", lambda: log("loaded"))
recipe.stage(3, "data", lambda: log("prepared"), f"{{run}}/prepare.done")
recipe.stage(4, "train", lambda: run_cells(recipe, cells, ["train"]), of_cells=True)
recipe.stage(5, "table", table)
"""
TRAIN = """
for update in 1 2 3 4; do
    ((update > $(cat "$1/update" || echo 0))) 2>/dev/null || continue
    sleep 0.3
    echo "$update" >"$1/update"
    echo "$2 $update ${*:3} by $SLURM_ARRAY_TASK_ID for $HOURS hours" >>"$1/../../log"
done
"""
# Keeps the script of each submission, and its options.
SBATCH = """#!/usr/bin/env bash
number=$(ls "$SUBMITTED" | grep -c script || true)
cat >"$SUBMITTED/$number.script"
echo "$@" >"$SUBMITTED/$number.options"
[[ $1 != --parsable ]] || echo "$((100 + number));cluster"
"""
SCONTROL = """#!/usr/bin/env bash
echo "$@" >"$SUBMITTED/scontrol-$SLURM_JOB_ID"
"""


def test_the_printed_script_prepares_once_and_trains_all_through_a_requeue(run, start, tmp_path):
    bin, submitted, runs = (tmp_path / name for name in ("bin", "submitted", "my 5%x runs"))
    for path in (bin, submitted):
        path.mkdir()
    for name, text in {"bin/sbatch": SBATCH, "bin/scontrol": SCONTROL, "train": TRAIN}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = str(tmp_path / "tiny.sh")
    kind = KIND.format(script=script, home=str(tmp_path))
    (tmp_path / "tiny.py").write_text(kind)
    call = (
        f'cd {REPOSITORY} && PYTHONPATH={REPOSITORY} exec {sys.executable} {tmp_path}/tiny.py "$@"'
    )
    Path(script).write_text(call)
    command = ["bash", script, "--slurm", "--gpus", "2", "--run-dir", runs]
    script = run(*command, "--", "--fp16", "--lr", "1 2").replace("bash scripts/setup.sh --gpu", "")
    (tmp_path / "script").write_text(script)
    environment = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "SUBMITTED": submitted}
    run("bash", tmp_path / "script", "--partition", "a b", **environment, HOURS=3)
    assert (runs / "log").read_text() == "loaded on cpu\n"
    data, train, table = [(submitted / f"{number}.options").read_text() for number in range(3)]
    assert f"--output={tmp_path}/my 5%%x runs/slurm-%j.log " in data
    assert "--cpus-per-task=8 --mem=32G --partition a b" in data and "gpus" not in data
    for option in ("--dependency=afterok:100 ", "--array=1-3 ", "--requeue", "--signal=B:USR1@120",
                   "--cpus-per-task=8 --mem=64G --gpus-per-node=2", "--time=3:00:00"):  # fmt: skip
        assert option in train
    assert "--dependency=afterany:101 " in table and "gpus" not in table
    environment.update(CUDA_VISIBLE_DEVICES="0,1", HOURS=3)

    def job(script, number=0):
        about = {"SLURM_JOB_ID": 200 + number, "SLURM_ARRAY_TASK_ID": number}
        return start("setsid", "bash", submitted / script, **environment, **about)

    assert job("0.script").wait() == 0
    jobs = {number: job("1.script", number) for number in (1, 2, 3)}
    while "by 1" not in (runs / "log").read_text():
        assert jobs[1].poll() is None
        time.sleep(0.05)
    # time is up: the job asks to be put back, is killed, and comes again
    os.kill(jobs[1].pid, signal.SIGUSR1)
    while not (submitted / "scontrol-201").exists():
        assert jobs[1].poll() is None
        time.sleep(0.05)
    assert (submitted / "scontrol-201").read_text() == "requeue 201\n"
    os.killpg(jobs[1].pid, signal.SIGKILL)
    jobs[1].communicate()
    jobs[1] = job("1.script", 1)
    printed = [job.communicate()[0] for job in jobs.values()]
    assert [job.returncode for job in jobs.values()] == [0, 0, 0], printed
    assert job("2.script").wait() == 0
    log = (runs / "log").read_text().splitlines()
    assert log[:3] == ["loaded on cpu"] * 2 + ["prepared on cpu"]
    assert sorted(log[3:]) == [
        f"{row} {update} --fp16 --lr 1 2 by {number} for 3 hours"
        for row, number in (("cape", 3), ("shape", 2), ("sinusoidal", 1)) for update in (1, 2, 3, 4)
    ]  # fmt: skip
    assert (runs / "table.md").read_text() == "4 4 4\n"


@pytest.mark.parametrize(
    "recipe, trainings, last",
    [("shape/run", 21, 5), ("cape/run", 27, 5), ("rel_scalar/translate", 12, 5), ("iwslt14", 51, 5),
     ("rel_scalar/pretrain_english", 4, 3), ("rel_scalar/pretrain_multilingual", 4, 3)],
)  # fmt: skip
def test_every_recipe_that_has_a_plan_prints_a_script(run, recipe, trainings, last):
    printed = run("bash", f"recipes/{recipe}.sh", "--slurm", "--gpus", "4")
    assert f"--array=1-{trainings} " in printed
    first, data, train, *table = re.findall(
        rf"^bash recipes/{recipe}.sh --gpus 4 (.*)", printed, re.M
    )
    assert (first, data) == ("--device cpu --stop-stage 2", f"--device cpu --stop-stage {last}")
    assert train == '--device cuda --cell "$SLURM_ARRAY_TASK_ID" --hours "$HOURS" &'
    assert table == [f"--device cpu --stage {9 if last == 5 else 5}"]


@pytest.mark.parametrize(
    "option, told",
    [
        ("--jobs", "leave out --jobs"),
        ("--cell", "leave out --cell"),
        ("--stage", "leave out --stage"),
        ("--stop-stage", "leave out --stop-stage"),
        ("--hours", "HOURS=12 bash FILE"),
    ],
)
def test_what_the_script_chooses_is_not_given(fails, option, told):
    assert told in fails("bash", "recipes/iwslt14.sh", "--slurm", "--gpus", "4", option, "2")


def test_a_training_of_ones_own_text_has_one_gpu(run, fails):
    text = "--source-lang en --target-lang fr --train a/train --valid a/valid --test a/test"
    command = "bash", "recipes/own.sh", *text.split(), "--seeds", "1,2", "--slurm"
    printed = run(*command)
    assert "--array=1-12 " in printed and "--gpus-per-node=1 " in printed
    assert printed.count(" --train a/train ") == 4
    calls = re.findall("^bash recipes/own.sh.*", run(*command, "--device", "cuda"), re.M)
    assert len(calls) == 4 and all(call.count("--device ") == 1 for call in calls)
    assert "each training has one GPU" in fails(*command, "--gpus", "2")


@pytest.mark.parametrize("recipe, cells", [("glue", 480), ("xtreme", 160)])
def test_fine_tuning_is_submitted_with_a_gpu_per_cell_and_models_that_are_there(
    run, fails, recipe, cells
):
    command = "bash", f"recipes/{recipe}/run.sh", "--slurm"
    printed = run(*command)
    assert f"--array=1-{cells} " in printed and "--gpus-per-node=1 " in printed
    assert f"\nbash recipes/{recipe}/run.sh --device cpu --stop-stage 3\n" in printed
    assert "--slurm needs models that are there: run recipes/rel_" in fails(*command, "--smoke")
