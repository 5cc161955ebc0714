"""The command posenc, in this process, and files for it."""

import json
import sys

import pytest

from fairseq_posenc.tools import cli


@pytest.fixture
def posenc(monkeypatch, capsys):
    """A function that runs the command and returns what it printed: `out` and `err`."""

    def posenc(*words):
        monkeypatch.setattr(sys, "argv", ["posenc", *map(str, words)])
        cli.main()
        return capsys.readouterr()

    return posenc


@pytest.fixture
def write(tmp_path):
    """A function that writes text, lines, or a dictionary as JSON, and returns the file's path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content)
        elif not isinstance(content, str):
            content = "".join(f"{line}\n" for line in content)
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write
