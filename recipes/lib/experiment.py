"""The order in which every kind of recipe works: set up, data, train, evaluate, table."""

import os
import re
import textwrap
from pathlib import Path
from typing import Callable, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib import devices, slurm
from recipes.lib.cell import PlannedCell, Step, plan
from recipes.lib.config import FLAG, RecipeScript
from recipes.lib.devices import Devices
from recipes.lib.recipe import Recipe
from recipes.lib.rows import PlannedRow, read_row
from recipes.lib.runner import chosen, in_order, run_cells

_HELP = Path(__file__).with_name("help")


def help_text(kind: str) -> str:
    """Return the help of a kind of recipe; it may name options alone that shared.txt explains."""
    text, shared = ((_HELP / f"{name}.txt").read_text("utf-8") for name in (kind, "shared"))
    entries = {entry.split()[0]: entry for entry in re.split("^(?=  --)", shared, flags=re.M)[1:]}
    return re.sub(r"^  (--[a-z-]+)\n", lambda line: entries[line[1]], text, flags=re.M)


def complete_help(script: RecipeScript, stages: Sequence[str], rows: Sequence[str] = ()) -> None:
    """Let a help text tell the stages of a recipe, and its rows, by default the script's."""
    numbered = [f"{number} {title}" for number, title in enumerate(stages, 1)]
    values = {"row-list": _listed(22, rows or script.arrays["rows"]),
              "stages": _listed(43, numbered)}  # fmt: skip
    script.arrays["defaults"] += [word for name in values for word in (f"--{name}", values[name])]


def _listed(column: int, parts: Sequence[str]) -> str:
    """Return parts with commas between them, in lines of a help text from a column on."""
    start, space = "-" * column, "\N{NO-BREAK SPACE}"
    text = start + ", ".join(parts).replace(" ", space).replace(f",{space}", ", ")
    filled = textwrap.fill(text, 100, subsequent_indent=" " * 22, break_on_hyphens=False,
                           break_long_words=False)  # fmt: skip
    return filled[column:].replace(space, " ")


class Experiment(Recipe):
    """A recipe in one order; its kinds are subclasses that give data, steps and tables.

    A kind without cells, whose ``cell_stages`` are empty, overrides :meth:`train_and_evaluate`.

    Attributes:
        stages: titles of all stages, in their order; the first is stage 1.
        cell_stages: those that are stages of the cells' steps. They run cell by cell.
        last_online_stage: the last one for which a computer needs the network.
        rows: of the table.
        several_gpus: whether a training may have several.
        job_per_gpu: whether there are as many trainings at a time as GPUs by default.
        default_device: of trainings; empty: cuda if there is one.
        plan_includes_setup: whether a plan is a script that sets up, for a GPU unless the user
            says cpu.
        stop_diverged: whether a training that diverges is stopped.
    """

    stages: Sequence[str]
    cell_stages: Sequence[str] = ("train",)
    last_online_stage = "set-up"
    rows: Sequence[PlannedRow] = ()
    several_gpus = False
    job_per_gpu = False
    default_device = ""
    plan_includes_setup = False
    stop_diverged = False

    def data_fingerprint(self) -> List[str]:
        """Options and checksums that the data are made from; the run folder is known by them."""
        return []

    def data(self) -> None:
        """Run the stages that make the data."""
        raise NotImplementedError

    def grid(self) -> List[PlannedCell]:
        """All cells, without their steps."""
        return [
            PlannedCell("", row.label, row.options, seed, "", self.path(row.label, f"seed{seed}"),
                        self.path(row.label))
            for row in self.rows for seed in self.config.list("seeds")
        ]  # fmt: skip

    def recipe_rows(self) -> List[PlannedRow]:
        """The rows of the recipe's page, which --encodings replaces."""
        return [read_row(self.config.text(row)) for row in self.script.arrays.get("rows", ())]

    def steps(self, cell: PlannedCell) -> List[Step]:
        """The commands that train and evaluate a cell."""
        raise NotImplementedError

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """Words of a cell's fingerprint beside those of its steps: a batch, checksums of data."""
        return self.data_fingerprint()

    def tables(self) -> None:
        """Run the stages that make tables of the cells."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise a UsageError for options that do not go together; say what may be a mistake."""
        self._check_passthrough()
        seed = self.config["seeds"]
        if self.config.is_given("seeds") and seed.isdecimal() and int(seed) > 1 and not self.cell:
            several = ",".join(str(number) for number in range(1, min(int(seed), 5) + 1))
            self.say(f"note: --seeds {seed} is seed {seed} alone; several are listed: {several}")
        if self.config.is_given("encodings"):
            self._note_default_options()

    def _check_passthrough(self) -> None:
        """Raise a UsageError for an option behind ``--`` that a training has again, further on."""
        words_behind, extra = self.parsed.passthrough, list(self.extra)
        named = {word.partition("=")[0] for word in words_behind if word.startswith("--")}
        for step in (step for cell in self.cells() for step in cell.steps) if named else ():
            words = list(step.words)
            ends = [n for n in range(len(extra), len(words)) if words[n - len(extra) : n] == extra]
            # the last of two equal options counts, and the recipe's stand behind the user's
            lost = [word for word in words[ends[0] :] if word in named] if ends else []
            if lost:
                raise UsageError(
                    f"{lost[0]} behind -- would be without effect: the recipe itself gives it to "
                    "each training; see --help"
                )

    def _note_default_options(self) -> None:
        """Say which encodings were named alone that the recipe's own rows give options."""
        specs = {row.label: row.spec for row in self.recipe_rows()}
        for label in dict.fromkeys(cell.row for cell in self.grid() if cell.options == [cell.row]):
            if specs.get(label, label) != label:
                self.say(
                    f"note: {label} has its default options, as --encodings says; the recipe's own "
                    f"row is '{specs[label]}'"
                )

    def run(self) -> None:
        """Run all stages that are wanted, or print them, or the script that submits them."""
        if self.config["slurm"] == FLAG:
            self.submit()
            return
        self.set_up(shown=self.plan_includes_setup)
        self.choose_devices()
        self.check()
        self.open_folder(*self.data_fingerprint())
        if self.is_plan:
            self.print_plan()
        else:
            self.run_stages()

    def choose_devices(self) -> None:
        """Find what trainings run on, where the user has not said it."""
        default = "cuda" if self.plan_includes_setup and self.is_plan else self.default_device
        device, jobs = self.config["device"] or default, self.config.number("jobs")
        if self.job_per_gpu and self.config["gpus"]:
            device = device or "cuda"
        num_gpus, memory = self.config.number("gpus"), self.config.number("gpu-memory")
        if self.is_plan and not self.has_environment:
            self.say(
                "note: there is no environment: the sizes and addresses of downloads are left out"
            )
            if not device:
                device = "cpu"
                self.say("note: nor is it known whether there is a GPU: this is the plan for a "
                         "CPU, without --device cuda --gpus N --gpu-memory N")  # fmt: skip
            elif device == "cuda" and self.several_gpus and not (num_gpus and memory):
                raise UsageError(
                    "there is no environment, which would find the GPUs: give --gpus and "
                    "--gpu-memory"
                )
        device = device or ("cuda" if devices.has_gpu() else "cpu")
        if device == "cpu":
            self.devices = Devices("cpu", jobs or devices.cores())
            return
        # once, also where one recipe calls another
        if not devices.is_half(self.extra) and "POSENC_PRECISION_TOLD" not in os.environ:
            os.environ["POSENC_PRECISION_TOLD"] = "yes"
            self.say(devices.FLOAT32)
        if self.several_gpus:
            node = devices.list_gpus(num_gpus, self.is_plan)
            memory = memory or devices.smallest_memory()
            self.devices = devices.divide_gpus(jobs or 1, node, memory)
            return
        node = () if self.is_plan else devices.list_gpus(num_gpus)
        self.devices = Devices("cuda", jobs or (len(node) if self.job_per_gpu else 0) or 1, node)

    def run_stages(self) -> None:
        """Run the stages behind set-up."""
        self.data()
        self.train_and_evaluate()
        self.tables()

    def print_plan(self) -> None:
        """Print the stages behind set-up; a kind says here what its stages cannot print."""
        self.run_stages()

    def stage_number(self, title: str) -> int:
        """The number of a stage."""
        return self.stages.index(title) + 1

    def run_stage(self, title: str, action: Callable[[], object], done_file: str = "") -> None:
        """Run a stage by its title; see :meth:`Recipe.stage`."""
        self.stage(self.stage_number(title), title, action, done_file)

    def data_stage(self, title: str, action: Callable[[], object], makes: str = "") -> None:
        """Run a stage of the data, unless RUN_DIR/<title>.done says that it is done."""
        done_file = self.path(f"{title}.done")
        self.stage(
            self.stage_number(title), title, action, done_file, self.data_fingerprint(), makes
        )

    def cells(self) -> List[PlannedCell]:
        """All cells with their steps, in the order in which they run."""
        return in_order(self.complete(cell) for cell in self.grid())

    def complete(self, cell: PlannedCell) -> PlannedCell:
        """A cell with its steps."""
        return cell._replace(steps=self.steps(cell), data_fingerprint=self.cell_fingerprint(cell))

    def train_and_evaluate(self) -> None:
        """Run the stages of the cells, or print them."""
        titles = [title for title in self.cell_stages if self.wants(self.stage_number(title))]
        if not titles:
            return
        first, last = self.stage_number(titles[0]), self.stage_number(titles[-1])
        title = ", ".join(titles)
        if self.is_plan:
            numbers = f"stage {first}" if first == last else f"stages {first} to {last}"
            self.say(f"{numbers}: {title}")
            self.print_cells(titles)
        else:
            self.stage(first, title, lambda: self.run_cells(titles), of_cells=True)

    def print_cells(self, titles: Sequence[str]) -> None:
        """Print the commands of these stages of all cells."""
        print(*plan(chosen(self, self.cells()), titles), sep="\n")

    def run_cells(self, titles: Sequence[str]) -> None:
        """Do what is left of these stages of all cells."""
        run_cells(self, self.cells(), titles, stop_diverged=self.stop_diverged)

    def submit(self) -> None:
        """Print the script that submits the trainings to SLURM."""
        before = self.stages.index(self.cell_stages[0])
        gpus = self.config.number("gpus") if self.several_gpus else 1
        slurm.print_script(self, self.grid(), self.stage_number(self.last_online_stage), before,
                           before + len(self.cell_stages) + 1, gpus)  # fmt: skip
