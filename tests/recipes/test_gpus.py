"""Each training has GPUs, cores and a port of its own."""

import os
import random
import socket

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import devices


@pytest.mark.parametrize(
    "visible, given, jobs, slices",
    [
        ("", 8, 2, {"0,1,2,3", "4,5,6,7"}),
        ("", 4, 1, {"0,1,2,3"}),
        ("3,4,5,6,7", 4, 2, {"3,4", "5,6"}),
        ("3,4,5,6,7", 0, 5, {"3", "4", "5", "6", "7"}),
        ("0,1,2,3,4,5,6,7", 0, 3, {"0,1", "2,3", "4,5"}),
        ("GPU-a,GPU-b", 0, 4, {"GPU-a", "GPU-b"}),
    ],
)
def test_trainings_at_a_time_divide_the_gpus(monkeypatch, visible, given, jobs, slices):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(devices, "ask_python", lambda code: "8")
    found = devices.divide_gpus(jobs, devices.list_gpus(given), 16)
    on = [found.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(jobs)]
    assert set(on) == slices and found.trainings_per_gpu == jobs // len(slices)
    count = len(next(iter(slices)).split(","))
    expected = f"--nproc-per-node {count}" if count > 1 else "--distributed-world-size 1"
    assert expected in " ".join(found.launch())


def test_more_gpus_than_there_are_is_a_mistake(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(UsageError, match="--gpus is 8, but CUDA_VISIBLE_DEVICES names 2"):
        devices.list_gpus(8)
    # but for a plan, which may be for another machine
    assert devices.list_gpus(3, is_plan=True) == ("0", "1", "2")
    # fairseq trains on the CPU, without a word, where CUDA_VISIBLE_DEVICES names a GPU that is not
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for there, told in ("1", "--gpus is 2, but there are 1"), ("0", "there is no GPU"):
        monkeypatch.setattr(devices, "ask_python", lambda code, there=there: there)
        with pytest.raises(UsageError, match=told):
            devices.list_gpus(2)
        assert devices.list_gpus(2, is_plan=True) == ("0", "1")


@pytest.mark.parametrize("printed", ["", "0"])
def test_a_batch_is_not_planned_by_the_memory_of_no_gpu(monkeypatch, printed):
    monkeypatch.setattr(devices, "ask_python", lambda code: printed)
    with pytest.raises(UsageError, match="there is no GPU to look at: give --gpu-memory"):
        devices.smallest_memory()


def test_four_of_eight_gpus_of_two_nodes_are_eight(run):
    command = ["bash", "recipes/rel_scalar/translate.sh", "--stage", "2", "--plan"]
    command += ["--device", "cuda", "--gpus", "4", "--gpu-memory", "16", "--settings", "en-de"]
    visible = ",".join(map(str, range(8)))
    printed = run(*command, SLURM_JOB_NUM_NODES=2, CUDA_VISIBLE_DEVICES=visible)
    assert "× 8 GPUs" in printed
    (first, *_) = [line for line in printed.splitlines() if line.startswith("srun")]
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3 fairseq-train" in first
    assert "--nodes 2 --ntasks-per-node 1" in first and "--distributed-world-size 8 " in first


def test_processes_divide_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(devices, "cores", lambda: 64)
    eight = devices.Devices("cuda", 2, tuple("01234567"), 4)
    assert eight.environment(0)["OMP_NUM_THREADS"] == "8"
    assert devices.Devices("cpu", 128).environment(0)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "3")
    assert eight.environment(0)["OMP_NUM_THREADS"] == "3"


def test_a_port_that_is_taken_is_not_chosen(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        ports = iter([taken, taken, 20001])
        monkeypatch.setattr(random, "randrange", lambda *limits: next(ports))
        assert devices.free_port() == 20001
