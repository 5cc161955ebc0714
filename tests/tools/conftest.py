"""The command posenc, in this process."""

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
