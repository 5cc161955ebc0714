"""A small binarised corpus, made once with the real commands, and trainings on it."""

import contextlib
import io
import logging

import pytest
from fairseq_cli import generate, train

from fairseq_posenc.errors import UsageError
from tests.tiny import parsed

TINY = "--arch posenc_transformer_tiny --share-all-embeddings --optimizer adam --lr 0.003".split()
TINY += "--max-tokens 200 --log-format json --log-interval 1 --cpu --num-workers 0".split()
TINY += ["--user-dir", "fairseq_posenc", "--task", "posenc_translation"]


@pytest.fixture(scope="session")
def binarised(tmp_path_factory, run):
    """A folder with 200 training, 20 validation and 20 test pairs, and the raw text beside."""
    folder = tmp_path_factory.mktemp("corpus")
    pieces = "--train 200 --valid 20 --test 10 --test-lengths 4-12,13-20 --quiet".split()
    run("python", "-m", "recipes.corpus", "--output", folder, *pieces)
    files = [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")]
    languages = ["--source-lang", "en", "--target-lang", "de", "--joined-dictionary"]
    run("fairseq-preprocess", *languages, "--destdir", folder / "bin", *files)
    return folder / "bin"


@pytest.fixture
def training(binarised):
    """A function that returns the command line of a small training with further options."""
    return lambda *options: ["fairseq-train", binarised, *TINY, *options]


def _fairseq_train(*command, **model):
    """Train in this process, which has imported fairseq, and return what is logged."""
    cfg = parsed(command[1:])
    vars(cfg.model).update(model)
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    handler.setFormatter(logging.Formatter("| %(levelname)s | %(name)s | %(message)s"))
    logging.root.addHandler(handler)
    for name in ("fairseq", "fairseq_posenc"):  # a command that ran here may have silenced them
        logging.getLogger(name).setLevel(logging.NOTSET)
    try:
        train.main(cfg)
    finally:
        logging.root.removeHandler(handler)
    return logged.getvalue()


@pytest.fixture(scope="session")
def trains():
    """A function that runs the command line of a training here, and returns what it logs.

    Options of the model that are given by name come beside those of the command line.
    """
    return _fairseq_train


@pytest.fixture(scope="session")
def refuses():
    """A function that runs the command line of a training that must be refused: its words."""

    def refuses(*command):
        with pytest.raises(UsageError) as told:
            _fairseq_train(*command)
        return str(told.value)

    return refuses


@pytest.fixture(scope="session")
def translates():
    """A function that runs the command line of a translation here, and returns what it prints."""

    def translates(*command):
        printed, cfg = io.StringIO(), parsed(command[1:], "generation")
        cfg.dataset.num_workers = 0  # in this process, torch waits 5 seconds for a worker's end
        with contextlib.redirect_stdout(printed):
            generate.main(cfg)
        return printed.getvalue()

    return translates
