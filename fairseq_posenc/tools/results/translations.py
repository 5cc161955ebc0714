"""Translation runs as a grid of cells, and the papers' tables of translation with ours in them.

A cell is one training: ``FOLDER/<setting>/<row>/seed<n>/``, where a setting is a corpus with its
way of training and a row an encoding. ``score.json`` (of ``score_cell``) is there once
the cell has finished; ``<setting>/<row>/row`` holds the row's encoding and its options, and
``<setting>/swap.json``, if there, what ``posenc analyse swap`` found, by row.
"""

import os
import statistics
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe
from fairseq_posenc.tools.results.cells import read_options, read_result, seeds_text
from fairseq_posenc.tools.results.comparison import Comparison, Group, Style, place
from fairseq_posenc.tools.results.papers import PaperRow, PaperTable, parse_options
from fairseq_posenc.tools.results.tables import FIGURES

TRANSLATION = Style(
    reading=(
        "Ours: mean over seeds ± their sample standard deviation. Differences are ours minus the "
        "paper's. `open` counts seeds of the paper, and cells begun, that have not finished."
    ),
    summary=("mean", "standard deviation", "seeds", "unfinished"),
    runs="seeds",
)
BASELINE = "sinusoidal"
_RESULT = {
    "tests": Each({"all": {"sentences": int, **FIGURES}, "signatures": Each(str)}),
    "training": Maybe(
        {
            "updates": int,
            "seconds": Maybe(float),
            "tokens_per_second": Maybe(float),
            "parameters": Maybe(int),
            "gpus": Maybe(int),
            "hardware": Maybe(str),
        }
    ),
}
_SWAP = {"models": Each(dict.fromkeys(("original", "swapped", "drop"), Maybe(float)))}


class Cell(NamedTuple):
    """One training; ``result`` (the content of ``score.json``) is None until it has finished.

    ``begun``: there is a checkpoint or a result.
    """

    setting: str
    row: str
    options: str
    seed: str
    begun: bool
    result: Optional[Dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.setting}/{self.row}/seed{self.seed}"

    def group(self) -> Group:
        """Return the cell's row."""
        return Group(self.setting, self.row, self.options)

    def training(self) -> Dict[str, Any]:
        """Return the facts of the training, none before it has finished."""
        return (self.result or {}).get("training") or {}

    def hardware(self) -> Tuple:
        """Return kind and number of devices."""
        return self.training().get("hardware"), self.training().get("gpus")


class Mean(NamedTuple):
    """A figure of a row: its mean over ``seeds`` cells and their sample standard deviation.

    ``spread`` is None for one seed. ``unfinished`` counts cells that are without a result.
    """

    mean: float
    spread: Optional[float]
    seeds: int
    unfinished: int

    @property
    def part(self) -> None:
        """None: it is over all of a test set."""
        return None

    @property
    def value(self) -> float:
        """The figure that is compared with the paper's."""
        return self.mean

    def runs(self) -> str:
        """Return how many seeds it is from."""
        return seeds_text(self.seeds, self.unfinished)


def find_cells(folder: str) -> List[Cell]:
    """Return the cells of a folder of runs, sorted by their place; none if there are none.

    Raises:
        UsageError: a row without its ``row`` file, a result that is none, or results for one test
            set that cannot be compared: of other sentences or signatures (versions aside).
    """
    cells = []
    for place_ in sorted(Path(folder).glob("*/*/seed*"), key=_naturally):
        setting, row, seed = place_.relative_to(folder).parts
        result = read_result(place_ / "score.json", _RESULT, "score_cell")
        begun = result is not None or any(place_.glob("checkpoint*.pt"))
        options = read_options(place_.parent)
        cells.append(Cell(setting, row, options, seed[len("seed") :], begun, result))
    _check_comparable(cells)
    return cells + _swaps(folder)


def read_cells(folder: str) -> List[Cell]:
    """Return what :func:`find_cells` does; no cells at all are a :class:`UsageError`."""
    cells = find_cells(folder)
    if not cells:
        raise UsageError(f"{folder} has no cells <setting>/<row>/seed<n>")
    return cells


def compare(table: PaperTable, cells: Sequence[Cell], notes: Sequence[str] = ()) -> Comparison:
    """Return the paper's table with the figures of our ``cells`` in it, and ``notes`` below.

    Rows that the paper lacks are left out where they are of other settings or have no figure.
    """
    groups: Dict[Group, List[Cell]] = {}
    for cell in cells:
        group = cell.group()
        if all(row.setting is None for row in table.rows):
            group = group._replace(setting=None)
        groups.setdefault(group, []).append(cell)

    def figures(row: Optional[PaperRow], ours: List[Cell]) -> Dict[str, Optional[Mean]]:
        wanted = row.seeds if row else 0
        return {
            name: summarise(ours, measure, cells, wanted)
            for name, measure in table.measures.items()
        }

    settings = {row.setting for row in table.rows}
    for group in list(groups):
        placed = any(row.has(group.setting, group.options) for row in table.rows)
        told = group.setting in settings and any(figures(None, groups[group]).values())
        if not (placed or told):
            del groups[group]
    entries = place(table, groups, table.figures(), figures)
    notes = [*notes, *_remarks(table, cells)]
    return Comparison(table, table.columns, entries, notes, TRANSLATION)


def summarise(
    cells: Sequence[Cell], measure: Mapping[str, Any], everything: Sequence[Cell], wanted: int = 0
) -> Optional[Mean]:
    """Return a figure of one row's ``cells``; None while no cell has it.

    Args:
        cells: of the row.
        measure: a measure of a table, see :func:`value`; its ``setting``, if given, alone counts,
            and with ``relative`` the mean of the same figure of the row without options of the
            encoding ``sinusoidal``, in the same setting and on equal hardware, is 1.
        everything: all cells.
        wanted: how many seeds there should be.
    """
    cells = [cell for cell in cells if measure.get("setting") in (None, cell.setting)]
    found = [(cell, value(cell, measure)) for cell in cells]
    if measure.get("relative"):
        found = [
            (cell, _ratio(number, _baseline(cell, measure, everything))) for cell, number in found
        ]
    values = [number for _, number in found if number is not None]
    if not values:
        return None
    return Mean(
        mean=statistics.mean(values),
        spread=statistics.stdev(values) if len(values) > 1 else None,
        seeds=len(values),
        unfinished=max(sum(cell.result is None for cell in cells), wanted - len(values)),
    )


def value(cell: Cell, measure: Mapping[str, Any]) -> Optional[float]:
    """Return a figure of a cell, or None if it lacks it.

    A measure has either ``tests`` and ``metric`` (mean of the scores of these test sets, all of
    which must be there), or ``training`` (a fact of the training, divided by ``unit``), or
    ``swap`` (a figure of that analysis).
    """
    result = cell.result or {}
    if "tests" in measure:
        scores = [result.get("tests", {}).get(name, {"all": {}}) for name in measure["tests"]]
        figures = [score["all"].get(measure["metric"]) for score in scores]
        return None if None in figures else statistics.mean(figures)
    kind = "training" if "training" in measure else "swap"
    found = (result.get(kind) or {}).get(measure[kind])
    return None if found is None else found / measure.get("unit", 1)


def _baseline(
    cell: Cell, measure: Mapping[str, Any], everything: Sequence[Cell]
) -> Optional[float]:
    found = [
        value(other, measure)
        for other in everything
        if other.setting == cell.setting
        and parse_options(other.options) == (BASELINE, {})
        and other.hardware() == cell.hardware()
    ]
    values = [number for number in found if number is not None]
    return statistics.mean(values) if values else None


def _ratio(number: Optional[float], base: Optional[float]) -> Optional[float]:
    return None if number is None or not base else number / base


def _remarks(table: PaperTable, cells: Sequence[Cell]) -> List[str]:
    """Return what a reader should know of our trainings before comparing."""
    remarks = []
    for setting, facts in table.recipe["settings"].items():
        updates = {
            cell.training()["updates"]
            for cell in cells
            if cell.setting == setting and cell.training()
        }
        if "updates" in facts and updates - {facts["updates"]}:
            made = ", ".join(map(str, sorted(updates)))
            remarks.append(f"{setting}: ours made {made} updates, the paper's {facts['updates']}.")
    hardware = sorted({"{1} × {0}".format(*c.hardware()) for c in cells if c.training()})
    if hardware and any("training" in measure for measure in table.measures.values()):
        remarks.append(f"Ours were trained on: {'; '.join(hardware)}.")
    return remarks


def _check_comparable(cells: Sequence[Cell]) -> None:
    first: Dict[Tuple[str, str], Tuple[Cell, Any]] = {}
    for cell in cells:
        for name, score in (cell.result or {}).get("tests", {}).items():
            conditions = _conditions(score)
            other, expected = first.setdefault((cell.setting, name), (cell, conditions))
            if conditions != expected:
                raise UsageError(
                    f"{cell} cannot be compared with {other}: numbers of sentences or signatures "
                    f"of {name} differ ({conditions} and {expected}); score both alike"
                )


def _conditions(score: Mapping[str, Any]) -> Tuple[int, Dict[str, str]]:
    signatures = {
        metric: "|".join(part for part in text.split("|") if not part.startswith("version:"))
        for metric, text in score["signatures"].items()
    }
    return score["all"]["sentences"], signatures


def _swaps(folder: str) -> List[Cell]:
    cells = []
    for path in sorted(Path(folder).glob("*/swap.json")):
        found = read_result(path, _SWAP, "posenc analyse swap") or {}
        for row, figures in found["models"].items():
            if not os.path.isdir(path.parent / row):
                raise UsageError(f"{path} has a row {row!r}, which {path.parent} lacks")
            options = read_options(path.parent / row)
            cells.append(Cell(path.parent.name, row, options, "", True, {"swap": figures}))
    return cells


def _naturally(path: Path) -> Tuple:
    """Sort seed10 after seed9."""
    seed = path.name[len("seed") :]
    return path.parent, int(seed) if seed.isdecimal() else 0, seed
