"""What is left to run of a paper's table of translations, by which commands, for how long."""

import shlex
import statistics
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.tools.results.papers import PaperRow, PaperTable, parse_options
from fairseq_posenc.tools.results.tables import csv_table, markdown_table
from fairseq_posenc.tools.results.translations import Cell

_STATES = ("finished", "begun", "open")
_COLUMNS = ["setting", "row", *_STATES, "tokens", "device-hours", "left", "basis"]
READING = (
    "Seeds are those of the paper. Tokens (10^9) and device-hours are of one cell; `left` is of "
    "all cells that have not finished, those begun in full. Devices are GPUs, or CPUs where "
    "ours had no GPU."
)


class Cost(NamedTuple):
    """What one cell takes; ``basis`` is ``paper``, or what was measured."""

    tokens: float
    hours: float
    basis: str


class Job(NamedTuple):
    """The cells of a row of the recipe, by their seeds."""

    setting: str
    row: str
    options: str
    seeds: Dict[str, List[str]]
    cost: Cost

    def left(self) -> List[str]:
        """Return the seeds that have not finished."""
        return self.seeds["begun"] + self.seeds["open"]

    def hours(self) -> float:
        """Return the device-hours that are left."""
        return self.cost.hours * len(self.left())


@dataclass
class Plan:
    """The jobs of a table; ``folder`` has its runs."""

    table: PaperTable
    folder: str
    jobs: List[Job]

    def markdown(self) -> str:
        """Return the jobs as Markdown, the sums, and the commands that run what is left."""
        lines = [list(map(str, self._line(job))) for job in self.jobs]
        left = sum(len(job.left()) for job in self.jobs)
        tokens = sum(job.cost.tokens * len(job.left()) for job in self.jobs) / 1e9
        basis = [f"- {text}" for text in self.table.recipe["basis"]]
        parts = [
            f"Left of {self.table.table} of {self.table.paper}, in {self.folder}",
            markdown_table([_COLUMNS, *lines], labels=2),
            f"{left} of {self._count()} cells are left: {tokens:.1f} × 10^9 tokens, "
            f"{sum(job.hours() for job in self.jobs):.0f} device-hours.",
            READING,
            "\n".join(["Bases:", *basis]),
        ]
        commands = [f"    {self.command(job)}" for job in self.jobs if job.left()]
        return "\n\n".join([*parts, "\n".join(commands)]).rstrip() + "\n"

    def csv(self) -> str:
        """Return CSV with a line per row of the recipe."""
        lines = [[*self._line(job), self.command(job)] for job in self.jobs]
        return csv_table([[*_COLUMNS, "command"], *lines])

    def command(self, job: Job) -> str:
        """Return the command that runs what is left of a job; empty if nothing is."""
        if not job.left():
            return ""
        recipe = self.table.recipe
        row = job.row if job.row == job.options else f"{job.row}={job.options}"
        words = ["bash", recipe["command"], "--settings", job.setting, "--encodings", row]
        if self.folder.rstrip("/") != recipe["runs"]:
            words += ["--run-dir", self.folder]
        return " ".join(map(shlex.quote, [*words, "--seeds", ",".join(job.left())]))

    def _line(self, job: Job) -> List[Any]:
        counts = [len(job.seeds[state]) for state in _STATES]
        figures = [f"{job.cost.tokens / 1e9:.2f}", f"{job.cost.hours:.1f}", f"{job.hours():.1f}"]
        return [job.setting, job.row, *counts, *figures, job.cost.basis]

    def _count(self) -> int:
        return sum(len(seeds) for job in self.jobs for seeds in job.seeds.values())


def plan(table: PaperTable, cells: Sequence[Cell], folder: str) -> Plan:
    """Return the plan of a table of translations, given the cells that there are.

    A row of ours that is there already, under any label, is continued under that label. Time is
    estimated from the tokens per second of our own finished cells, of the row or else of its
    setting, and where there are none from what the paper tells.
    """
    jobs: List[Job] = []
    for row in table.rows:
        if not row.seeds:
            continue
        for setting in [row.setting] if row.setting else table.recipe["settings"]:
            for line in row.train or row.options[:1]:
                job = _job(table, row, setting, line, cells)
                # a table may print one training twice
                if job not in jobs:
                    jobs.append(job)
    return Plan(table, folder, jobs)


def _job(table: PaperTable, row: PaperRow, setting: str, line: str, cells: Sequence[Cell]) -> Job:
    label, options = _split(line)
    # of a sweep, each row is sought on its own
    ways = [options] if len(row.train) > 1 else row.options
    sought = row._replace(setting=setting, options=ways)
    ours = [cell for cell in cells if cell.seed and sought.has(cell.setting, cell.options)]
    if ours:
        label, options = ours[0].row, ours[0].options
    seeds: Dict[str, List[str]] = {state: [] for state in _STATES}
    by_seed = {cell.seed: cell for cell in ours if cell.row == label}
    for seed in map(str, range(1, row.seeds + 1)):
        seeds[_state(by_seed.get(seed))].append(seed)
    return Job(setting, label, options, seeds, _cost(table.recipe, setting, options, cells))


def _state(cell: Optional[Cell]) -> str:
    if cell is None or not cell.begun:
        return "open"
    return "begun" if cell.result is None else "finished"


def _cost(recipe: Dict[str, Any], setting: str, options: str, cells: Sequence[Cell]) -> Cost:
    facts = recipe["settings"][setting]
    tokens = facts.get("updates", 0) * facts.get("tokens_per_update", 0)
    tokens = tokens or facts["epochs"] * facts["tokens_per_epoch"]
    measured = [cell for cell in cells if cell.setting == setting and _rate(cell)]
    same = [cell for cell in measured if parse_options(cell.options) == parse_options(options)]
    if measured:
        rate, basis = _measured(same or measured)
        return Cost(tokens, tokens / rate / 3600, basis)
    if "seconds" in facts:
        encoding, _ = parse_options(options)
        return Cost(tokens, facts["seconds"][encoding] * facts["gpus"] / 3600, "paper")
    return Cost(tokens, tokens / recipe["tokens_per_second"] / 3600, "paper")


def _measured(cells: Sequence[Cell]) -> Tuple[float, str]:
    """Return tokens per second and device, and where they are from."""
    rate = statistics.mean(map(_rate, cells))
    hardware = ", ".join(sorted({str(cell.hardware()[0]) for cell in cells}))
    names = ", ".join(sorted({cell.row for cell in cells}))
    return rate, f"ours: {names} at {rate:.0f} tokens/s per device, {hardware}"


def _rate(cell: Cell) -> float:
    """Return tokens per second and device, 0 if they are not known."""
    facts = cell.training()
    return (facts.get("tokens_per_second") or 0) / (facts.get("gpus") or 1)


def _split(line: str) -> Tuple[str, str]:
    """Return label and options of a recipe's row, ``label=encoding option…`` or ``encoding``."""
    label, sign, options = line.partition("=")
    return (label, options) if sign else (line, line)
