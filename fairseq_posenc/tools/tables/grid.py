"""The grid of results: every training in the folder of a recipe, with what was measured of it.

A cell of the grid is one training, ``<setting>/<row>/seed<n>`` of translation, where a setting is a
corpus with its way of training and a row an encoding, or ``<row>/<task>/lr<lr>/seed<n>`` of
fine-tuning. ``score.json`` (of ``score_cell``, or of ``posenc predict``) is there once it has
finished, and the file ``row`` in the folder of its row has the encoding and its options.
``<setting>/swap.json``, if there, is what ``posenc analyse swap`` found, by row.
"""

import math
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, Maybe, read_shaped
from fairseq_posenc.tools.scores.bleu import TITLES
from fairseq_posenc.tools.tables.papers import CHOICES, parse_options

# a metric may be missing, as from older results
FIGURES = dict.fromkeys(TITLES, Maybe(float))
_FACTS = dict.fromkeys(("seconds", "tokens_per_second"), Maybe(float))
_FACTS.update(parameters=Maybe(int), gpus=Maybe(int), hardware=Maybe(str))
_TRANSLATION = {
    "tests": Each({"all": {"sentences": int, **FIGURES}, "signatures": Each(str)}),
    "training": Maybe({"updates": int, **_FACTS}),
}
_FINE_TUNING = {"scores": Each(Each(float))}
_SWAP = {"models": Each(dict.fromkeys(("original", "swapped", "drop"), Maybe(float)))}


class Cell(NamedTuple):
    """One training, by its folder, ``place``, in that of the grid.

    ``options`` are the encoding and its options, which ``row`` names; ``seed`` is empty for what is
    of all seeds of a row; translation has a ``setting``, fine-tuning a ``task`` and its learning
    rate ``lr``. The state is ``finished``, ``begun`` (there is a checkpoint) or ``open``.

    ``figures`` has, by test set or subset, its metrics; ``training`` has the facts of the training,
    ``swap`` the figures of that analysis. It is empty before the training has finished.
    """

    place: str
    setting: Optional[str]
    row: str
    options: str
    seed: str
    task: Optional[str] = None
    lr: str = ""
    state: str = "open"
    figures: Mapping[str, Mapping[str, Any]] = {}

    @property
    def training(self) -> Mapping[str, Any]:
        """The facts of the training, none before it has finished."""
        return self.figures.get("training", {})

    @property
    def hardware(self) -> Tuple[Optional[str], Optional[int]]:
        """Kind and number of devices."""
        return self.training.get("hardware"), self.training.get("gpus")


def read_cells(folder: str, fine_tuning: bool = False) -> List[Cell]:
    """Return the cells of a folder of runs, sorted by their place.

    Raises:
        UsageError: no cells, a row without its ``row`` file, an unknown task, a learning rate that
            is not a number, a file that is not a result, or results that cannot be compared: of
            other sentences or signatures (versions of sacreBLEU aside), of other subsets or
            metrics.
    """
    layout = "<row>/<task>/lr<lr>/seed<n>" if fine_tuning else "<setting>/<row>/seed<n>"
    make = _fine_tuning_cell if fine_tuning else _translation_cell
    cells, conditions = [], []
    for path in sorted(Path(folder).glob(re.sub("<.*?>", "*", layout)), key=_naturally):
        cell, facts = make(path, *path.relative_to(folder).parts)
        cells.append(cell)
        conditions.append((cell.place, facts))
    if not cells:
        raise UsageError(f"{folder} has no cells {layout}")
    check_comparable(conditions)
    return cells if fine_tuning else cells + _swaps(Path(folder))


def check_comparable(conditions: Iterable[Tuple[str, Mapping[str, Any]]]) -> None:
    """Raise :class:`UsageError` unless all results (name, conditions) have equal conditions."""
    first: Dict[str, Tuple[str, Any]] = {}
    for name, facts in conditions:
        for what, value in facts.items():
            other, expected = first.setdefault(what, (name, value))
            if value != expected:
                raise UsageError(
                    f"{name} cannot be compared with {other}: {what} differ "
                    f"({value} and {expected}); score both alike"
                )


def without_version(signature: str) -> str:
    """Return a signature of sacreBLEU without the version that computed it."""
    return re.sub(r"\|version:[^|]*", "", signature)


def _translation_cell(path: Path, setting: str, row: str, seed: str) -> Tuple[Cell, Dict[str, Any]]:
    """Return a cell, and by what is scored the conditions of the scores."""
    result, state = _result(path, _TRANSLATION, "score_cell")
    tests = result.get("tests", {})
    figures = {name: score["all"] for name, score in tests.items()}
    figures["training"] = result.get("training") or {}
    options = _options(path.parent)
    cell = Cell(
        f"{setting}/{row}/{seed}", setting, row, options, seed[4:], None, "", state, figures
    )
    facts = {
        f"numbers of sentences or signatures of {name} in {setting}": (
            score["all"]["sentences"],
            {metric: without_version(text) for metric, text in score["signatures"].items()},
        )
        for name, score in tests.items()
    }
    return cell, facts


def _fine_tuning_cell(
    path: Path, row: str, task: str, lr: str, seed: str
) -> Tuple[Cell, Dict[str, Any]]:
    if task not in CHOICES:
        raise UsageError(f"{path}: no task is called {task}; known: {', '.join(CHOICES)}")
    options = _options(path.parents[2])
    result, state = _result(path, _FINE_TUNING, "posenc predict")
    try:
        finite = math.isfinite(float(lr[2:]))
    except ValueError:
        finite = False
    if not finite:
        raise UsageError(f"{path}: {lr[2:]!r} is not a learning rate")
    scores = result.get("scores", {})
    place = f"{row}/{task}/{lr}/{seed}"
    cell = Cell(place, None, row, options, seed[4:], task, lr[2:], state, scores)
    # of a set without labels there is nothing to compare
    known = {subset: found for subset, found in scores.items() if found}
    names = sorted(f"{subset} ({' '.join(sorted(found))})" for subset, found in known.items())
    return cell, {f"scores of {task}": ", ".join(names)} if result else {}


def _swaps(folder: Path) -> List[Cell]:
    cells = []
    for path in sorted(folder.glob("*/swap.json")):
        setting = path.parent.name
        for row, figures in read_shaped(str(path), _SWAP, "posenc analyse swap")["models"].items():
            if not os.path.isdir(path.parent / row):
                raise UsageError(f"{path} has a row {row!r}, which {path.parent} lacks")
            options = _options(path.parent / row)
            place = f"{setting}/{row}"
            found = {"swap": figures}
            cells.append(Cell(place, setting, row, options, "", state="finished", figures=found))
    return cells


def _result(path: Path, shape: Any, origin: str) -> Tuple[Dict[str, Any], str]:
    """Return the content of ``score.json``, empty if it is not there, and the state of its cell."""
    file = path / "score.json"
    if file.exists():
        return read_shaped(str(file), shape, origin), "finished"
    begun = any(path.glob("checkpoint*.pt")) or (path / "train.done").exists()
    return {}, "begun" if begun else "open"


def _options(folder: Path) -> str:
    """Return a row's encoding and its options, from the file ``row`` in its folder."""
    path = str(folder / "row")
    options = " ".join(read_lines(path))
    try:
        parse_options(options)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return options


def _naturally(path: Path) -> Tuple[Path, int, str]:
    """Sort seed10 after seed9."""
    seed = path.name[len("seed") :]
    return path.parent, int(seed) if seed.isdecimal() else 0, seed
