"""Whatever ends a recipe ends what it has started, and the next start finishes it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recipes.conftest import OWN, WAITS, lay_out, texts_in, wait_for


@pytest.fixture
def own(start, tmp_path):
    """A function that starts own.sh with stand-ins, perhaps behind other words."""
    environment, run_dir = lay_out(tmp_path, WAITS), ["--run-dir", tmp_path / "run"]
    words = [*OWN, *texts_in(tmp_path), *run_dir, "--stage", "2", "--device", "cpu"]
    return lambda *before: start(*before, "bash", *words, **environment)


def is_there(process):
    """Return whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_a_signal_to_a_recipe_ends_its_training_and_the_next_start_goes_on(own, tmp_path, name):
    number = signal.Signals[name]
    recipe = own()
    wait_for((tmp_path / "training").exists)
    training = int((tmp_path / "training").read_text())
    assert is_there(training)
    recipe.send_signal(number)
    printed = recipe.communicate()[0]
    if number == signal.SIGKILL:
        wait_for(lambda: not is_there(training))
        assert recipe.returncode == -number
    else:
        assert not is_there(training)
        assert recipe.returncode == 128 + number and "error" not in printed, printed
        assert (
            printed.endswith("interrupted; start again to go on\n") and "Traceback" not in printed
        )
    (tmp_path / "go").touch()
    recipe = own()
    printed = recipe.communicate()[0]
    assert recipe.returncode == 0 and "1 cells, 0 finished before" in printed, printed
    assert (tmp_path / "run/shaw/seed1/score.json").exists()
    assert not list((tmp_path / "run").rglob("*part*"))


LOST = """
import os, signal, sys
from types import SimpleNamespace
from fairseq_posenc.errors import UsageError
from recipes.lib import __main__ as program
from recipes.lib.processes import call

def work(*_):
    os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))
    if call(["sleep", "20"]):
        raise UsageError("sleep failed")

program.KINDS["kind"] = "kind"
sys.modules["kind"] = SimpleNamespace(main=work)
program.read_script = lambda _: (SimpleNamespace(recipe_kind="kind", path="own.sh"), [])
sys.exit(program.main())
"""


def test_a_signal_that_comes_where_python_lets_no_error_out_interrupts():
    """Its error is lost there, and the program that is ended failed, it was said."""
    ended = subprocess.run([sys.executable, "-c", LOST], capture_output=True, encoding="utf-8")
    assert ended.stderr == "own.sh: interrupted; start again to go on\n"
    assert ended.returncode == 128 + signal.SIGTERM


def test_a_recipe_that_was_started_to_ignore_the_end_of_its_terminal_goes_on(own, tmp_path):
    recipe = own("nohup")
    wait_for((tmp_path / "training").exists)
    training = int((tmp_path / "training").read_text())
    recipe.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert is_there(training) and recipe.poll() is None
    recipe.terminate()
    recipe.communicate()
    assert not is_there(training)


def test_a_training_that_is_killed_is_told_and_the_next_start_goes_on(own, tmp_path):
    recipe = own()
    wait_for((tmp_path / "training").exists)
    os.kill(int((tmp_path / "training").read_text()), signal.SIGKILL)
    printed = recipe.communicate()[0]
    assert recipe.returncode == 1 and "[shaw seed 1] error: training failed, see" in printed
    (tmp_path / "go").touch()
    recipe = own()
    assert recipe.communicate() and recipe.returncode == 0


@pytest.mark.parametrize("log", ["prepare.log", "shaw/seed1/train.log", "shaw/seed1/generate.log"])
def test_a_log_that_cannot_be_written_is_one_line_and_the_next_start_goes_on(own, tmp_path, log):
    (tmp_path / "go").touch()
    (tmp_path / "run" / log).mkdir(parents=True)
    recipe = own()
    printed = recipe.communicate()[0]
    assert recipe.returncode == 1 and "Is a directory" in printed, printed
    assert "Traceback" not in printed
    (tmp_path / "run" / log).rmdir()
    recipe = own()
    assert recipe.communicate() and recipe.returncode == 0


def test_a_recipe_is_found_by_a_symbolic_link_and_a_folder_or_pipe_for_a_file_is_one_line(
    start, tmp_path
):
    def run(script, *words):
        process = start("bash", script, *words)
        return process.communicate()[0], process.returncode

    (tmp_path / "link.sh").symlink_to(Path("recipes/own.sh").resolve())
    printed, status = run(tmp_path / "link.sh", "--help")
    assert status == 0 and printed.startswith("usage: bash recipes/own.sh")
    for split in ("train", "valid", "test"):
        for language in ("en", "fr"):
            (tmp_path / f"{split}.{language}").write_text("text\n")
    (tmp_path / "run/settings").mkdir(parents=True)
    run_dir = "--run-dir", tmp_path / "run"
    words = [*OWN, *texts_in(tmp_path), *run_dir, "--stage", "2", "--device", "cpu"]
    printed, status = run(*words)
    assert (
        status == 1 and printed.count("\n") == 1 and "run/settings is a folder, a pipe" in printed
    )
    (tmp_path / "test.en").unlink()
    os.mkfifo(tmp_path / "test.en")
    printed, status = run(*words)
    assert status == 1 and printed.count("\n") == 1 and "test.en is a folder, a pipe" in printed
