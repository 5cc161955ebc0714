"""The cells of a recipe: which trainings there are, the folder of each, and its commands.

    python -m recipes.lib.cells SHEET count              how many
    python -m recipes.lib.cells SHEET list               setting, row, seed, folder, options, folder
                                                         of the row, cell.json, settings
    python -m recipes.lib.cells SHEET plan               their commands, as one types them
    python -m recipes.lib.cells SHEET run STAGE NUMBER   what is left to do of a stage, for one cell

A cell is a training with what comes after it: a row of the table (an encoding and its options), a
seed, and a setting (data, and the way of training) or a task with a learning rate. The same cells
are printed by ``--plan``, run on one host or as a job of SLURM, found by tables (``cell.json``).

A recipe describes its cells on a sheet. In shell, after ``source recipes/lib/cells.sh``, each line
of the sheet is a call of ``sheet``, and :func:`all_cells STAGE` runs a stage of all cells::

    sheet block en-de                       # begins the cells of a setting, which may be empty
    sheet seeds 1 2 3
    sheet row shaw shaw --position-max-distance 20     # label, encoding, options; once for each row
    sheet folder "$RUN_DIR/en-de/{row}/seed{seed}"
    sheet settings "${TRAIN_OPTIONS[@]}"    # by which results are known: others are refused there
    sheet step train train.done fairseq-train "$RUN_DIR/bin" "${TRAIN_OPTIONS[@]}" --seed {seed} \\
        --position-encoding {encoding} --save-dir {folder}
    sheet step translate test.out fairseq-generate "$RUN_DIR/bin" … '>' test.out
    sheet step score score.json posenc score --generated {folder}/test.out … '>' score.txt

A step has the stage in which it runs, a mark, and a command. The mark is a file in the cell's
folder that is there once the step is done (several, with wildcards, are divided by commas); what
stands before a mark that is there is not repeated. A step with the mark ``-`` runs every time.
Behind ``>`` is the folder's file for what the command prints; all else is in ``<command>.log``.

In words, {row} is the label, {encoding}, a word of its own, the encoding with its options, {spec}
the row as ``label=encoding options``; {seed}, {lr}, {setting} and {folder} are what they say, and
{signature} is how the training's log describes its positions.
``sheet lrs 1e-5 2e-5`` adds learning rates. ``sheet value LABEL NAME VALUE`` makes {NAME} of a row.

``fairseq-train`` gets ``--restore-file`` where there is a checkpoint to go on from. At the time
``POSENC_UNTIL``, in seconds since 1970, it stops with a checkpoint, and the exit status is 75.
``POSENC_GPUS``, groups of GPUs divided by semicolons, and ``POSENC_SLOT``, from xargs, tell which
GPUs the cell has. With ``POSENC_STOP_DIVERGED`` a training that diverges is stopped.
"""

import errno
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

from recipes.lib.log_lines import Watch, progress

TIME_IS_UP = 75


class Step(NamedTuple):
    """A command of a cell: see the module. ``output`` is empty or the file of its output."""

    stage: str
    mark: str
    command: List[str]
    output: str

    @property
    def program(self) -> str:
        """What the command is called: train, average, predict, score_cell …"""
        words = self.command
        if words[0] == "posenc":
            return words[1]
        if words[:2] == ["python", "-m"]:
            return words[2].rpartition(".")[2]
        is_training = any(Path(word).name == "fairseq-train" for word in words)
        return "train" if is_training else words[0].replace("fairseq-", "")


class PlannedCell(NamedTuple):
    """A training and what comes after it: see the module."""

    setting: str
    row: str
    options: List[str]
    seed: str
    lr: str
    folder: Path
    row_folder: Path
    settings: List[str]
    steps: List[Step]

    @property
    def name(self) -> str:
        """What a person calls it."""
        words = self.setting, self.row, self.lr and f"lr {self.lr}", f"seed {self.seed}"
        return " ".join(filter(None, words))

    @property
    def about(self) -> str:
        """The JSON by which tables know the cell: see tools/tables/grid.py."""
        about = {name: getattr(self, name) for name in ("setting", "row", "seed", "lr")}
        return json.dumps({**about, "options": " ".join(self.options)})

    def is_done(self, step: Step) -> bool:
        """Return whether all marks of a step are there."""
        marks = step.mark.split(",")
        return step.mark != "-" and all(any(self.folder.glob(mark)) for mark in marks)

    def write(self, line: str) -> None:
        """Print a line with the time and the cell's name."""
        # at once, as others write at the same time
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} | [{self.name}] {line}\n")
        sys.stdout.flush()


def read_sheet(path: str) -> List[PlannedCell]:
    """Return the cells of a sheet; a table that is cut short has whole seeds."""
    blocks: List[Dict[str, List[List[str]]]] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        key, *words = shlex.split(line)
        if key == "block":
            blocks.append({"lrs": [[""]], "settings": [[]], "value": [], "step": []})
        blocks[-1].setdefault(key, []).append(words)
    seeds, lrs = (
        dict.fromkeys(word for block in blocks for word in block[key][-1])
        for key in ("seeds", "lrs")
    )
    return [
        _cell(block, row, seed, lr)
        for seed in seeds
        for lr in lrs
        for block in blocks
        if seed in block["seeds"][-1] and lr in block["lrs"][-1]
        for row in block["row"]
    ]


def _cell(block: Dict[str, List[List[str]]], row: List[str], seed: str, lr: str) -> PlannedCell:
    label, *options = row
    setting = " ".join(block["block"][0])
    spec = " ".join(options)
    values = {"row": label, "seed": seed, "lr": lr, "setting": setting}
    values["spec"] = spec if spec == label else f"{label}={spec}"
    values.update({name: value for of, name, value in block["value"] if of == label})

    def fill(word: str) -> str:
        for name, value in values.items():
            word = word.replace(f"{{{name}}}", value)
        return word

    def fill_all(words: List[str]) -> List[str]:
        return [
            one for word in words for one in (options if word == "{encoding}" else [fill(word)])
        ]

    template = block["folder"][0][0]
    values["folder"] = fill(template)
    steps = []
    for stage, mark, *words in block["step"]:
        words = fill_all(words)
        output = words.pop() if words[-2:-1] == [">"] else ""
        steps.append(Step(stage, mark, words[:-1] if output else words, output))
    row_folder = Path(fill(template.partition("{row}")[0]), label)
    settings = fill_all(block["settings"][-1])
    return PlannedCell(
        setting, label, options, seed, lr, Path(values["folder"]), row_folder, settings, steps
    )


def plan(cells: List[PlannedCell]) -> Iterator[str]:
    """Yield the commands of all cells, each cell after a comment with its name."""
    for cell in cells:
        yield f"# cell {'/'.join(filter(None, (cell.setting, cell.row)))}, {cell.name}"
        yield _typed(["mkdir", "-p", str(cell.folder)])
        yield f"echo {_typed([cell.about])} >{_typed([str(cell.folder / 'cell.json')])}"
        for step in cell.steps:
            output = step.output or ("train.log" if step.program == "train" else "")
            file = _typed([str(cell.folder / output)]) if output else ""
            found = f"$(grep -o 'position:.*' {cell.folder}/train.log | tail -n 1)"
            words = [word.replace("{signature}", found) for word in step.command]
            yield _typed(words) + (f" >{file}" if file else "")


def _typed(words: List[str]) -> str:
    """Return words as one types them; variables of a plan's loops remain variables."""
    return " ".join(
        '"{}"'.format(word.replace('"', '\\"'))
        if re.search(r"\$(\(grep|(seed|lr|updates|warmup)\b)", word)
        else shlex.quote(word)
        for word in words
    )


def run(cell: PlannedCell, stage: str) -> int:
    """Do what is left of a stage, and return the exit status."""
    cell.folder.mkdir(parents=True, exist_ok=True)
    done = max((n for n, step in enumerate(cell.steps) if cell.is_done(step)), default=-1)
    left = [step for n, step in enumerate(cell.steps) if n > done or step.mark == "-"]
    wanted = [step for step in left if step.stage == stage]
    first = next((step for step in left if step.mark != "-"), None)
    if first and wanted and left.index(first) < left.index(wanted[0]):
        cell.write(f"not yet: {first.program} comes before")
        return 0
    with open(cell.folder / "lock", "a") as lock:
        # the programs inherit it: what outlives a recipe that was killed still has the cell
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                cell.write(f"error: another run has this cell in hand, see {cell.folder}")
                return 1
        for step in wanted:
            status = _train(cell, step) if step.program == "train" else _run(cell, step)
            if status:
                return status
    return 0


def _run(cell: PlannedCell, step: Step) -> int:
    log = cell.folder / f"{step.program}.log"
    output = cell.folder / (step.output or log.name)
    if step.mark != "-":
        cell.write(step.program)
    else:
        log = output = Path(os.devnull)
    part = output.with_name(f"{output.name}.part") if step.output else output
    signature = (re.findall("position:.*", _read(cell.folder / "train.log")) or [""])[-1]
    words = [word.replace("{signature}", signature) for word in step.command]
    with open(log, "w") as errors, open(part, "w") if step.output else errors as stream:
        status = subprocess.call(words, stdout=stream, stderr=errors, close_fds=False)
    if status:
        if step.output:
            part.unlink()
        last = (_read(log).splitlines() or [""])[-1]
        cell.write(f"error: {step.program} failed, see {log}: {last}")
        return 1
    if step.output:
        part.replace(output)
    for file in [name for name in step.mark.split(",") if name.endswith(".done")]:
        (cell.folder / file).touch()
    if output.name == "score.txt":
        shown = re.findall("^(?:all|valid).*", _read(output), re.M)
        cell.write("; ".join(shown)[:200])
    return 0


def _train(cell: PlannedCell, step: Step) -> int:
    try:
        words, found = _continued(cell, step.command)
    except subprocess.CalledProcessError:
        return 1  # a checkpoint that cannot be read, of which it has said why
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    cell.write("train" + (gpus and f" on GPU {gpus}") + (found and f", continuing from {found}"))
    time_is_up, diverged, path = False, "", cell.folder / "train.log"
    stop = "POSENC_STOP_DIVERGED" in os.environ
    watch = Watch(int(_option(words, "--warmup-updates")) if stop else 0)
    for line in _read(path).splitlines():  # of the same training, before it was interrupted
        watch.see(line)
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, close_fds=False,
        encoding="utf-8", errors="replace",
    )  # fmt: skip
    with open(path, "a", encoding="utf-8") as log:
        for line in process.stdout or ():
            log.write(line)
            log.flush()
            time_is_up |= "due to cumulative_training_time" in line
            shown = progress(line, _option(words, "--best-checkpoint-metric") or "nll_loss|loss")
            if shown:
                cell.write(shown)
            if not diverged:
                diverged = watch.see(line)
                if diverged:
                    cell.write(diverged)
                    process.terminate()
    if process.wait() or diverged:
        if not diverged:
            cell.write(f"error: training failed, see {path}")
        return 1
    if time_is_up:
        cell.write("the time of this job is up: start again to go on")
        return TIME_IS_UP
    (cell.folder / step.mark).touch()
    return 0


def _continued(cell: PlannedCell, command: List[str]) -> Tuple[List[str], str]:
    """Return the command that goes on from the newest checkpoint, and that one, if any."""
    update_freq, until = _option(command, "--update-freq"), os.environ.get("POSENC_UNTIL")
    ask = ["python", "-m", "recipes.lib.newest_checkpoint", str(cell.folder)]
    ask += ["--best"] * ("--best-checkpoint-metric" in command)
    ask += ["--update-freq", update_freq] * bool(update_freq)
    ask += ["--seconds"] * bool(until)
    told = ""
    if any(cell.folder.glob("checkpoint*.pt")):
        told = subprocess.run(ask, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    newest, _, seconds = told.strip().partition("\t")
    words = list(command)
    if newest:
        if "--finetune-from-model" in words:
            place = words.index("--finetune-from-model")
            del words[place : place + 2]
        words += ["--restore-file", newest]
    else:
        for path in cell.folder.glob("checkpoint*.pt"):
            path.rename(f"{path}.unusable")  # fairseq would load it
    if until:
        # fairseq counts what was trained before, too
        seconds_then = float(seconds or 0) + max(float(until) - time.time(), 30)
        words += ["--stop-time-hours", f"{seconds_then / 3600:.4f}"]
    return words, newest


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _option(words: List[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


def main() -> int:
    """Answer a question about the cells of a sheet, or run one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sheet, question, *given = sys.argv[1:]
    cells = read_sheet(sheet)
    if question == "count":
        print(len(cells))
    elif question == "plan":
        print(*plan(cells), sep="\n")
    elif question == "list":
        for cell in cells:
            options, settings = " ".join(cell.options), " ".join(cell.settings)
            about = cell.row_folder, cell.about, settings
            print(cell.setting, cell.row, cell.seed, cell.folder, options, *about, sep="\t")
    else:
        stage, number = given
        groups = os.environ.get("POSENC_GPUS")
        if groups:
            mine = groups.split(";")[int(os.environ.get("POSENC_SLOT", 0))]
            os.environ["CUDA_VISIBLE_DEVICES"] = mine
        return run(cells[int(number) - 1], stage)
    return 0


if __name__ == "__main__":
    sys.exit(main())
