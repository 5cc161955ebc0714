"""Several jobs on one run folder, on simulated hosts: each thing is in one job's hands."""

import os
import re
import signal
import time

import pytest


@pytest.fixture
def job(start, tmp_path):
    """A function that starts a script as a job on a host without flock, in a group of its own."""
    (tmp_path / "bin").mkdir()
    for name, line in {"uname": "echo $HOST_OF_TEST", "flock": "exit 71"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def job(host, script, **environment):
        lines = "set -euo pipefail; source recipes/lib/stages.sh; JOBS=1 DEVICE=cpu"
        cells = f"open_cell() {{ folder={tmp_path}/run/$1; }}"
        lines = f"{lines}; {cells}; open_run_dir {tmp_path}/run; {script}"
        environment = {"POSENC_BEAT": "1", "POSENC_STALE": "60", **environment}
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return start("setsid", "bash", "-c", lines, HOST_OF_TEST=host, PATH=path, **environment)

    return job


def finish(process):
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 0, printed
    return printed


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_of_many_jobs_one_has_a_thing_in_hand(job):
    script = "for cell in a b/c d; do if claim $cell; then echo mine $cell; fi; done; sleep 3"
    processes = [job(f"host{number % 2}", script) for number in range(6)]
    printed = "".join([finish(process) for process in processes])
    assert sorted(re.findall("mine .*", printed)) == ["mine a", "mine b/c", "mine d"]


def test_of_many_jobs_one_takes_over_what_a_dead_job_had_in_hand(job, tmp_path):
    first = job("host0", "claim a; claim b; echo ready; sleep 60")
    assert first.stdout.readline() == "ready\n"
    kill(first)
    os.utime(next((tmp_path / "run/running").glob("host0.*")), (0, 0))
    script = "for cell in a b; do until claim $cell; do :; done; echo $cell; sleep 0.2"
    script += "; release $cell; done"
    processes = [job("host1", f"{script}; sleep 2") for _ in range(6)]
    printed = [finish(process) for process in processes]
    assert sum("has ended" in text for text in printed) == 1
    assert all(text.splitlines()[-2:] == ["a", "b"] for text in printed)
    assert not list((tmp_path / "run/running").iterdir())


def test_a_job_that_dies_on_this_host_is_found_dead_at_once(job):
    first = job("host0", "claim a; echo ready; sleep 60")
    assert first.stdout.readline() == "ready\n"
    second = job("host0", "echo begun; hold a; echo mine")
    assert second.stdout.readline() == "begun\n"
    kill(first)
    assert finish(second).endswith("mine\n")


def test_a_job_elsewhere_is_believed_alive_until_it_is_long_silent(job):
    first = job("host0", "claim a; echo ready; sleep 60")
    assert first.stdout.readline() == "ready\n"
    kill(first)
    assert "no" in finish(job("host1", "claim a || echo no"))
    started = time.monotonic()
    cells = "work() { echo working on $1; }; share_cells work a"
    assert "working on a" in finish(job("host1", cells, POSENC_STALE="3"))
    assert time.monotonic() - started < 20


def test_a_job_that_slurm_has_started_anew_takes_up_its_own_at_once(job):
    first = job("host0", "claim a; echo ready; sleep 60", SLURM_JOB_ID=7)
    assert first.stdout.readline() == "ready\n"
    kill(first)
    assert "no" in finish(job("host1", "claim a || echo no", SLURM_JOB_ID=8))
    again = job("host1", "claim a && echo mine", SLURM_JOB_ID=7, SLURM_RESTART_COUNT=1)
    assert "mine" in finish(again)


def test_programs_of_a_killed_job_are_waited_for(job, tmp_path):
    program = f"bash -c 'echo ready; until [[ -e {tmp_path}/end ]]; do sleep 0.1; done'"
    first = job("host0", f"claim a; {program}; :")
    assert first.stdout.readline() == "ready\n"
    first.kill()
    second = job("host0", "claim a && echo mine")
    assert "waiting for programs of another run" in second.stdout.readline()
    (tmp_path / "end").touch()
    assert finish(second) == "mine\n"


def test_a_job_that_was_taken_for_dead_ends(job, tmp_path):
    first = job("host0", "claim a; echo ready; sleep 60; echo still here")
    assert first.stdout.readline() == "ready\n"
    for path in (tmp_path / "run/running").iterdir():
        path.unlink()
    printed = first.communicate(timeout=30)[0]
    assert first.returncode != 0 and "still here" not in printed


def test_a_stage_is_done_once_and_the_others_wait(job, tmp_path):
    script = f"work() {{ echo working; sleep 3; }}; stage 2 text {tmp_path}/mark work; echo after"
    printed = [finish(process) for process in [job("host0", script), job("host1", script)]]
    assert sum("working" in text for text in printed) == 1
    assert sum("waiting for job host" in text for text in printed) == 1
    assert all(text.endswith("after\n") for text in printed)


def test_jobs_share_cells_and_leave_what_others_work_on(job, tmp_path):
    script = f"""cd {tmp_path}
        work() {{ [[ -e $1 ]] || {{ echo "trained $1"; sleep 0.3; touch $1; }}; }}
        share_cells work a b c d e f"""
    printed = [finish(process) for process in [job("host0", script), job("host1", script)]]
    trained = [line for text in printed for line in text.splitlines() if "trained" in line]
    assert sorted(trained) == [f"trained {cell}" for cell in "abcdef"]
    assert all("trained" in text for text in printed)


def test_a_file_system_without_hard_links_is_noted_and_no_obstacle(job, tmp_path):
    (tmp_path / "bin" / "ln").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "ln").chmod(0o755)
    printed = finish(job("host0", "work() { echo working on $1; }; share_cells work a b"))
    assert "on a file system without hard links" in printed
    assert printed.endswith("working on a\nworking on b\n")
