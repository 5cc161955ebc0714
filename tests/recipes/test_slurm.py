"""The script that --slurm prints, run with stand-ins for SLURM's programs."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# A recipe whose trainings have four updates, with a checkpoint after each.
RECIPE = f"""
set -euo pipefail
cd {REPOSITORY}
source recipes/lib/stages.sh
source recipes/lib/rows.sh
source recipes/lib/options.sh
source recipes/lib/cells.sh
source recipes/lib/slurm.sh
RUN_DIR='' SEEDS=1 DEVICE='' JOBS='' GPUS='' WORKERS=3 SLURM=no FLAGS=--slurm EXTRA=()
ROWS=(sinusoidal shape cape) OPTIONS=gpus
parse_arguments "$@"
if [[ $SLURM == yes ]]; then print_slurm 2; exit; fi
prepare() {{ echo "prepared on $DEVICE" >>"$RUN_DIR/log"; }}
train() {{
    local update last
    open_cell "$1"
    mkdir -p "$folder"
    last=$(cat "$folder/update" || echo 0) 2>/dev/null
    for update in 1 2 3 4; do
        if ((update <= last)); then continue; fi
        sleep 0.3
        echo "$update" >"$folder/update"
        echo "$row $update ${{EXTRA[*]}} by $SLURM_JOB_ID" >>"$RUN_DIR/log"
    done
}}
choose_device
open_run_dir "$RUN_DIR"
stage 2 "data" "$RUN_DIR/prepare.done" prepare
stage 3 "train" - all_cells train
table() {{ cat "$RUN_DIR"/*/*/update | paste -s -d ' ' - >"$RUN_DIR/table.md"; }}
stage 4 "table" - once table
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
    bin, submitted, runs = (tmp_path / name for name in ("bin", "submitted", "my runs"))
    for path in (bin, submitted):
        path.mkdir()
    for name, text in {"sbatch": SBATCH, "scontrol": SCONTROL}.items():
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    (tmp_path / "tiny.sh").write_text(RECIPE)
    command = ["bash", tmp_path / "tiny.sh", "--slurm", "--gpus", "2", "--run-dir", runs]
    (tmp_path / "script").write_text(run(*command, "--", "--fp16", "--lr", "1 2"))
    environment = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "SUBMITTED": submitted}
    run("bash", tmp_path / "script", "--partition", "a b", **environment)
    data, train = [(submitted / f"{number}.options").read_text() for number in (0, 1)]
    assert "--cpus-per-task=3 --partition a b" in data and "gpus" not in data
    for option in ("--dependency=afterok:100 ", "--array=1-3 ", "--requeue", "--signal=B:USR1@120",
                   "--cpus-per-task=8 --gpus-per-node=2 --partition a b"):  # fmt: skip
        assert option in train
    environment["POSENC_BEAT"] = 1

    def job(script, number, restarts=0):
        about = {"SLURM_JOB_ID": number, "CUDA_VISIBLE_DEVICES": "0,1"}
        if restarts:
            about["SLURM_RESTART_COUNT"] = restarts
        return start("setsid", "bash", submitted / script, **environment, **about)

    first = job("0.script", 100)
    assert first.communicate()[1] is None and first.returncode == 0
    jobs = {number: job("1.script", number) for number in (201, 202)}
    while "by 201" not in (runs / "log").read_text():
        assert jobs[201].poll() is None
        time.sleep(0.05)
    # time is up: the job asks to be put back, is killed, and comes again
    os.kill(jobs[201].pid, signal.SIGUSR1)
    while not (submitted / "scontrol-201").exists():
        assert jobs[201].poll() is None
        time.sleep(0.05)
    assert (submitted / "scontrol-201").read_text() == "requeue 201\n"
    os.killpg(jobs[201].pid, signal.SIGKILL)
    jobs[201].communicate()
    jobs[201] = job("1.script", 201, restarts=1)
    printed = [job.communicate()[0] for job in jobs.values()]
    assert [job.returncode for job in jobs.values()] == [0, 0], printed
    log = (runs / "log").read_text().splitlines()
    assert log[0] == "prepared on cpu"
    assert sorted(re.sub(" by .*", "", line) for line in log[1:]) == [
        f"{row} {update} --fp16 --lr 1 2" for row in ("cape", "shape", "sinusoidal")
        for update in (1, 2, 3, 4)
    ]  # fmt: skip
    assert (runs / "table.md").read_text() == "4 4 4\n"


@pytest.mark.parametrize(
    "recipe, trainings, last",
    [("shape/run", 21, 5), ("cape/run", 45, 5), ("rel_scalar/translate", 12, 5),
     ("rel_scalar/pretrain_english", 4, 3), ("rel_scalar/pretrain_multilingual", 4, 3)],
)  # fmt: skip
def test_every_recipe_that_has_a_plan_prints_a_script(run, fails, recipe, trainings, last):
    command = "bash", f"recipes/{recipe}.sh", "--plan", "--slurm"
    printed = run(*command, "--gpus", "4", "--jobs", "2")
    assert f"--array=1-{trainings // 2 + trainings % 2} " in printed
    assert (
        f"\nbash recipes/{recipe}.sh --gpus 4 --jobs 2 --device cpu --stop-stage {last} \n"
        in printed
    )
    assert f"\nbash recipes/{recipe}.sh --gpus 4 --jobs 2 --device cuda  &\n" in printed
    assert "--slurm needs --gpus N" in fails(*command)


@pytest.mark.parametrize("recipe, cells", [("glue", 480), ("xtreme", 160)])
def test_fine_tuning_is_submitted_with_a_gpu_per_cell_and_models_that_are_there(
    run, fails, recipe, cells
):
    command = "bash", f"recipes/{recipe}/run.sh", "--slurm"
    printed = run(*command)
    assert f"--array=1-{cells} " in printed and "--gpus-per-node=1 " in printed
    assert f"\nbash recipes/{recipe}/run.sh --device cpu --stop-stage 3 \n" in printed
    assert f"--array=1-{cells // 4} " in run(*command, "--jobs", "4")
    assert "--slurm needs models that are there: run recipes/rel_" in fails(*command, "--smoke")
