"""The command posenc: what it offers, and that asking costs nothing."""

import subprocess
import sys

import pytest

from fairseq_posenc import encodings
from fairseq_posenc.tools import cli

WORDS = [name for name in cli.COMMANDS if name != "prepare"]
WORDS += [f"prepare {name}" for name in cli.PREPARATIONS]
# what their help says depends on fairseq's parser, or on what is registered
HEAVY = ["analyse", "benchmark", "profile-admin", "translate"]
HELP = """
import sys
from fairseq_posenc.tools import cli
sys.argv = ["posenc", *sys.argv[1:], "--help"]
try:
    cli.main()
except SystemExit as end:
    assert not end.code
print(not {"torch", "matplotlib", "scipy"}.isdisjoint(sys.modules))
"""


@pytest.mark.parametrize("words", WORDS)
def test_help_is_there_and_needs_no_large_library(words):
    printed = subprocess.run(
        [sys.executable, "-c", HELP, *words.split()], stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout.splitlines()
    assert len(printed) > 3
    assert printed[-1] == str(words in HEAVY)


def test_encodings_are_listed_with_their_options_and_defaults(run):
    printed = run("posenc", "encodings")
    for name in encodings.names():
        assert f"\n{name}" in f"\n{printed}"
        for option, value in encodings.options(name).items():
            flag = f"--position-{option.replace('_', '-')} {encodings.format_value(value)} "
            assert flag in printed


def test_mistakes_are_one_line(fails):
    for words, said in [
        (["score2"], "no command 'score2'"),
        (["prepare", "bin"], "no command 'bin'"),
        (["encodings", "shapes"], "no encoding shapes"),
    ]:
        [line] = fails("posenc", *words).splitlines()
        assert said in line


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["posenc", "plot"])

    def missing(name):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(cli.importlib, "import_module", missing)
    with pytest.raises(SystemExit, match="matplotlib is missing: bash scripts/setup.sh"):
        cli.main()
