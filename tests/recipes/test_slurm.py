"""The script that --slurm prints, run with stand-ins for SLURM's programs and for all others."""

import os
import re
import signal
import time

import pytest

from tests.recipes.conftest import WAITS, lay_out, log, texts_in, trainings, wait_for

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
OWN = "bash recipes/own.sh --source-lang en --target-lang fr --epochs 1 --seeds 1".split()


def test_the_printed_script_prepares_once_and_trains_all_through_a_requeue(run, start, tmp_path):
    submitted, runs = tmp_path / "submitted", tmp_path / "my 5%x runs"
    environment = lay_out(tmp_path, WAITS)
    submitted.mkdir()
    for name, text in {"sbatch": SBATCH, "scontrol": SCONTROL}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    command = [*OWN, *texts_in(tmp_path), "--encodings", "sinusoidal,shape,cape", "--run-dir", runs]
    script = run(*command, "--slurm", "--", "--fp16", "--lr", "1 2")
    # the environment is there, as for a recipe that has set up and is started again
    for line in "bash scripts/setup.sh --gpu\n", "source scripts/env.sh\n":
        assert line in script
        script = script.replace(line, "")
    (tmp_path / "script").write_text(script)
    environment |= {"SUBMITTED": submitted, "HOURS": 3, "POSENC_RECIPE_ENVIRONMENT": time.time()}
    run("bash", tmp_path / "script", "--partition", "a b", **environment)
    data, train, table = [(submitted / f"{number}.options").read_text() for number in range(3)]
    assert f"--output={tmp_path}/my 5%%x runs/slurm-%j.log " in data
    assert "--cpus-per-task=8 --mem=32G --partition a b" in data and "gpus" not in data
    for option in ("--dependency=afterok:100 ", "--array=1-3 ", "--requeue", "--signal=B:USR1@120",
                   "--cpus-per-task=4 --mem=32G --gpus-per-node=1", "--time=3:00:00"):  # fmt: skip
        assert option in train
    assert "--dependency=afterany:101 " in table and "gpus" not in table

    def job(script, number=0):
        about = {"SLURM_JOB_ID": 200 + number, "SLURM_ARRAY_TASK_ID": number}
        about["CUDA_VISIBLE_DEVICES"] = 0
        return start("setsid", "bash", submitted / script, **environment, **about)

    assert job("0.script").wait() == 0
    first = job("1.script", 1)
    wait_for((tmp_path / "training").exists)
    # time is up: the job asks to be put back, is killed, and comes again
    os.kill(first.pid, signal.SIGUSR1)
    wait_for((submitted / "scontrol-201").exists)
    assert (submitted / "scontrol-201").read_text() == "requeue 201\n"
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    (tmp_path / "go").touch()
    jobs = [job("1.script", number) for number in (1, 2, 3)]
    printed = [job.communicate()[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], printed
    assert job("2.script").wait() == 0
    prepared = [words for words in log(tmp_path) if words[1:3] == ["prepare", "translation"]]
    assert len(prepared) == 1
    trained = [words[words.index("--position-encoding") + 1] for words in trainings(tmp_path)]
    assert sorted(trained) == ["cape", "shape", "sinusoidal", "sinusoidal"]
    assert all("--fp16 --lr 1 2" in " ".join(words) for words in trainings(tmp_path))
    [compared] = [words for words in log(tmp_path) if words[:2] == ["posenc", "compare"]]
    assert sum("score.json" in word for word in compared) == 3


@pytest.mark.parametrize(
    "recipe, trainings, last",
    [("shape/run", 21, 5), ("cape/run", 27, 5), ("rel_scalar/translate", 12, 5), ("iwslt14", 51, 5),
     ("rel_scalar/pretrain_english", 4, 3), ("rel_scalar/pretrain_multilingual", 4, 3)],
)  # fmt: skip
def test_every_recipe_that_has_a_plan_prints_a_script(run, recipe, trainings, last):
    printed = run("bash", f"recipes/{recipe}.sh", "--slurm", "--gpus", "4")
    resources = "--cpus-per-task=16 --mem=128G --gpus-per-node=4 "
    assert f"--array=1-{trainings} " in printed and resources in printed
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
