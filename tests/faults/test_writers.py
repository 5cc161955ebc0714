"""What is written is whole or not there, whatever happens to disk and process meanwhile.

All of the package writes by the four context managers of ``writing`` (tests/test_house.py holds
that); two commands that write several files stand for all.
"""

import shutil

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import glue
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.preparation import Options, prepare
from fairseq_posenc.tools.writing import replacing, replacing_all, replacing_files, replacing_folder
from tests.tiny import learn_subwords


def lines(version):
    animal = ("puppy", "bobcat")[version - 1]
    return [f"the {animal} {i * version} runs , over häuser" for i in range(40)]


def text(version):
    return "".join(f"{line}\n" for line in lines(version))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder for each of two versions of what is to be written."""
    home = tmp_path_factory.mktemp("inputs")
    head, labels = "index\tsentence1\tsentence2\tlabel\n", ("entailment", "not_entailment")
    for version in (1, 2):
        folder = home / str(version)
        folder.mkdir()
        (folder / "a").write_text(text(version))
        # the same for both
        learn_subwords(folder / "vocabulary", lines(1), 100)
        rows = [f"{i}\t{lines(version)[i]}\tno\t{labels[i % 2]}\n" for i in range(9)]
        (folder / "train.tsv").write_text(head + "".join(rows))
        (folder / "dev.tsv").write_text(head + rows[1])
    return home


def write_one(source, folder, version):
    with replacing(str(folder / "a")) as stream:
        stream.write(text(version))


def write_all(source, folder, version):
    with replacing_all() as begin:
        for name in "ab":
            begin(str(folder / name)).write(text(version))


def write_into(manager, **options):
    def write(source, folder, version):
        with manager(str(folder / "model"), **options) as partial:
            for name in "ab":
                with open(f"{partial}/{name}", "w") as stream:
                    stream.write(text(version))

    return write


def write_text_folder(source, folder, version):
    files = {"output": str(folder / "text"), "train": [str(source / "a")]}
    prepare(Options(**files, valid=[str(source / "a")], vocabulary_size=100), say=lambda line: None)


# name: how to write from the inputs of a version into a folder
WRITERS = {
    "one file": write_one,
    "some files": write_all,
    "a folder": write_into(replacing_folder),
    "a folder's files": write_into(replacing_files, last="b"),
    "text folder": write_text_folder,
    "GLUE": lambda s, f, v: glue.prepare(TASKS["RTE"], str(s), str(s / "vocabulary"), str(f)),
}
# which is only ever written into an empty folder, or completes what is there
ONCE = ("text folder",)
# whose files are of one version, all or none, unless a rename fails
TOGETHER = ("some files", "a folder", "GLUE")


@pytest.fixture(scope="module", params=WRITERS)
def writer(request, inputs, written):
    name = request.param

    def write(folder, version):
        WRITERS[name](inputs / str(version), folder, version)

    return written(write, name not in ONCE, name in TOGETHER)


def test_a_full_disk_is_reported_and_spoils_nothing(writer):
    for number in writer.points(5):
        outcome = writer.attempt(number)
        assert outcome.startswith("told: "), (number, outcome)
        renaming = "Input/output error" in outcome
        assert renaming or "No space left on device" in outcome
        writer.check(mixed=renaming)
    writer.check_again()


def test_killed_anywhere_it_spoils_nothing_and_succeeds_again(writer):
    for number in writer.points(3):
        assert writer.attempt(number, kill=True) == "killed"
        writer.check(killed=True)
        writer.check_again()


def test_a_limit_of_the_kernel_is_reported_and_spoils_nothing(writer):
    largest = max(len(writer.after[name]) for name in writer.names)
    for most in {0, largest - 1}:
        outcome = writer.attempt(largest=most)
        assert outcome.startswith("told: "), (most, outcome)
        writer.check()


def test_a_file_in_place_of_the_folder_is_reported(writer):
    writer.reset()
    shutil.rmtree(writer.folder)
    writer.folder.write_text("no folder")
    with pytest.raises(UsageError):
        writer.run()
    assert writer.folder.read_text() == "no folder"
    writer.folder.unlink()
