"""The tables of papers as printed, ``papers/<paper>-<number>.json``, and how ours are computed.

Rows of ours find their place in them by their options, not by their labels.
"""

import json
import math
import statistics
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.xtreme import BENCHMARKS

FOLDER = Path(__file__).parent / "papers"


class Measure(NamedTuple):
    """How a figure of a table is computed from one training.

    It is a metric's mean over ``sets``, all of which must have it, but in fine-tuning: test sets
    (translation), subsets (fine-tuning), ``training`` (facts of the training) or ``swap`` (the
    figures of ``posenc analyse swap``). A ``setting`` is the only one that counts, as a task.
    The figure is divided by ``unit``, or, ``relative``, by the mean of the baseline ``sinusoidal``
    of that setting. ``digits`` are decimal places of the paper's figures and of differences.
    """

    sets: Sequence[str]
    metric: str
    setting: Optional[str] = None
    unit: float = 1
    relative: bool = False
    digits: int = 2
    our_digits: int = 2


def _fine_tuned(task: str, sets: Sequence[str], metric: str) -> Measure:
    return Measure(sets, metric, setting=task, digits=1)


# by task, the subset and metric that choose a learning rate: English development data
CHOICES: Dict[str, Tuple[str, str]] = {
    **{name: ("valid", task.best) for name, task in TASKS.items()},
    "XNLI": ("valid-en", "accuracy"),
    "SQuAD": ("valid", "f1"),
}
_MNLI = {"MNLI-m": "valid", "MNLI-mm": "valid1"}
FINE_TUNING: Dict[str, Measure] = {
    **{
        figure: _fine_tuned(name, (subset,), task.best)
        for name, task in TASKS.items()
        for figure, subset in (_MNLI if name == "MNLI" else {name: "valid"}).items()
    },
    "XNLI": _fine_tuned("XNLI", BENCHMARKS["XNLI"].splits(), "accuracy"),
    **{
        f"{name} {short}": _fine_tuned("SQuAD", BENCHMARKS[name].splits(), metric)
        for name in ("XQuAD", "MLQA", "TyDiQA-GoldP")
        for short, metric in (("F1", "f1"), ("EM", "exact_match"))
    },
}


def best_learning_rate(figures: Mapping[str, Sequence[float]], sign: int = 1) -> str:
    """Return the learning rate whose median over seeds is best; of equals the smallest.

    Args:
        figures: of every seed, by learning rate.
        sign: 1 if higher figures are better, -1 if lower ones.
    """
    rates = sorted(figures, key=_as_number)
    return max(rates, key=lambda rate: sign * statistics.median(figures[rate]))


def _as_number(rate: str) -> Tuple[float, str]:
    """Return the order of a learning rate, which a note may have in words."""
    try:
        return float(rate), rate
    except ValueError:
        return math.inf, rate


class PaperRow(NamedTuple):
    """A row as printed.

    ``options`` are the ways to write its encoding on our command line; a value may be a pattern,
    ``*``; a row without them is not trained here. ``figures`` holds None where the paper has none,
    ``average`` its own mean of a row.
    Translation: ``setting`` (None: any), and the number of ``seeds`` of the paper.
    """

    labels: List[str]
    options: List[str]
    figures: List[Optional[float]]
    average: Optional[float] = None
    setting: Optional[str] = None
    seeds: int = 1

    def has(self, setting: Optional[str], options: str) -> bool:
        """Return whether a setting and an encoding with its options belong here."""
        encoding, values = parse_options(options)
        parsed = (parse_options(row_options) for row_options in self.options)
        return self.setting in (None, setting) and any(
            encoding == name
            and values.keys() == patterns.keys()
            and all(fnmatchcase(values[flag], value) for flag, value in patterns.items())
            for name, patterns in parsed
        )


class PaperTable(NamedTuple):
    """A table of a paper; ``columns`` has the names of the figures in each printed column.

    ``measures`` says by figure how it is computed from results, in the order of
    :attr:`PaperRow.figures`. Translation: of several rows of ours that belong to one of the paper,
    only that with the highest ``best`` (a figure) is compared with it, if given; ``settings`` are
    those of its trainings, with the updates that the paper made (None: it counts epochs, or does
    not tell).
    """

    paper: str
    table: str
    title: str
    labels: List[str]
    columns: Dict[str, List[str]]
    rows: List[PaperRow]
    measures: Dict[str, Measure]
    notes: Sequence[str] = ()
    best: Optional[str] = None
    settings: Mapping[str, Optional[int]] = {}

    @property
    def fine_tuning(self) -> bool:
        """Whether it is a table of fine-tuning, not of translation."""
        return not self.settings


def names(translation: bool = False) -> List[str]:
    """Return the tables of fine-tuning, or of translation: ``shape-2`` is SHAPE's Table 2."""
    tables = [path.stem.rpartition("-") for path in FOLDER.glob("*.json")]
    ordered = sorted((paper, int(number)) for paper, _, number in tables)
    ordered_names = [f"{paper}-{number}" for paper, number in ordered]
    return [name for name in ordered_names if load(name).fine_tuning != translation]


def load(name: str) -> PaperTable:
    """Return a paper's table by its name, see :func:`names`."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["rows"] = [PaperRow(**row) for row in content["rows"]]
    if "measures" in content:
        measures = {figure: Measure(**facts) for figure, facts in content["measures"].items()}
        content.update(measures=measures, columns={figure: [figure] for figure in measures})
    else:
        figures = [figure for column in content["columns"].values() for figure in column]
        content["measures"] = {figure: FINE_TUNING[figure] for figure in figures}
    return PaperTable(**content)


def parse_options(options: str) -> Tuple[str, Dict[str, str]]:
    """Return an encoding and its options by flag: ``''`` for one without value, numbers as such."""
    encoding, *words = options.split() or [""]
    values: Dict[str, str] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            values[flag] = ""
            continue
        try:
            values[flag] = repr(float(word))
        except ValueError:
            values[flag] = word
    if not encoding or "" in values:
        raise UsageError(f"expected `encoding [--option [value]…]`, not {options[:80]!r}")
    return encoding, values
