"""Recipes tell what they take, and end in one line where this machine has less."""

import re

import pytest

SCRIPT = """set -euo pipefail; source recipes/lib/stages.sh
    work() {{ echo load 1 {gigabytes}; }}
    RUN_DIR={folder}/run; {options}; check_space {folder}/raw work; echo stage 2"""
NEEDS = "needs 1.0 GB to download, up to {} of disk in {}/run; 0 trainings"
LACK = "/run has "


@pytest.fixture
def check(start, tmp_path):
    """A function that runs check_space for so many GB; returns lines, without the time."""

    def check(gigabytes, options="NO_SPACE_CHECK=no"):
        script = SCRIPT.format(gigabytes=gigabytes, folder=tmp_path, options=options)
        process = start("bash", "-c", script)
        lines = [
            re.sub("^(.* \\| |# )", "", line) for line in process.communicate()[0].splitlines()
        ]
        assert not (tmp_path / "run").exists()
        return lines, process.returncode

    return check


def test_a_run_that_fits_is_told_and_goes_on(check, tmp_path):
    (needs, last), status = check(0)
    assert needs.startswith(NEEDS.format("0 MB", tmp_path)) and (last, status) == ("stage 2", 0)


def test_a_run_that_does_not_fit_ends_in_one_line(check, tmp_path):
    (needs, error), status = check(9_000_000)
    assert needs.startswith(NEEDS.format("9000000.0 GB", tmp_path)) and status == 1
    assert f"error: {tmp_path}{LACK}" in error and "needs 9000001.0" in error
    assert error.endswith("give another --run-dir, or --no-space-check")


@pytest.mark.parametrize("options", ["PLAN=yes NO_SPACE_CHECK=no", "NO_SPACE_CHECK=yes"])
def test_a_plan_and_one_who_wants_to_go_on_are_only_told(check, tmp_path, options):
    (_, note, last), status = check(9_000_000, options)
    assert note.startswith(f"note: {tmp_path}{LACK}") and (last, status) == ("stage 2", 0)


def test_small_data_of_smoke_are_not_counted(check):
    assert check(9_000_000, "SMOKE=yes NO_SPACE_CHECK=no") == (["stage 2"], 0)
