"""What is written is whole or not there, whatever happens to disk and process meanwhile.

All of the package writes by the four context managers of ``writing`` (tests/test_house.py holds
that); two commands that write several files stand for all.
"""

import re
import shutil
from functools import partial

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import glue
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.preparation import Options, prepare
from tests.faults.conftest import KILLED, chosen
from tests.test_files import WAYS, write_files
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


def write_files_by(way, source, folder, version):
    write_files(folder, way, text(version))


def write_text_folder(source, folder, version):
    files = {"output": str(folder / "text"), "train": [str(source / "a")]}
    prepare(Options(**files, valid=[str(source / "a")], vocabulary_size=100), say=lambda line: None)


# name: how to write from the inputs of a version into a folder
WRITERS = {way.__name__: partial(write_files_by, way) for way in WAYS}
WRITERS["text folder"] = write_text_folder
WRITERS["GLUE"] = lambda s, f, v: glue.prepare(TASKS["RTE"], str(s), f"{s}/vocabulary", str(f))
# which is only ever written into an empty folder, or completes what is there
ONCE = ("text folder",)
# whose files are of one version, all or none, unless a rename fails
TOGETHER = ("replacing_all", "replacing_folder", "GLUE")


class Written:
    """A folder that a writer has written once, and that it shall write anew.

    Args:
        home: for the folder.
        write: function of the folder and a version, 1 or 2, of what to write.
        again: whether there can be two versions, or the folder must be empty first.
        together: whether the files must all be of one version.
    """

    def __init__(self, home, write, again, together):
        self.folder, self.write = home / "out", write
        self.version, self.together = 2 if again else 1, together
        self.before = {}
        self.reset()
        if again:
            write(self.folder, 1)
            self.before = files(self.folder)
        self.run()
        self.after = files(self.folder)
        assert self.after != self.before and not any(map(is_temporary, self.after))

    def reset(self):
        """Make the folder as it is before the second time."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, content in self.before.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)

    def run(self):
        """Write anew."""
        self.write(self.folder, self.version)

    def check(self, killed=False, mixed=False):
        """All that bears a final name is whole, of either version; nothing else has come."""
        found = files(self.folder)
        for name, content in found.items():
            if killed and is_temporary(name):
                continue
            assert name in self.after or name in self.before, name
            whole = {self.before.get(name), self.after.get(name)}
            if name == "text/dict.txt":
                # its types are there before they can be counted
                whole.add(re.sub(rb" \d+\n", b" 1\n", self.after[name]))
            assert content in whole, name
        if self.together and not (killed or mixed):
            assert found in (self.before, self.after)

    def check_again(self):
        """It succeeds after all."""
        self.run()
        assert self.after.items() <= files(self.folder).items()


def files(folder):
    """What is in a folder, by relative name."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def is_temporary(name):
    parts = name.split("/")
    return any(part[0] == "." or ".part" in part or ".old" in part for part in parts)


@pytest.fixture(scope="module", params=WRITERS)
def writer(request, inputs, tmp_path_factory):
    name = request.param

    def write(folder, version):
        WRITERS[name](inputs / str(version), folder, version)

    return Written(tmp_path_factory.mktemp("written"), write, name not in ONCE, name in TOGETHER)


@pytest.fixture
def attempt(writer, faulty):
    """A function that writes anew in another process, with a fault; it returns how that ended."""

    def attempt(**fault):
        writer.reset()
        return faulty(writer.run, writer.folder, **fault)

    return attempt


def test_a_full_disk_is_reported_and_spoils_nothing(writer, attempt):
    for number in chosen(attempt(), 5):
        outcome = attempt(number=number)
        renaming = "Input/output error" in outcome
        assert renaming or "No space left on device" in outcome, (number, outcome)
        writer.check(mixed=renaming)
    writer.check_again()


def test_killed_anywhere_it_spoils_nothing_and_succeeds_again(writer, attempt):
    for number in chosen(attempt(), 3):
        assert attempt(number=number, kill=True) == KILLED
        writer.check(killed=True)
        writer.check_again()


def test_a_limit_of_the_kernel_is_reported_and_spoils_nothing(writer, attempt):
    for most in {0, max(map(len, writer.after.values())) - 1}:
        outcome = attempt(largest=most)
        assert "File too large" in outcome, (most, outcome)
        writer.check()


def test_a_file_in_place_of_the_folder_is_reported(writer):
    writer.reset()
    shutil.rmtree(writer.folder)
    writer.folder.write_text("no folder")
    with pytest.raises(UsageError):
        writer.run()
    assert writer.folder.read_text() == "no folder"
    writer.folder.unlink()
