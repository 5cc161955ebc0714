"""Run what is left to do of one cell: its steps in order, each whole or not there.

``fairseq-train`` gets ``--restore-file`` where there is a checkpoint to go on from, and stops with
a checkpoint when its time is up.
"""

import glob
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error
from fairseq_posenc.tools.locks import locked
from fairseq_posenc.tools.writing import replacing
from recipes.lib.cell import PlannedCell, Step, shell
from recipes.lib.log_lines import Progress, Watch
from recipes.lib.processes import call, exit_status, printed, started
from recipes.lib.recipe import TIME_IS_UP
from recipes.lib.settings import (
    LOCK_SECONDS,
    clock,
    is_locked,
    make_folder,
    record_fingerprint,
    write,
)

# of the many notes of posenc score and predict, those that say that a figure means something else
_REMARKS = "^(?:note: .*(?:may be cut|has learned nothing)|This model has hardly .*)"


class CellRun(NamedTuple):
    """One run of a cell.

    Attributes:
        cell: which it is.
        stages: that are to run.
        ordinal: the cell's number, and of how many.
        environment: of its programs.
        deadline: when trainings stop with a checkpoint, in seconds since 1970; never if None.
        stop_diverged: whether a training that diverges is stopped.
    """

    cell: PlannedCell
    stages: Sequence[str]
    ordinal: str
    environment: Dict[str, str]
    deadline: Optional[float] = None
    stop_diverged: bool = False

    def say(self, line: str) -> None:
        """Print a line with the time and the cell's name."""
        # at once, as others write at the same time
        sys.stdout.write(f"{clock()} | [{self.cell.name}] {line}\n")
        sys.stdout.flush()

    def run(self) -> int:
        """Do what is left of the stages, and return the exit status."""
        cell = self.cell
        if self._waits_for_earlier_stage():
            return 0
        make_folder(cell.folder)
        busy = f"another run has this cell in hand, see {cell.folder}"
        try:
            with locked(cell.path("lock"), LOCK_SECONDS, busy):
                self._record_fingerprint()
                for step in self._left():
                    is_training = step.program == "train" and not step.subfolder
                    if not is_training:
                        self._do(step)
                        continue
                    status = self._train(step)
                    if status:
                        return status
        except UsageError as error:
            self._say_failed(str(error))
            return 1
        except OSError as error:  # of a log; all else is written by `replacing`
            self._say_failed(str(file_error("write", cell.folder, error)))
            return 1
        return 0

    def _record_fingerprint(self) -> None:
        """Write the cell's settings, and remove what was made of fewer epochs, if it goes on.

        Raises:
            UsageError: another run makes the cell with other settings.
        """
        cell = self.cell
        locks = glob.glob(f"{glob.escape(cell.row_folder)}/*/lock")
        locks_of_peers = [path for path in locks if path != cell.path("lock")]
        if cell.goes_on:  # what was made of fewer epochs is made again
            patterns = [name for step in reversed(cell.steps) for name in step.done_files]
            for path in (path for pattern in patterns for path in Path(cell.folder).glob(pattern)):
                path.unlink()
        row_settings = f"{cell.row_folder}/settings"
        record_fingerprint(row_settings, cell.options, in_use=any(map(is_locked, locks_of_peers)))
        record_fingerprint(cell.path("settings"), cell.fingerprint)
        write(cell.path("cell.json"), f"{cell.about}\n")

    def _left(self) -> List[Step]:
        first = self.cell.next_step()
        steps = enumerate(self.cell.steps)
        left = [step for number, step in steps if number >= first or not step.done_files]
        return [step for step in left if step.stage in self.stages]

    def _waits_for_earlier_stage(self) -> bool:
        """Whether a step of an earlier stage, which is not to run, is not done."""
        number = self.cell.next_step()
        chosen = [n for n, step in enumerate(self.cell.steps) if step.stage in self.stages]
        if not chosen or number >= chosen[0]:
            return False
        self.say(f"not yet: {self.cell.steps[number].program} comes before")
        return True

    def _do(self, step: Step) -> None:
        cell = self.cell
        log = Path(cell.path(step.subfolder), f"{step.program}.log")
        if step.subfolder:
            make_folder(cell.path(step.subfolder))
            for path in log.parent.glob("checkpoint*.pt"):
                path.unlink()
        if step.done_files:
            self.say(" ".join(filter(None, [step.program, step.subfolder])))
        else:
            log = Path(os.devnull)
        output = Path(cell.path(step.output)) if step.output else log
        with ExitStack() as files:
            errors = files.enter_context(open(log, "w"))
            stream = files.enter_context(replacing(str(output))) if step.output else errors
            if call(step.words, stdout=stream, stderr=errors, env=self.environment):
                last = (_read(log).splitlines() or [""])[-1]
                reason = f", see {log}: {last}" if step.done_files else f": {shell(step.words)}"
                raise UsageError(f"{step.program} failed{reason}")
        _touch_done_files(cell, step)
        if output.name == "score.txt":
            self._say_scores(_read(output), _read(log))

    def _say_scores(self, text: str, errors: str) -> None:
        """Print the main figures, and what a reader of them must know."""
        shown = re.findall("^(?:all|valid|masked_lm_bits).*", text, re.M)
        self.say("; ".join(shown)[:200])
        unlabelled = re.findall("^(.+): no labels$", text, re.M)
        if unlabelled:
            self.say(f"predicted, not scored, as without labels: {', '.join(unlabelled)}")
        for remark in re.findall(_REMARKS, f"{errors}\n{text}", re.M):
            self.say(remark)

    def _train(self, step: Step) -> int:
        cell = self.cell
        words, checkpoint = self._continued(step.words)
        if not words:
            return 1
        gpus = self.environment.get("CUDA_VISIBLE_DEVICES", "")
        self.say(
            f"train, cell {self.ordinal}" + (gpus and f", on GPU {gpus}")
            + (checkpoint and f", continuing from {checkpoint}")
        )  # fmt: skip
        time_is_up, diverged, path = False, "", Path(cell.path("train.log"))
        watch = Watch(int(option(words, "--warmup-updates") or 0) if self.stop_diverged else 0)
        progress = Progress(
            self.ordinal, option(words, "--max-update"), option(words, "--max-epoch"),
            option(words, "--best-checkpoint-metric") or "nll_loss|loss",
        )  # fmt: skip
        for line in _read(path).splitlines():  # of the same training, before it was interrupted
            watch.see(line)
        with open(path, "a", encoding="utf-8") as log, started(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            errors="replace", env=self.environment,
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                log.write(line)
                log.flush()
                time_is_up |= "due to cumulative_training_time" in line
                shown = progress.see(line)
                if shown:
                    self.say(shown)
                if not diverged:
                    diverged = watch.see(line)
                    if diverged:
                        self.say(diverged)
                        process.terminate()
        if process.returncode or diverged:
            if not diverged:
                self._say_failed(f"training failed, see {path}")
            return 1
        if time_is_up:
            self.say("the time of this job is up: start again to go on")
            return TIME_IS_UP
        _touch_done_files(cell, step)
        return 0

    def _say_failed(self, reason: str) -> None:
        self.say("interrupted" if exit_status() else f"error: {reason}")

    def _continued(self, command: Sequence[str]) -> Tuple[List[str], str]:
        """Return the command that goes on from the newest checkpoint, and that one, if any.

        There is no command where a checkpoint cannot be read, of which it has been said why.
        """
        folder = Path(self.cell.folder)
        ask = ["python", "-m", "recipes.lib.newest_checkpoint", str(folder)]
        if option(command, "--best-checkpoint-metric"):
            ask += ["--best"]
        if self.deadline:
            ask += ["--seconds"]
        printed_line = ""
        if any(folder.glob("checkpoint*.pt")):
            printed_line, status = printed(ask)
            if status:
                return [], ""
        newest, _, seconds = printed_line.strip("\n").partition("\t")
        words = list(command)
        if newest:
            words = [*without_option(words, "--finetune-from-model"), "--restore-file", newest]
        else:
            for path in folder.glob("checkpoint*.pt"):
                path.rename(f"{path}.unusable")  # fairseq would load it
        if self.deadline:
            # fairseq counts what was trained before, too
            seconds_then = float(seconds or 0) + max(self.deadline - time.time(), 30)
            words += ["--stop-time-hours", f"{seconds_then / 3600:.4f}"]
        return words, newest


def option(words: Sequence[str], name: str) -> str:
    """Return the value of an option of a command, the last if it is repeated; empty without it."""
    value = ""
    for word, following in zip(words, [*words[1:], ""]):
        if word == name:
            value = following
        elif word.startswith(f"{name}="):
            value = word.partition("=")[2]
    return value


def without_option(words: Sequence[str], name: str) -> List[str]:
    """Return a command without an option and its value."""
    return [
        word
        for before, word in zip(["", *words], words)
        if name not in (before, word) and not word.startswith(f"{name}=")
    ]


def _touch_done_files(cell: PlannedCell, step: Step) -> None:
    for name in step.done_files:
        if name.endswith(".done"):
            Path(cell.path(name)).touch()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
