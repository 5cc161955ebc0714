"""The command posenc: what it offers, and that asking costs nothing."""

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys

import pytest

from fairseq_posenc import encodings
from fairseq_posenc.tools import cli
from fairseq_posenc.version import __version__
from tests.programs import python

WORDS = [name for name in cli.COMMANDS if name != "prepare"]
WORDS += [f"prepare {name}" for name in cli.PREPARATIONS]
# what their help says depends on fairseq's parser, or on what is registered
HEAVY = ["analyse", "perplexity", "profile-admin"]
HELP = """
import contextlib, sys
from fairseq_posenc.tools import cli
for words in sys.argv[1:]:
    sys.argv = ["posenc", *words.split(), "--help"]
    with contextlib.suppress(SystemExit):
        cli.main()
print({"torch", "matplotlib", "scipy"} & sys.modules.keys())
"""


def test_help_needs_no_large_library():
    assert python(HELP, *sorted({*WORDS} - {*HEAVY})).splitlines()[-1] == "set()"


@pytest.fixture
def printed_here(monkeypatch):
    """A function from words to what posenc prints where Python cannot print …, é or ω."""

    def printed_here(*words):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "argv", ["posenc", *words])
        with contextlib.suppress(SystemExit):
            cli.main()
        stream.flush()
        return stream.buffer.getvalue().decode()

    return printed_here


@pytest.mark.parametrize("words", WORDS)
def test_help_is_there(printed_here, words):
    assert len(printed_here(*words.split(), "--help").splitlines()) > 3


def examples(words):
    """Return the commands that the help of a command shows, as lists of words."""
    module = "_".join(words.replace("-", "_").split())
    text = importlib.import_module(f"fairseq_posenc.tools.commands.{module}").__doc__
    text = re.sub(r" \\\n +", " ", text)
    lines = re.findall(r"^    (posenc .*?)(?:  .*)?$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("words", WORDS)
def test_the_help_has_examples_that_the_command_takes(words, monkeypatch):
    """But for what stands for options of fairseq-train."""

    class Taken(Exception):
        pass

    def parse(*given, parse=argparse.ArgumentParser.parse_known_args):
        raise Taken(parse(*given))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", parse)
    assert examples(words)
    for example in examples(words):
        monkeypatch.setattr(sys, "argv", example)
        if "<options" not in example:
            with pytest.raises(Taken):
                cli.main()


def test_encodings_are_listed_with_their_options_and_defaults(printed_here):
    printed = printed_here("encodings")
    for name in encodings.names():
        assert f"\n{name}" in f"\n{printed}"
        for option, value in encodings.options(name).items():
            flag = f"--position-{option.replace('_', '-')} {encodings.format_value(value)} "
            assert flag in printed


def test_the_version_is_printed(run):
    assert run("posenc", "--version") == f"fairseq_posenc {__version__}\n"


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_under_what_is_printed_is_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "fairseq_posenc.tools", "encodings"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8")
    assert ended.returncode == 1
    assert ended.stderr == "posenc encodings: error: cannot print: No space left on device\n"
