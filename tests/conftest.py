"""What the tests share: tiny tasks and models, and a place to run command lines."""

import gc
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, tiny_architecture

from fairseq_posenc.models.transformer import PosencTransformerModel

REPOSITORY = Path(__file__).resolve().parent.parent

# What earlier tests left may wait, when it is collected, for threads that no forked process has.
os.register_at_fork(after_in_child=gc.disable)


@pytest.fixture
def tiny_task():
    """A translation task with a dictionary of 40 types and no data."""
    dictionary = Dictionary()
    for index in range(36):
        dictionary.add_symbol(f"w{index}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def build_model(tiny_task):
    """A function that builds a tiny model: `encoding` names ours, None the stock Transformer."""

    def build(encoding="sinusoidal", seed=1, **options):
        # dropout 0 lets training mode be compared with evaluation
        args = Namespace(dropout=0.0, max_source_positions=64, max_target_positions=64)
        vars(args).update(options)
        tiny_architecture(args)
        torch.manual_seed(seed)
        if encoding is None:
            return TransformerModel.build_model(args, tiny_task).eval()
        args.position_encoding = encoding
        return PosencTransformerModel.build_model(args, tiny_task).eval()

    return build


class Hostile:
    """An object whose pickle makes a file, `witness`, when it is loaded by a credulous loader."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return open, (str(self.witness), "w")


@pytest.fixture
def hostile(tmp_path):
    """An object that shows whether loading it runs what it holds, by the file `hostile.witness`."""
    return Hostile(tmp_path / "witness")


@pytest.fixture
def start():
    """A function that starts a command line at the top of the repository, as a user would."""

    def start(*command, **environment):
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=REPOSITORY,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": ".",
                "PATH": path,
                **{name: str(value) for name, value in environment.items()},
            },
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return start


@pytest.fixture
def run(start):
    """A function that runs a command line to its good end and returns what it printed."""

    def run(*command, **environment):
        process = start(*command, **environment)
        printed = process.communicate()[0]
        assert process.returncode == 0, printed[-4000:]
        return printed

    return run
