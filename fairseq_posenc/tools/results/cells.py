"""Fine-tuning runs as a grid of cells, and the aggregation of Chen et al. 2021 (section 4.1).

A cell is one fine-tuning: ``FOLDER/<row>/<task>/lr<lr>/seed<n>/``, where a row is a model with its
encoding. ``score.json`` (of ``posenc predict``, best checkpoint of the run) is there once the
cell has finished; ``<row>/row`` holds the row's encoding and its options.

The paper reports "the median of the maximum accuracy over all checkpoints among five runs" and
leaves open how the learning rate is chosen. Our reading: the one with the best median of the task's
own metric on its English development set.
"""

import math
import statistics
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, read_shaped
from fairseq_posenc.tools.prepare import glue_tasks
from fairseq_posenc.tools.prepare.xtreme import BENCHMARKS
from fairseq_posenc.tools.results.papers import parse_options

Scores = Dict[str, Dict[str, float]]
_RESULT = {"scores": Each(Each(float))}


class Metric(NamedTuple):
    """``name`` averaged over ``subsets``, those that were scored."""

    subsets: Sequence[str]
    name: str

    def values(self, scores: Scores) -> List[float]:
        """Return the figures of the subsets that were scored, in percent."""
        found = (scores.get(subset, {}) for subset in self.subsets)
        return [figures[self.name] for figures in found if self.name in figures]

    def of(self, scores: Scores) -> Optional[float]:
        """Return the figure in percent, or None if no such subset was scored."""
        values = self.values(scores)
        return statistics.mean(values) if values else None

    def part(self, scores: Scores) -> Optional[str]:
        """Return ``9 of 11`` where subsets are missing, None where none is."""
        found, whole = len(self.values(scores)), len(self.subsets)
        return None if found == whole else f"{found} of {whole}"


class Task(NamedTuple):
    """The metric that chooses a learning rate, and the figures that tables show, by name."""

    choice: Metric
    figures: Dict[str, Metric]


def _one(name: str, metric: str) -> Task:
    return Task(Metric(("valid",), metric), {name: Metric(("valid",), metric)})


def _answers(name: str) -> Dict[str, Metric]:
    splits = BENCHMARKS[name].splits()
    return {f"{name} F1": Metric(splits, "f1"), f"{name} EM": Metric(splits, "exact_match")}


TASKS: Dict[str, Task] = {
    **{name: _one(name, task.best) for name, task in glue_tasks.TASKS.items()},
    "MNLI": Task(
        Metric(("valid",), "accuracy"),
        {"MNLI-m": Metric(("valid",), "accuracy"), "MNLI-mm": Metric(("valid1",), "accuracy")},
    ),
    "XNLI": Task(
        Metric(("valid-en",), "accuracy"),
        {"XNLI": Metric(BENCHMARKS["XNLI"].splits(), "accuracy")},
    ),
    "SQuAD": Task(
        Metric(("valid",), "f1"),
        {**_answers("XQuAD"), **_answers("MLQA"), **_answers("TyDiQA-GoldP")},
    ),
}


class Cell(NamedTuple):
    """One fine-tuning; ``scores`` (by subset and metric, percent) is None until it has finished."""

    row: str
    options: str
    task: str
    lr: str
    seed: str
    scores: Optional[Scores]

    def __str__(self) -> str:
        return f"{self.row}/{self.task}/lr{self.lr}/seed{self.seed}"


class Summary(NamedTuple):
    """A figure at the learning rate ``lr``: median over its ``seeds`` finished cells.

    ``spread`` is their sample standard deviation, None for one seed. ``unfinished`` counts the
    row's cells of that task, of any learning rate, that are without a result. Means of other
    figures have none of these. ``part`` is ``9 of 11`` for a mean over some of a benchmark's
    languages only.
    """

    median: float
    spread: Optional[float]
    seeds: Optional[int]
    lr: Optional[str]
    unfinished: Optional[int]
    part: Optional[str] = None

    @property
    def value(self) -> float:
        """The figure that is compared with the paper's."""
        return self.median

    def runs(self) -> str:
        """Return which runs it is from; nothing for means of other figures."""
        if self.lr is None or self.seeds is None or self.unfinished is None:
            return ""
        return f"{self.lr}, {seeds_text(self.seeds, self.unfinished)}"


def seeds_text(seeds: int, unfinished: int) -> str:
    """Return a number of seeds, and in brackets how many are open."""
    return f"{seeds} ({unfinished} open)" if unfinished else str(seeds)


def read_cells(folder: str) -> List[Cell]:
    """Return the cells of a folder of runs, sorted by their place.

    Raises:
        UsageError: no cells, an unknown task, a learning rate that is no number, a row without its
            ``row`` file, a result that is none, or results of one task that have different metrics
            or subsets, whose means cannot be compared.
    """
    cells = []
    for place in sorted(Path(folder).glob("*/*/lr*/seed*")):
        row, task, lr, seed = place.relative_to(folder).parts
        if task not in TASKS:
            raise UsageError(f"{place}: no task is called {task}; known: {', '.join(TASKS)}")
        options = read_options(Path(folder, row))
        result = read_result(place / "score.json", _RESULT, "posenc predict")
        scores = result and result["scores"]
        lr = lr[len("lr") :]
        if not _is_number(lr):
            raise UsageError(f"{place}: {lr!r} is no learning rate")
        cells.append(Cell(row, options, task, lr, seed[len("seed") :], scores))
    if not cells:
        raise UsageError(f"{folder} has no cells <row>/<task>/lr<lr>/seed<n>")
    _check_comparable(cells)
    return cells


def summarise(cells: Sequence[Cell], task: str, metric: Metric) -> Optional[Summary]:
    """Return ``metric`` of one row's ``cells`` of ``task`` at the best learning rate.

    Of learning rates that are equally good, the smallest is taken. None while no cell of the task
    has finished.
    """
    cells = [cell for cell in cells if cell.task == task]
    values, choice = _by_lr(cells, metric), _by_lr(cells, TASKS[task].choice)
    known = sorted(values.keys() & choice.keys(), key=lambda lr: (float(lr), lr))
    if not known:
        return None
    lr = max(known, key=lambda lr: statistics.median(choice[lr]))
    return Summary(
        median=statistics.median(values[lr]),
        spread=statistics.stdev(values[lr]) if len(values[lr]) > 1 else None,
        seeds=len(values[lr]),
        lr=lr,
        unfinished=sum(cell.scores is None for cell in cells),
        part=next(metric.part(cell.scores) for cell in cells if cell.scores),
    )


def _by_lr(cells: Sequence[Cell], metric: Metric) -> Dict[str, List[float]]:
    values: Dict[str, List[float]] = {}
    for cell in cells:
        value = None if cell.scores is None else metric.of(cell.scores)
        if value is not None:
            values.setdefault(cell.lr, []).append(value)
    return values


def _check_comparable(cells: Sequence[Cell]) -> None:
    first: Dict[str, Cell] = {}
    for cell in cells:
        if cell.scores is None:
            continue
        other = first.setdefault(cell.task, cell)
        ours, theirs = (_names(one.scores or {}) for one in (cell, other))
        if ours != theirs:
            raise UsageError(
                f"{cell} cannot be compared with {other}: one has scores of {', '.join(ours)}, "
                f"the other of {', '.join(theirs)}"
            )


def _names(scores: Scores) -> List[str]:
    """Return the subsets, and what each is scored by."""
    return sorted(f"{subset} ({' '.join(sorted(figures))})" for subset, figures in scores.items())


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_options(folder: Path) -> str:
    """Return a row's encoding and its options, from the file ``row`` in its folder.

    Raises:
        UsageError: there is no such file, or it holds something else.
    """
    path = str(folder / "row")
    options = " ".join(read_lines(path))
    try:
        parse_options(options)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return options


def read_result(path: Path, shape: Any, origin: str) -> Optional[Dict[str, Any]]:
    """Return the content of a ``score.json``, or None if it is not there.

    Raises:
        UsageError: it is no JSON of that shape, see :mod:`fairseq_posenc.json_files`.
    """
    return read_shaped(str(path), shape, origin) if path.exists() else None
