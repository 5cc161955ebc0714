"""The recipes' shell on a disk that is full: what has a name is whole, and the run stops."""

import shutil

import pytest

READY = "set -euo pipefail; source recipes/lib/stages.sh; mount -t tmpfs -o size=8k tmpfs {0}; "


@pytest.fixture
def shell(start, tmp_path):
    """A function that runs a script in a folder with two pages; returns status and output."""

    def shell(script):
        process = start("unshare", "-rm", "bash", "-c", READY.format(tmp_path) + script)
        printed = process.communicate()[0]
        if "unshare failed" in printed or "permission denied" in printed:
            pytest.skip("no file system of one's own")
        return process.returncode, printed

    if not shutil.which("unshare"):
        pytest.skip("needs unshare")
    return shell


def test_a_file_that_does_not_fit_leaves_the_old_one_and_no_part(shell, tmp_path):
    script = f"""
        echo old >{tmp_path}/out
        (writing {tmp_path}/out head -c 100000 /dev/zero) && echo "taken for whole"
        cat {tmp_path}/out; ls -A {tmp_path}
        writing {tmp_path}/out echo new; cat {tmp_path}/out
        cat /dev/zero | (writing {tmp_path}/out head -c 100000) || echo stopped; ls -A {tmp_path}
    """
    status, printed = shell(script)
    lines = [line for line in printed.splitlines() if "No space left" not in line]
    assert (status, lines) == (0, ["old", "out", "new", "stopped", "out"])


def test_a_stage_that_does_not_fit_has_no_mark(shell, tmp_path):
    work = f"work() {{ writing {tmp_path}/out head -c 100000 /dev/zero; }}; "
    status, printed = shell(f"{work} stage 1 work {tmp_path}/mark work")
    assert status != 0 and "finished" not in printed


def test_settings_that_cannot_be_kept_end_the_run_in_one_line(shell, tmp_path):
    script = (
        f"head -c 8192 /dev/zero >{tmp_path}/full; same_settings {tmp_path}/settings a; echo on"
    )
    status, printed = shell(script)
    assert status != 0 and "on\n" not in printed
    assert printed.splitlines()[-1].endswith(f"error: cannot write {tmp_path}/settings")
