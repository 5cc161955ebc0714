"""A small binarised corpus, made once with the real commands."""

import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TINY = "--arch posenc_transformer_tiny --share-all-embeddings --optimizer adam --lr 0.003".split()
TINY += "--max-tokens 200 --log-format json --log-interval 1 --cpu --num-workers 0".split()
TINY += ["--user-dir", "fairseq_posenc", "--task", "posenc_translation"]


@pytest.fixture(scope="session")
def binarised(tmp_path_factory, copies):
    """A folder with 200 training, 20 validation and 20 test pairs, and the raw text beside."""
    folder = tmp_path_factory.mktemp("corpus")
    path = f"{copies.bin}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
    pieces = "--train 200 --valid 20 --test 10 --test-lengths 4-12,13-20 --quiet".split()
    for command in (
        ["python", "-m", "recipes.corpus", "--output", folder, *pieces],
        ["fairseq-preprocess", "--source-lang", "en", "--target-lang", "de"]
        + ["--joined-dictionary", "--destdir", folder / "bin"]
        + [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")],
    ):
        subprocess.run(
            list(map(str, command)), cwd=REPOSITORY, env=environment, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return folder / "bin"


@pytest.fixture
def training(binarised):
    """A function that returns the command line of a small training with further options."""
    return lambda *options: ["fairseq-train", binarised, *TINY, *options]
