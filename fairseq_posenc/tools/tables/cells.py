"""The grid of results: every training in the folder of a recipe, with what was measured of it.

A cell of the grid is one training. ``cell.json`` in its folder, wherever that is, tells which one:
its ``setting`` (of translation a corpus with its way of training, of fine-tuning a task), ``row``,
``options`` (the encoding with its options), ``seed``, and ``lr``, which is empty in translation.
``score.json`` (of ``score_cell``, or of ``posenc predict``) is there once it has finished.
``<setting>/swap.json``, if there, is what ``posenc analyse swap`` found, by row.
"""

import math
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe, from_json, load_json, read_json
from fairseq_posenc.tools.scores.result import CellScore, Score
from fairseq_posenc.tools.scores.task_score import TaskScore
from fairseq_posenc.tools.tables.papers import CHOICES, parse_options

_CELL = dict.fromkeys(("setting", "row", "options", "seed", "lr"), str)
# settings of a fine-tuning in which the cells of a task differ
_OF_A_CELL = "--seed", "--lr", "--pretrained", "--position"
_SWAP = {"models": Each(dict.fromkeys(("original", "swapped", "drop"), Maybe(float)))}


# how results become comparable; subwords change trained lengths, and words of Moses' tokens
ALIKE = "score both alike"
PLAIN_TEXT = f"{ALIKE} (of other subwords: plain text, with --hypothesis, --reference, --source)"


class Condition(NamedTuple):
    """What must be equal in results that are compared, and what to do where it is not."""

    name: str
    value: Any
    advice: str = ALIKE


class Cell(NamedTuple):
    """One training, by its ``folder`` in that of the grid.

    ``options`` are the encoding and its options, which ``row`` names; ``seed`` is empty for what is
    of all seeds of a row; the ``setting`` of fine-tuning is its task, and it has a learning rate,
    ``lr``. The state is ``finished``, ``begun`` (there is a checkpoint) or ``open``.

    ``figures`` has, by test set or subset, its metrics; under ``training`` it has the facts of the
    training, under ``swap`` the figures of that analysis. It has no metrics before the training has
    finished.
    ``failures`` are sentences saying that the model has learned nothing.
    """

    folder: str
    setting: str
    row: str
    options: str
    seed: str
    lr: str = ""
    state: str = "open"
    figures: Mapping[str, Mapping[str, Any]] = {}
    failures: Sequence[str] = ()

    @property
    def training(self) -> Mapping[str, Any]:
        """The facts of the training, none before it has finished."""
        return self.figures.get("training", {})

    @property
    def hardware(self) -> Tuple[Optional[str], Optional[int]]:
        """Kind and number of devices."""
        return self.training.get("hardware"), self.training.get("gpus")


def read_cells(folder: str, fine_tuning: bool = False) -> List[Cell]:
    """Return the cells of a folder of runs, sorted by their folders."""
    make = _fine_tuning_cell if fine_tuning else _translation_cell
    cells, conditions = [], []
    finished: Dict[Any, str] = {}
    for path in sorted((file.parent for file in Path(folder).rglob("cell.json")), key=_naturally):
        description = _about(path / "cell.json")
        if bool(description["lr"]) == fine_tuning:
            cell, of_cell = make(path, str(path.relative_to(folder)), description)
            training = tuple(map(description.get, _CELL))
            first = finished.setdefault(training, cell.folder) if cell.state == "finished" else ""
            if first and first != cell.folder:
                raise UsageError(
                    f"{cell.folder} in {folder} is seed {cell.seed} of {cell.row}, as {first}: "
                    "give each training once"
                )
            cells.append(cell)
            conditions.append((cell.folder, of_cell))
    if not cells:
        raise UsageError(
            f"{folder} has no cells: no {'fine-tuning' if fine_tuning else 'translation'} has a "
            "cell.json below it, which recipes write (start it again: it repeats nothing)"
        )
    check_comparable(conditions)
    return cells if fine_tuning else cells + _swaps(Path(folder), cells)


def check_comparable(results: Iterable[Tuple[str, Sequence[Condition]]]) -> None:
    """Raise :class:`UsageError` unless all results (name, conditions) have equal conditions."""
    first: Dict[str, Tuple[str, Any]] = {}
    for name, conditions in results:
        for condition, value, advice in conditions:
            first_name, expected = first.setdefault(condition, (name, value))
            if value != expected:
                raise UsageError(
                    f"{name} cannot be compared with {first_name}: {condition} differ ({value} and "
                    f"{expected}); {advice}"
                )


def without_version(signature: str) -> str:
    """Return a signature of sacreBLEU without the version that computed it."""
    return re.sub(r"\|version:[^|]*", "", signature)


def _about(path: Path) -> Dict[str, str]:
    """Return which training a cell is."""
    description = load_json(str(path), _CELL, "a recipe")
    task, lr = description["setting"], description["lr"]
    try:
        parse_options(description["options"])
        if not "".join(description.values()).isprintable():
            raise UsageError("it has characters that cannot be printed")
        if lr and task not in CHOICES:
            raise UsageError(f"no task is called {task}; known: {', '.join(CHOICES)}")
        if not math.isfinite(float(lr or 0)):
            raise UsageError(f"{lr!r} is not a learning rate")
    except ValueError as error:
        raise UsageError(f"{path} is damaged: {error}") from None
    return description


def _translation_cell(
    path: Path, folder: str, description: Dict[str, str]
) -> Tuple[Cell, List[Condition]]:
    """Return a cell, and by what is scored the conditions of the scores."""
    result, state = _result(path, description, CellScore, "score_cell")
    tests: Mapping[str, Score] = result.tests if result else {}
    figures: Dict[str, Any] = {name: score.all.metrics for name, score in tests.items()}
    figures["training"] = vars(result.training) if result and result.training else {}
    cell = Cell(folder, **description, state=state, figures=figures)
    failures = [
        f"{cell.setting}/{cell.row}, seed {cell.seed}, {reason} of {name}."
        for name, score in tests.items()
        for reason in score.nothing_learned()
    ]
    cell = cell._replace(failures=failures[:1])  # of several test sets one tells
    conditions = []
    for name, score in tests.items():
        measured = f"numbers of sentences or signatures of {name} in {cell.setting}"
        signed = {metric: without_version(text) for metric, text in score.signatures.items()}
        conditions.append(Condition(measured, (score.all.sentences, signed), PLAIN_TEXT))
    return cell, conditions


def _fine_tuning_cell(
    path: Path, folder: str, description: Dict[str, str]
) -> Tuple[Cell, List[Condition]]:
    result, state = _result(path, description, TaskScore, "posenc predict")
    scores = result.scores if result else {}
    task = description["setting"]
    failures = result.failures(description["row"], description["seed"]) if result else []
    cell = Cell(folder, **description, state=state, figures=scores, failures=failures)
    # of a set without labels there is nothing to compare
    labelled = {subset: metrics for subset, metrics in scores.items() if metrics}
    names = sorted(
        f"{subset} ({' '.join(sorted(metrics))})" for subset, metrics in labelled.items()
    )
    conditions = [Condition(f"scores of {task}", ", ".join(names)), *_settings(path, task)]
    return cell, conditions if result else []


def _settings(path: Path, task: str) -> List[Condition]:
    """Return the options of a fine-tuning, as the recipe has kept them, that its peers share."""
    settings_file = path / "settings"
    if not settings_file.is_file():  # a plan that was run by hand
        return []
    lines = settings_file.read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" ") for line in lines if not line.startswith(_OF_A_CELL)]
    options = {option: value for option, _, value in pairs}  # of one given twice the last counts
    advice = "fine-tune both alike, in a --run-dir of their own"
    return [Condition(f"{option} on {task}", value, advice) for option, value in options.items()]


def _swaps(folder: Path, cells: Sequence[Cell]) -> List[Cell]:
    swaps = []
    options = {(cell.setting, cell.row): cell.options for cell in cells}
    for path in sorted(folder.glob("*/swap.json")):
        setting = path.parent.name
        for row, figures in load_json(str(path), _SWAP, "posenc analyse swap")["models"].items():
            if (setting, row) not in options:
                raise UsageError(f"{path} has a row {row!r}, of which {path.parent} has no cell")
            cell = Cell(f"{setting}/{row}", setting, row, options[setting, row], "")
            swaps.append(cell._replace(state="finished", figures={"swap": figures}))
    return swaps


def _result(
    path: Path, description: Mapping[str, str], record: Type[Any], origin: str
) -> Tuple[Any, str]:
    """Return the content of ``score.json``, None if it is not there, and the state of its cell."""
    file = path / "score.json"
    if file.exists():
        result = from_json(record, read_json(str(file)), str(file), origin)
        row, options = description["row"], description["options"]
        spec = options if row == options else f"{row}={options}"
        for name, value in {"row": spec, **{n: description[n] for n in ("seed", "lr")}}.items():
            noted = result.notes.get(name, value)
            if noted != value:
                raise UsageError(
                    f"{file} is of {name} {noted}, and cell.json beside it of {value}: it is the "
                    "result of another training"
                )
        return result, "finished"
    begun = any(path.glob("checkpoint*.pt")) or (path / "train.done").exists()
    return None, "begun" if begun else "open"


def _naturally(path: Path) -> Tuple[Path, int, str]:
    """Sort seed10 after seed9."""
    return path.parent, len(path.name), path.name
