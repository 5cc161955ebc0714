"""What is left to run of a paper's table of translations, by which commands, for how long."""

import shlex
import statistics
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.tools.results.grid import Cell
from fairseq_posenc.tools.results.papers import PaperRow, PaperTable, parse_options
from fairseq_posenc.tools.results.tables import csv_table, markdown_table

_COLUMNS = [
    "setting", "row", "finished", "begun", "open", "tokens", "device-hours", "left", "basis"
]  # fmt: skip
ABOUT = (
    "Seeds are those of the paper. Tokens (10^9) and device-hours are of one cell; `left` is of "
    "all cells that have not finished, those begun in full. Devices are GPUs, or CPUs where "
    "ours had no GPU."
)


class Job(NamedTuple):
    """The cells of a row of the recipe: seeds of the paper, by the state of the cell.

    ``tokens`` and ``hours`` are of one cell, these by all its devices together; their ``basis`` is
    ``paper``, or what was measured.
    """

    setting: str
    row: str
    options: str
    seeds: Dict[str, List[str]]
    tokens: float
    hours: float
    basis: str

    @property
    def left(self) -> List[str]:
        """The seeds that have not finished."""
        return self.seeds["begun"] + self.seeds["open"]


@dataclass
class Plan:
    """The jobs of a table; ``folder`` has its runs."""

    table: PaperTable
    folder: str
    jobs: List[Job]

    def markdown(self) -> str:
        """Return the jobs as Markdown, the sums, and the commands that run what is left."""
        left = sum(len(job.left) for job in self.jobs)
        count = left + sum(len(job.seeds["finished"]) for job in self.jobs)
        tokens = sum(job.tokens * len(job.left) for job in self.jobs) / 1e9
        hours = sum(job.hours * len(job.left) for job in self.jobs)
        lines = [list(map(str, self._line(job))) for job in self.jobs]
        parts = [
            f"Left of {self.table.table} of {self.table.paper}, in {self.folder}",
            markdown_table([_COLUMNS, *lines], labels=2),
            f"{left} of {count} cells are left: {tokens:.1f} × 10^9 tokens, "
            f"{hours:.0f} device-hours.",
            ABOUT,
            "\n".join(["Bases:", *(f"- {text}" for text in self.table.recipe["basis"])]),
            "\n".join(f"    {self.command(job)}" for job in self.jobs if job.left),
        ]
        return "\n\n".join(parts).rstrip() + "\n"

    def csv(self) -> str:
        """Return CSV with a line per row of the recipe."""
        lines = [[*self._line(job), self.command(job)] for job in self.jobs]
        return csv_table([[*_COLUMNS, "command"], *lines])

    def command(self, job: Job) -> str:
        """Return the command that runs what is left of a job; empty if nothing is."""
        if not job.left:
            return ""
        recipe = self.table.recipe
        row = job.row if job.row == job.options else f"{job.row}={job.options}"
        words = ["bash", recipe["command"], "--settings", job.setting, "--encodings", row]
        if self.folder.rstrip("/") != recipe["runs"]:
            words += ["--run-dir", self.folder]
        return " ".join(map(shlex.quote, [*words, "--seeds", ",".join(job.left)]))

    def _line(self, job: Job) -> List[Any]:
        counts = [len(job.seeds[state]) for state in ("finished", "begun", "open")]
        hours = [f"{job.hours:.1f}", f"{job.hours * len(job.left):.1f}"]
        return [job.setting, job.row, *counts, f"{job.tokens / 1e9:.2f}", *hours, job.basis]


def plan(table: PaperTable, cells: Sequence[Cell], folder: str) -> Plan:
    """Return the plan of a table of translations, given the cells that there are.

    A row of ours that is there already, under any label, is continued under that label. Time is
    estimated from the tokens per second of our own finished cells, of the row or else of its
    setting, and where there are none from what the paper tells.
    """
    jobs: List[Job] = []
    for row in table.rows:
        settings = [row.setting] if row.setting else table.recipe["settings"]
        for setting in settings if row.seeds else ():
            for line in row.train or row.options[:1]:
                job = _job(table, row, setting, line, cells)
                # a table may print one training twice
                if job not in jobs:
                    jobs.append(job)
    return Plan(table, folder, jobs)


def _job(table: PaperTable, row: PaperRow, setting: str, line: str, cells: Sequence[Cell]) -> Job:
    # ``label=encoding option…`` or ``encoding``
    label, sign, options = line.partition("=")
    options = options if sign else label
    # of a sweep, each row is sought on its own
    sought = row._replace(setting=setting, options=[options] if len(row.train) > 1 else row.options)
    ours = [cell for cell in cells if cell.seed and sought.has(cell.setting, cell.options)]
    if ours:
        label, options = ours[0].row, ours[0].options
    states = {cell.seed: cell.state for cell in ours if cell.row == label}
    seeds: Dict[str, List[str]] = {"finished": [], "begun": [], "open": []}
    for seed in map(str, range(1, row.seeds + 1)):
        seeds[states.get(seed, "open")].append(seed)
    return Job(setting, label, options, seeds, *_cost(table.recipe, setting, options, cells))


def _cost(
    recipe: Dict[str, Any], setting: str, options: str, cells: Sequence[Cell]
) -> Tuple[float, float, str]:
    """Return the tokens and device-hours of one cell, and what the hours are from."""
    facts = recipe["settings"][setting]
    if "updates" in facts:
        tokens = facts["updates"] * facts["tokens_per_update"]
    else:
        tokens = facts["epochs"] * facts["tokens_per_epoch"]
    measured = [cell for cell in cells if cell.setting == setting and _speed(cell)]
    if measured:
        wanted = parse_options(options)
        same = [cell for cell in measured if parse_options(cell.options) == wanted] or measured
        speed = statistics.mean(map(_speed, same))
        hardware = ", ".join(sorted({str(cell.hardware[0]) for cell in same}))
        names = ", ".join(sorted({cell.row for cell in same}))
        basis = f"ours: {names} at {speed:.0f} tokens/s per device, {hardware}"
        return tokens, tokens / speed / 3600, basis
    if "seconds" in facts:
        seconds = facts["seconds"][parse_options(options)[0]]
        return tokens, seconds * facts["gpus"] / 3600, "paper"
    return tokens, tokens / recipe["tokens_per_second"] / 3600, "paper"


def hours_by_the_paper(table: PaperTable, setting: str, options: str) -> Optional[float]:
    """Return the GPU-hours of a training, None where the paper does not tell them."""
    try:
        return _cost(table.recipe, setting, options, [])[1]
    except KeyError:
        return None


def _speed(cell: Cell) -> float:
    """Return tokens per second and device, 0 if they are not known."""
    return (cell.training.get("tokens_per_second") or 0) / (cell.training.get("gpus") or 1)
