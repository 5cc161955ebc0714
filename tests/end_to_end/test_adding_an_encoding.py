"""docs/CONTRIBUTING.md, done to the letter in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "CONTRIBUTING.md"
PARTS = (
    "fairseq_posenc",
    "tests/conftest.py",
    "tests/forking.py",
    "tests/programs.py",
    "tests/tiny.py",
    "tests/encodings",
    "tests/models",
    "pyproject.toml",
)


def copy_of_repository(folder):
    """Copy what the page's commands read; nothing of it is edited in place."""
    for part in PARTS:
        source, target = REPOSITORY / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def add_encoding(folder, page):
    """Write the page's file, and its line into the table."""
    file, line = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    path = re.search(r"`(fairseq_posenc/encodings/\w+\.py)`:\n\n```python", page).group(1)
    (folder / path).write_text(file, encoding="utf-8")
    table = folder / "fairseq_posenc" / "encodings" / "__init__.py"
    text = table.read_text(encoding="utf-8")
    name = re.search(r"^class (\w+)", file, flags=re.MULTILINE).group(1)
    text = text.replace("}\n", line + "}\n", 1)
    imported = f"from {path[:-3].replace('/', '.')} import {name}\n"
    table.write_text(text.replace("TABLE:", f"{imported}\nTABLE:", 1), encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the repository to which the page's encoding was added."""
    folder = tmp_path_factory.mktemp("repository")
    copy_of_repository(folder)
    add_encoding(folder, PAGE.read_text(encoding="utf-8"))
    return folder


def run_in(folder, command, programs):
    """Run a command line of the page; return what it printed."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, shell=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture
def commands():
    """The page's blocks of commands."""
    return re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_tests_of_encodings_and_models_test_the_new_one(extended, commands):
    # one file counts graphs of all encodings anew, which takes as long as all else
    others = " -n 0 --ignore tests/models/test_compiled.py"
    printed = run_in(extended, commands[0].strip() + others, os.path.dirname(sys.executable))
    found = {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|skipped)", printed)}
    # some torch has no half precision on a CPU
    assert found["passed"] > 40 and found.get("skipped", 0) < 10


def test_it_trains(extended, commands, binarised, copies):
    command = commands[1].replace("fairseq-train bin", f"fairseq-train {binarised}")
    printed = run_in(extended, command, copies.bin)
    assert "position:power|version:" in printed
    assert "done training" in printed
