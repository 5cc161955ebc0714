"""A recipe at work: its stages, what it runs or prints, its folder, its environment."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Callable, List, Optional, Sequence

from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.tools.locks import locked
from fairseq_posenc.tools.writing import replacing
from fairseq_posenc.version import __version__
from recipes.lib.cell import shell
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript
from recipes.lib.devices import Devices
from recipes.lib.processes import call, printed, started
from recipes.lib.settings import (
    LOCK_SECONDS,
    as_lines,
    checksum,
    clock,
    difference,
    make_folder,
    read_lines,
    record_fingerprint,
    write,
)

TIME_IS_UP = 75  # the exit status
_INSIDE = "POSENC_RECIPE_ENVIRONMENT"  # is set where this program runs in the environment


class Recipe:
    """What a recipe's kinds have in common.

    Attributes:
        script, config, extra: what the script and the user say.
        run_dir: of all results.
        is_plan: whether commands are printed, and nothing is done.
        cell: number of the only cell, from 1; 0: all.
        devices: that trainings run on.
    """

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        self.script, self.parsed = script, parsed
        self.config, self.extra = parsed.config, parsed.extra
        self.run_dir = unambiguous_path(self.config["run-dir"])
        self.is_plan = self.config["plan"] == FLAG
        self.first = self.config.number("stage", 1)
        self.last = self.config.number("stop-stage", 99)
        if self.first > self.last:
            raise UsageError(f"--stage {self.first} is behind --stop-stage {self.last}")
        self.cell = self.config.number("cell")
        self.devices = Devices("cpu", 1)
        self.began = time.time()
        self._held = ExitStack()

    def path(self, *names: str) -> str:
        """A path in the run folder."""
        return "/".join([self.run_dir, *names])

    def say(self, text: str) -> None:
        """Tell the user; in a plan, as a comment among commands."""
        text = printable(text)  # one line: a second one would be run with the plan
        print(f"# {text}" if self.is_plan else f"{clock()} | {text}", flush=True)

    def wants(self, number: int) -> bool:
        """Return whether a stage is to run."""
        return self.first <= number <= self.last

    def stage(
        self,
        number: int,
        title: str,
        action: Callable[[], object],
        done_file: str = "",
        fingerprint: Sequence[str] = (),
        makes: str = "",
        of_cells: bool = False,
    ) -> None:
        """Run a stage, unless it is done.

        Args:
            number: by which --stage and --stop-stage know it.
            title: what it does.
            action: that does it, or in a plan prints it.
            done_file: tells that it is done, and of what: the fingerprint. Without one the action
                runs every time, and looks after its own parts.
            fingerprint: words, such as options, and checksums of files.
            makes: a file or folder without which it is not done.
            of_cells: whether it runs with --cell.

        Raises:
            UsageError: it was done from something else.
        """
        if not self.wants(number) or (self.cell and not of_cells):
            return
        self.say(f"stage {number}: {title}")
        if self.is_plan:
            action()
            return
        now = as_lines(fingerprint) or [""]
        then = read_lines(done_file) if done_file else []
        if then and os.path.exists(makes or done_file):  # it is never empty, unless damaged
            if then != now:
                raise UsageError(
                    f"{title} in {self.run_dir} was made from something else "
                    f"({difference(then, now)}); give another --run-dir"
                )
            self.say(f"stage {number}: {title}: done before")
            return
        started = time.time()
        action()
        if done_file:
            write(done_file, "".join(f"{line}\n" for line in now))
        self.say(f"stage {number}: {title}: finished in {time.time() - started:.0f} s")

    def execute(
        self,
        words: Sequence[str],
        output: str = "",
        log: str = "",
        appends: bool = False,
        failure: str = "",
        inputs: Sequence[str] = (),
    ) -> None:
        """Run a command, or in a plan print it.

        Args:
            words: of the command.
            inputs: files that it reads, one behind the other, from its standard input.
            output: a file for what it prints, which is whole or not there.
            log: a file for all that it prints.
            appends: whether the log has earlier runs, too, of a command that goes on.
            failure: what to say if it fails, in place of the log's last line.

        Raises:
            UsageError: it has failed.
        """
        if self.is_plan:
            several = f"cat {shell(inputs)} | " if len(inputs) > 1 else ""
            redirection = f" <{shell(inputs)}" if len(inputs) == 1 else ""
            print(several + shell(words) + redirection + (f" >{shell([output])}" if output else ""))
            return
        if output or log:
            make_folder(os.path.dirname(output or log))
        with ExitStack() as files:
            errors = files.enter_context(open(log, "a" if appends else "w")) if log else None
            stream = files.enter_context(replacing(output)) if output else errors
            stdin = None
            if inputs:
                cat = ["cat", "--", *inputs]
                stdin = files.enter_context(started(cat, stdout=subprocess.PIPE)).stdout
            status = call(words, stdin=stdin, stdout=stream, stderr=errors)
            if status == TIME_IS_UP:  # of a recipe that this one runs
                sys.exit(TIME_IS_UP)
            if status:
                last = (read_lines(log) if log else [])[-1:]
                where = f", see {log}: {''.join(last)}" if log else ""
                raise UsageError(failure or f"{' '.join(words[:3])} failed{where}")

    def read(self, words: Sequence[str]) -> str:
        """Return what a command prints.

        Raises:
            UsageError: it has failed.
        """
        text, status = printed(words)
        if status:
            raise UsageError(f"{' '.join(words[:5])} failed, see above")
        return text.strip()

    def fetch(
        self,
        path: str,
        *urls: str,
        unpack: str = "",
        checksum: str = "",
        advice: str = "fetch the files by hand and give --raw-dir",
    ) -> None:
        """Download a file, and unpack it into a folder.

        Args:
            path: of the file.
            urls: of which the first that has it is taken.
            unpack: the folder; empty: it is no archive.
            checksum: its SHA-256, if that is known.
            advice: what to do if none has it.
        """
        words = ["--unpack", unpack] if unpack else []
        words += ["--checksum", checksum] if checksum else []
        self.execute(["posenc", "prepare", "download", "--output", path, *words, *urls],
                     failure=f"cannot get {path}; {advice}")  # fmt: skip

    def open_folder(self, *settings: str) -> None:
        """Have the run folder for this recipe alone, with results of these settings.

        With --cell other cells may run in it at the same time.

        Raises:
            UsageError: another recipe is at work there, or has made its results.
        """
        if self.is_plan:
            return
        make_folder(self.run_dir)
        busy = (
            f"another recipe is at work in {self.run_dir}: wait for its end, or give another "
            "--run-dir"
        )
        if not self._held.enter_context(locked(self.path("lock"), LOCK_SECONDS, busy)):
            self.say(f"note: there are no file locks in {self.run_dir}: let no second "
                     "recipe use it meanwhile")  # fmt: skip
        record_fingerprint(self.path("settings"), [f"--version {__version__}", *settings])
        if self.cell:
            self._held.close()  # from now on the cell's own lock is held

    def known_sum(self, option: str, paths: Sequence[str]) -> str:
        """Return the checksum of text that the user gives.

        Where the text is gone it is that in the settings of what was made of it. A plan and a
        script for SLURM need none, and get an empty text.
        """
        if self.is_plan or self.config["slurm"] == FLAG:
            return ""
        if not all(os.path.exists(path) for path in paths):
            for line in read_lines(self.path("settings")):
                if line.startswith(f"{option} "):
                    return line.partition(" ")[2]
        return checksum(paths)

    def set_up(self, shown: bool = False) -> None:
        """Make the environment where it is missing, and start again in it; a plan needs none.

        Args:
            shown: whether a plan has the command of this stage.
        """
        if self.is_plan:
            if shown:
                self.stage(1, "set-up", lambda: self.execute(["source", "scripts/env.sh"]))
            self._find_programs()
            return
        if _INSIDE in os.environ:
            self.began = float(os.environ.pop(_INSIDE))
            return
        if self.first <= 1:
            # also with --cell: a job of SLURM has the login shell's PATH
            self.stage(1, "set-up", self._make_environment, of_cells=True)
        if not shutil.which("fairseq-train"):
            raise UsageError(
                "there is no fairseq-train: start at stage 1, or first 'source scripts/env.sh'"
            )
        os.environ[_INSIDE] = str(self.began)
        os.execvp("python", ["python", "-m", "recipes.lib", *sys.argv[1:]])

    def _make_environment(self) -> None:
        setup = ["bash", "scripts/setup.sh", "--print-bin"]
        programs, status = printed(setup)
        if status:
            raise UsageError("the environment cannot be made, see above")
        os.environ["PATH"] = f"{programs.strip()}{os.pathsep}{os.environ['PATH']}"

    def _find_programs(self) -> None:
        """The environment if there is one, or else this machine's Python without any library."""
        programs = os.path.join(os.path.realpath(os.environ.get("POSENC_VENV", ".venv")), "bin")
        if os.access(os.path.join(programs, "fairseq-train"), os.X_OK):
            os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"

    @property
    def has_environment(self) -> bool:
        """Whether there is one."""
        return shutil.which("fairseq-train") is not None

    @property
    def deadline(self) -> Optional[float]:
        """When a training is to stop with a checkpoint: a quarter of an hour is for what is
        behind.
        """
        hours = self.config.number("hours")
        return self.began + 3600 * hours - 900 if hours else None


def unambiguous_path(path: str) -> str:
    """Return a path that no program takes for an option, or for several.

    Raises:
        UsageError: fairseq would divide it.
    """
    if any(mark in path for mark in ":,\n"):
        raise UsageError(f"a run folder has no colon, comma or line feed in its name, not '{path}'")
    path = path.rstrip("/") or path
    return f"./{path}" if path.startswith("-") else path


def labelled(files: Sequence[str]) -> List[str]:
    """Return the words that are there: `label=path` of files that exist."""
    return [file for file in files if os.path.exists(file.partition("=")[2])]
