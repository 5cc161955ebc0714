"""A small binarised corpus, made once with the real commands."""

import pytest

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
