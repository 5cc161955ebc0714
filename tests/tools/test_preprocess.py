"""fairseq-preprocess with processes of our own: the same files, and no waiting for the dead."""

import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.preprocess import preprocess

LANGUAGES = ["--source-lang", "en", "--target-lang", "de", "--workers", "3"]


@pytest.fixture
def text(tmp_path):
    """A function that writes parallel text, and returns options that name it."""

    def text(lines):
        dice = random.Random(1)
        words = [f"w{number}" for number in range(500)]
        for language in ("en", "de"):
            chosen = (" ".join(dice.choices(words, k=12)) for _ in range(lines))
            (tmp_path / f"train.{language}").write_text("\n".join(chosen) + "\n")
        return ["--trainpref", tmp_path / "train", "--validpref", tmp_path / "train"]

    return text


def test_the_files_are_those_of_fairseq_preprocess(run, text, tmp_path):
    options = [*LANGUAGES, "--joined-dictionary", *text(300), "--destdir"]
    run("fairseq-preprocess", *options, tmp_path / "theirs")
    run("posenc", "prepare", "binarise", *options, tmp_path / "ours")
    theirs, ours = (
        {
            path.name: path.read_bytes()
            for path in (tmp_path / name).iterdir()
            if ".log" not in path.name
        }
        for name in ("theirs", "ours")
    )
    assert len(ours) == 10 and ours == theirs


def test_a_dictionary_with_types_of_one_name_can_be_read_again(run, text, tmp_path):
    rows = "<unk> 9 #fairseq:overwrite\nw1 9\nw2 9\n"
    (tmp_path / "dict.txt").write_text(rows)
    given = ["--srcdict", tmp_path / "dict.txt", "--joined-dictionary", *text(9), "--workers", 1]
    run("posenc", "prepare", "binarise", *LANGUAGES[:4], *given, "--destdir", tmp_path / "bin")
    assert (tmp_path / "bin" / "dict.de.txt").read_text() == rows


@pytest.mark.parametrize("end, is_refused", [("\r\n", False), ("\r", True), ("\r\r\n", True)])
def test_a_carriage_return_inside_a_line_is_refused_with_its_line(text, tmp_path, end, is_refused):
    options = [str(word) for word in (*LANGUAGES, *text(30), "--destdir", tmp_path / "bin")]
    lines = (tmp_path / "train.de").read_text().split("\n")
    lines[2] = "w1 w2" + end + ("w3" if end == "\r" else "")
    (tmp_path / "train.de").write_bytes("\n".join(lines).replace("\r\n\n", "\r\n").encode())
    if not is_refused:
        preprocess(options)
        return
    with pytest.raises(UsageError, match=r"train.de, line 3 has a carriage return inside.* tr "):
        preprocess(options)
    assert not (tmp_path / "bin").exists()


@pytest.mark.parametrize("stage", ["dictionary", "data"])
def test_the_death_of_a_process_is_reported_in_one_line(outcome, text, tmp_path, stage):
    options = [*LANGUAGES, *text(20_000), "--destdir", tmp_path / "bin"]
    if stage == "data":
        (tmp_path / "dict.txt").write_text("w1 1\n")
        options += ["--srcdict", tmp_path / "dict.txt", "--joined-dictionary"]

    def kill_the_first_child():
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.001)
        os.kill(int(found[0]), signal.SIGKILL)

    def binarise():
        threading.Thread(target=kill_the_first_child, daemon=True).start()
        preprocess([str(word) for word in options])

    told = outcome(binarise, megabytes=4000, seconds=60)
    assert told.startswith("a process died") and "--workers" in told and "\n" not in told


def test_a_full_disk_is_reported_in_one_line(outcome, text, tmp_path):
    options = [*LANGUAGES, *text(300), "--workers", 1, "--destdir", tmp_path / "bin"]
    for largest in (10, 3000):  # a dictionary, the data
        told = outcome(lambda: preprocess([str(word) for word in options]), largest=largest)
        assert told.startswith("cannot binarise into") and told.endswith("File too large"), told
        shutil.rmtree(tmp_path / "bin")


def test_a_dictionary_that_is_there_is_told(text, tmp_path):
    options = [str(word) for word in (*LANGUAGES, *text(30), "--destdir", tmp_path / "bin")]
    preprocess(options)
    with pytest.raises(UsageError, match="dict.en.txt is there already; give"):
        preprocess(options)
