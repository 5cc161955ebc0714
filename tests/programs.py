"""Programs of a few lines, and shell scripts that find them first."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

ASKED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON", "POSENC_VENV")


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python(code, *words):
    """What a program prints that a new Python runs at the top of the repository, to its end."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bash(*arguments, path="", **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ASKED}
    environment.update(variables, PATH=f"{path}:{os.environ['PATH']}")
    return subprocess.run(
        ["bash", *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
