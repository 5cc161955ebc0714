"""A cell of a recipe's table: a training and what comes after it, as steps, and how they are typed.

A step is a list of words, which go to ``subprocess`` as they are. Text for a shell is made here
alone, by :func:`shell`, for ``--plan`` and ``--slurm``.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from fairseq_posenc.errors import printable
from recipes.lib.settings import as_lines, continues, read_lines


class Placement(str):
    """A word of a command by which its results are not known: a folder, a device, a process.

    Steps that every finished cell may gain later, such as bits of references, are of these words.
    """


def placement(*words: object) -> List[str]:
    """Return words that are not in the fingerprint of a cell."""
    return [Placement(word) for word in words]


def variable(name: str) -> str:
    """Return a variable of a plan's loops, as (a part of) a word: no word of a user has NULs."""
    return f"\0{name}\0"


def shell(words: Iterable[str]) -> str:
    """Return words as one types them in a shell."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    # text and names of variables take turns
    parts = re.split("\0(.*?)\0", word)
    if len(parts) == 1:
        return shlex.quote(word)
    shown = [
        f'"${part}"' if number % 2 else shlex.quote(part) if part else ""
        for number, part in enumerate(parts)
    ]
    return "".join(shown)


class Step(NamedTuple):
    """A command of a cell.

    Attributes:
        stage: in which it runs: train, translate, score, or one of the recipe's own.
        words: of the command.
        done_files: patterns of files in the cell's folder that are there when it is done; a step
            without them runs every time, says nothing, and is not in the fingerprint.
        output: the folder's file for what it prints; all else is in ``<program>.log``, or lost
            without ``done_files``.
        subfolder: of the cell's, of a training that begins anew whenever it is cut: it takes
            seconds.
    """

    stage: str
    words: Sequence[str]
    done_files: Tuple[str, ...] = ()
    output: str = ""
    subfolder: str = ""

    @property
    def program(self) -> str:
        """What the command is called: train, average, predict, score_cell …"""
        words = self.words
        if any(Path(word).name == "fairseq-train" for word in words):
            return "train"
        if words[0] == "posenc":
            return words[1]
        if list(words[:2]) == ["python", "-m"]:
            return words[2].rpartition(".")[2]
        return words[0].replace("fairseq-", "")


class PlannedCell(NamedTuple):
    """A training and what comes after it: printed by a plan, run, submitted, and tabulated.

    Attributes:
        setting: data and way of training, or a task; empty where there is one alone.
        row: label of the row.
        options: of the row: the words behind ``--position-encoding``.
        seed: as it was given.
        lr: learning rate, where the table has several.
        folder: of its results.
        row_folder: of all cells of its row.
        steps: its commands.
        data_fingerprint: words by which its results are known beside those of its steps, such as a
            checksum of its text.
    """

    setting: str
    row: str
    options: List[str]
    seed: str
    lr: str
    folder: str
    row_folder: str
    steps: Sequence[Step] = ()
    data_fingerprint: Sequence[str] = ()

    @property
    def name(self) -> str:
        """What a person calls it."""
        words = self.setting, self.row, self.lr and f"lr {self.lr}", f"seed {self.seed}"
        return " ".join(filter(None, words))

    @property
    def about(self) -> str:
        """The JSON by which tables know the cell: see tools/tables/cells.py."""
        fields = {name: getattr(self, name) for name in ("setting", "row", "seed", "lr")}
        text = json.dumps({**fields, "options": " ".join(self.options)})
        return text.replace(r"\u0000", "\0") if "\0" in self.seed else text

    @property
    def fingerprint(self) -> List[str]:
        """All words of its steps that say what is done."""
        steps = (step for step in self.steps if step.done_files)
        words = [word for step in steps for word in step.words if not isinstance(word, Placement)]
        return [*words, *self.data_fingerprint]

    def path(self, name: str) -> str:
        """A file in its folder."""
        return f"{self.folder}/{name}"

    def labelled_path(self, name: str) -> str:
        """``label=path`` of a file in its folder."""
        return f"{self.row}={self.path(name)}"

    @property
    def goes_on(self) -> bool:
        """Whether its results are of fewer epochs, from which its training goes on."""
        return continues(read_lines(self.path("settings")), as_lines(self.fingerprint))

    def next_step(self) -> int:
        """The first step that is not done: all before it are."""
        if self.goes_on:
            return 0
        folder = Path(self.folder)
        for number, step in enumerate(self.steps):
            if not all(any(folder.glob(name)) for name in step.done_files):
                return number
        return len(self.steps)

    @property
    def is_finished(self) -> bool:
        """Return whether all its steps are done."""
        return self.next_step() == len(self.steps)


def plan(cells: Sequence[PlannedCell], stages: Sequence[str] = ()) -> Iterator[str]:
    """Yield the commands of all cells, each cell after a comment with its name.

    Args:
        cells: in the order in which they run.
        stages: those of steps that run; all without them.
    """
    for cell in cells:
        name_of_row = "/".join(filter(None, (cell.setting, cell.row)))
        name = re.sub("\0(.*?)\0", r"$\1", cell.name)
        yield printable(f"# cell {name_of_row}, {name}")
        yield shell(["mkdir", "-p", cell.folder])
        yield f"echo {shell([cell.about])} >{shell([cell.path('cell.json')])}"
        for step in cell.steps:
            if stages and step.stage not in stages:
                continue
            output = step.output or ("train.log" if step.program == "train" else "")
            yield shell(step.words) + (f" >{shell([cell.path(output)])}" if output else "")
            done = [cell.path(name) for name in step.done_files if name.endswith(".done")]
            if done:
                yield shell(["touch", *done])
