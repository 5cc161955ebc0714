"""The recipes' shell: help, mistakes, stages. What they train is tested end to end."""

import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPES = sorted(path.relative_to(REPOSITORY) for path in REPOSITORY.glob("recipes/*.sh"))
each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=str)


@pytest.fixture
def shell(start):
    """A function that runs a script of bash with the recipes' library; returns status, output."""

    def shell(script):
        process = start("bash", "-c", f"set -euo pipefail; source recipes/lib/stages.sh; {script}")
        return process.communicate()[0], process.returncode

    return shell


@each_recipe
def test_help_names_every_option(run, recipe):
    printed = run("bash", recipe, "--help")
    paths = (REPOSITORY / recipe, REPOSITORY / "recipes/lib/translation.sh")
    text = "".join(path.read_text() for path in paths)
    options = [
        line.split(")")[0].strip() for line in text.splitlines() if " ;;" in line and "$2" in line
    ]
    assert len(options) > 10
    for option in options:
        assert f"  {option} " in printed


def test_a_stage_is_skipped_when_done_and_repeated_when_it_failed(shell, tmp_path):
    work = (
        f'work() {{ echo working; [[ -e {tmp_path}/allowed ]]; }}; stage 1 "work" {tmp_path}/mark'
    )
    printed, status = shell(f"{work} work")
    assert status != 0 and "working" in printed and not (tmp_path / "mark").exists()
    (tmp_path / "allowed").touch()
    printed, status = shell(f"{work} work")
    assert status == 0 and "finished in" in printed
    printed, status = shell(f"{work} work")
    assert status == 0 and "working" not in printed and "done before" in printed


def test_stages_outside_the_range_do_not_run(shell):
    printed, status = shell(
        "FIRST_STAGE=2 LAST_STAGE=3; for n in 1 2 3 4; do stage $n t - echo n$n; done"
    )
    assert status == 0
    assert [line for line in printed.splitlines() if line.startswith("n")] == ["n2", "n3"]


def test_half_an_output_is_never_taken_for_a_whole_one(shell, tmp_path):
    printed, status = shell(f'writing {tmp_path}/out bash -c "echo half; exit 3"')
    assert status == 3 and not (tmp_path / "out").exists()
    assert shell(f"writing {tmp_path}/out echo whole")[1] == 0
    assert (tmp_path / "out").read_text() == "whole\n"


def test_a_failure_among_parallel_jobs_is_noticed(shell):
    job = "job() { sleep 0.1; [[ $1 != bad ]]; }; in_parallel 2 job"
    assert shell(f"{job} good fine well")[1] == 0
    assert shell(f"{job} good bad well")[1] != 0


def test_other_settings_do_not_mix_into_a_run(shell, tmp_path):
    assert shell(f"open_run_dir {tmp_path}/run a=1")[1] == 0
    assert shell(f"open_run_dir {tmp_path}/run a=1")[1] == 0
    assert shell(f"open_run_dir {tmp_path}/run a=2")[1] == 0
    (tmp_path / "run" / "result").touch()
    printed, status = shell(f"open_run_dir {tmp_path}/run a=3")
    assert status != 0 and "made with other settings" in printed


def test_a_row_can_be_mended_until_it_has_results(shell, tmp_path):
    cell = tmp_path / "row" / "seed1"
    mistaken = f"same_settings {tmp_path}/row/row shawl; same_settings {cell}/settings shawl"
    mended = mistaken.replace("shawl", "shaw")
    assert shell(mistaken)[1] == 0
    (cell / "train.log").touch()
    assert shell(mended)[1] == 0 and (cell / "settings").read_text() == "shaw\n"
    (cell / "checkpoint1.pt").touch()
    assert shell(mistaken)[1] != 0


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock")
def test_two_runs_do_not_share_a_folder(shell, start, tmp_path):
    lines = f"source recipes/lib/stages.sh; open_run_dir {tmp_path}/run a; echo mine; sleep 1"
    first = start("bash", "-c", lines)
    assert first.stdout.readline() == "mine\n"
    printed, status = shell(f"open_run_dir {tmp_path}/run a")
    assert status == 0 and "waiting for programs" in printed
    assert first.wait(timeout=60) == 0
