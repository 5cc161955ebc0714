"""scripts/test.sh and test_environments.sh, without running a suite."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import bash, program

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("status", [0, 5])
@pytest.mark.parametrize("style, types", [(0, 0), (1, 0), (0, 1)])
def test_test_script_passes_options_and_status_on(tmp_path, status, style, types):
    scripts = tmp_path / "a b" / "scripts"
    program(scripts / "setup.sh", f'echo "$@" >"{tmp_path}/asked"; echo "{tmp_path}/bin"')
    program(scripts / "test.sh", (ROOT / "scripts" / "test.sh").read_text())
    program(tmp_path / "bin" / "nproc", "echo 7")
    program(tmp_path / "bin" / "ruff", f"exit {style}")
    program(tmp_path / "bin" / "mypy", f"exit {types}")
    program(tmp_path / "bin" / "python", f'echo "$@" "$OMP_NUM_THREADS"; exit {status}')
    run = bash(scripts / "test.sh", "--venv", "there", "-x", "tests/a b", OMP_NUM_THREADS="2")
    assert run.returncode == (status or style or types)
    assert run.stdout == "-m pytest -n 7 --dist loadfile -x tests/a b 2\n"
    assert (tmp_path / "asked").read_text() == "--extra test --print-bin --venv there\n"


@pytest.fixture
def environments(tmp_path):
    """test_environments.sh beside a test.sh that fails under 3.11; python3.12, 3.13 are missing."""
    scripts = tmp_path / "scripts"
    for name in ("test_environments.sh", "pythons.sh"):
        program(scripts / name, (ROOT / "scripts" / name).read_text())
    program(
        scripts / "test.sh",
        'echo "$@"; case "$*" in *3.11*style) echo 1 failed; exit 1 ;; esac',
    )
    for version in ("3.10", "3.11"):
        says = f"case $* in *json.load*) cat >/dev/null; echo 2.99 ;; *) echo {version} ;; esac"
        program(tmp_path / "bin" / f"python{version}", says)
    for version in ("3.12", "3.13"):
        program(tmp_path / "bin" / f"python{version}", "echo not installed >&2; exit 127")
    program(tmp_path / "bin" / "uv", "exit 2")

    def run(*arguments):
        where = {"path": tmp_path / "bin", "PYENV_ROOT": str(tmp_path)}
        return bash(scripts / "test_environments.sh", *arguments, **where)

    return run


MISSING = "{0}  missing  there is no Python {0}; install it, e.g. 'uv python install {0}'"


@pytest.mark.parametrize(
    "chosen, status, lines",
    [
        ([], 1, ["3.10  passed  --venv {}/.venv310 --python python3.10 --no-style",
                 "3.11  failed  1 failed", MISSING.format("3.12"), MISSING.format("3.13")]),
        (["3.12", "newest", "--", "-x"], 3, [MISSING.format("3.12"),
         "newest  passed  --venv {}/.venvnewest --python python3.11 --torch 2.99 --no-style -x"]),
        (["3.11", "3.12"], 1, ["3.11  failed  1 failed", MISSING.format("3.12")]),
    ],
)  # fmt: skip
def test_every_environment_gets_its_line_and_a_failure_fails_the_whole(
    environments, tmp_path, chosen, status, lines
):
    run = environments(*chosen)
    found = [re.sub(r"\d+ s  ", "", line) for line in run.stdout.splitlines()]
    assert (run.returncode, found) == (status, [line.format(tmp_path) for line in lines])


def test_what_is_skipped_is_named_at_the_end(tmp_path):
    (tmp_path / "test_here.py").write_text(
        "import pytest\n\n\ndef test_it():\n    pytest.skip('no such thing here')\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider",
         "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert re.search(r"SKIPPED .*test_here.py:5: no such thing here$", run.stdout, re.M), run.stdout
