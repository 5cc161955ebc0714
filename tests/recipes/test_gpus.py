"""Each training has GPUs, cores and a port of its own."""

import pytest

LIBRARY = "set -euo pipefail; source recipes/lib/stages.sh; source recipes/lib/batch.sh"


@pytest.mark.parametrize(
    "visible, given, jobs, slices",
    [
        ("", "8", 2, {"0,1,2,3", "4,5,6,7"}),
        ("", "4", 1, {"0,1,2,3"}),
        ("3,4,5,6,7", "4", 2, {"3,4", "5,6"}),
        ("3,4,5,6,7", "", 5, {"3", "4", "5", "6", "7"}),
        ("0,1,2,3,4,5,6,7", "", 3, {"0,1", "2,3", "4,5"}),
        ("GPU-a,GPU-b", "", 4, {"GPU-a", "GPU-b"}),
    ],
)
def test_trainings_at_a_time_divide_the_gpus(run, tmp_path, visible, given, jobs, slices):
    script = f"""{LIBRARY}; source recipes/lib/rows.sh; source recipes/lib/cells.sh
        DEVICE=cuda JOBS={jobs} GPUS={given} GPU_MEMORY=16 RUN_DIR={tmp_path}
        ROWS=(shaw t5) SEEDS="$(seq -s ' ' {jobs})"
        look_at_gpus; choose_launch; echo "launch: ${{LAUNCH[*]}}"
        new_sheet; describe_rows
        sheet step train log bash -c 'sleep 0.5; echo "$CUDA_VISIBLE_DEVICES"' '>' log
        all_cells train"""
    printed = run("bash", "-c", script, CUDA_VISIBLE_DEVICES=visible)
    on = [path.read_text().strip() for path in tmp_path.glob("*/*/log")]
    assert len(on) == 2 * jobs and set(on) == slices
    count = len(next(iter(slices)).split(","))
    expected = f"--nproc-per-node {count} " if count > 1 else "--distributed-world-size 1"
    assert expected in printed


def test_more_gpus_than_there_are_is_a_mistake(fails):
    script = f"{LIBRARY}; DEVICE=cuda JOBS=1 GPUS=8 GPU_MEMORY=16; look_at_gpus"
    printed = fails("bash", "-c", script, CUDA_VISIBLE_DEVICES="0,1")
    assert "--gpus is 8, but CUDA_VISIBLE_DEVICES names 2" in printed


def test_four_of_eight_gpus_of_two_nodes_are_eight(run):
    command = ["bash", "recipes/rel_scalar/translate.sh", "--stage", "2", "--plan"]
    command += ["--device", "cuda", "--gpus", "4", "--gpu-memory", "16", "--settings", "en-de"]
    visible = ",".join(map(str, range(8)))
    printed = run(*command, SLURM_JOB_NUM_NODES=2, CUDA_VISIBLE_DEVICES=visible)
    assert "× 8 GPUs" in printed
    (first, *_) = [line for line in printed.splitlines() if line.startswith("srun")]
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3 fairseq-train" in first
    assert "--nodes 2 --ntasks-per-node 1" in first and "--distributed-world-size 8 " in first


def test_processes_divide_the_cores(run):
    script = f"""{LIBRARY}; cores() {{ echo 64; }}; JOBS=2 GPUS=4; unset OMP_NUM_THREADS
        share_cores; echo $OMP_NUM_THREADS"""
    assert run("bash", "-c", script).split() == ["8"]


def test_a_port_that_is_taken_is_not_chosen(run):
    script = f"""{LIBRARY}
        RANDOM=1; wanted=$((20000 + RANDOM % 20000))
        python -c "
import socket, sys, time
with socket.create_server(('127.0.0.1', $wanted)): print('ready', flush=True); time.sleep(60)" &
        while ! (: >/dev/tcp/127.0.0.1/$wanted) 2>/dev/null; do sleep 0.1; done
        echo $wanted $(RANDOM=1; free_port); kill $!"""
    ready, taken, chosen = run("bash", "-c", script).split()
    assert ready == "ready" and chosen.isdigit() and chosen != taken
