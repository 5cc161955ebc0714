"""The tables of papers as printed: ``papers/<paper>-<number>.json``.

Rows of ours find their place in them by their options, not by their labels.
"""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError

FOLDER = Path(__file__).parent / "papers"


class PaperRow(NamedTuple):
    """A row as printed.

    ``options`` are the ways to write its encoding on our command line; a value may be a pattern,
    ``*``. ``figures`` holds None where the paper has none, ``average`` its own mean of a row.
    Translation: ``setting`` (None: any), the number of ``seeds`` of the paper, and the rows of the
    recipe that ``train`` it (by default the first of ``options``).
    """

    labels: List[str]
    options: List[str]
    figures: List[Optional[float]]
    average: Optional[float] = None
    setting: Optional[str] = None
    seeds: int = 1
    train: Sequence[str] = ()

    def has(self, setting: Optional[str], options: str) -> bool:
        """Return whether a setting and an encoding with its options belong here."""
        same = self.setting is None or setting == self.setting
        return same and any(_matches(way, options) for way in self.options)


class Digits(NamedTuple):
    """Decimal places of the paper's figures (and of differences), and of ours."""

    paper: int
    ours: int


class PaperTable(NamedTuple):
    """A table of a paper; ``columns`` has the names of the figures in each printed column.

    Translation: ``measures`` says by figure how it is computed from results; of several rows of
    ours that belong to one of the paper, only that with the highest ``best`` (a figure) is compared
    with it, if given; ``recipe`` says what trains the table, and what that took the authors.
    """

    paper: str
    table: str
    title: str
    labels: List[str]
    columns: Dict[str, List[str]]
    rows: List[PaperRow]
    notes: Sequence[str] = ()
    measures: Dict[str, Dict[str, Any]] = {}
    best: Optional[str] = None
    recipe: Dict[str, Any] = {}

    def figures(self) -> List[str]:
        """Return the names of all figures, in the order of :attr:`PaperRow.figures`."""
        return [name for column in self.columns.values() for name in column]

    def digits(self, name: str) -> Digits:
        """Return how a figure is printed."""
        if not self.measures:
            return Digits(1, 2)
        digits = self.measures[name].get("digits", 2)
        return Digits(digits, self.measures[name].get("our_digits", digits))


def names(translation: bool = False) -> List[str]:
    """Return the tables of fine-tuning, or of translation: ``shape-2`` is SHAPE's Table 2."""
    tables = [path.stem.rpartition("-") for path in FOLDER.glob("*.json")]
    ordered = [f"{paper}-{number}" for paper, _, number in sorted(tables, key=_numerically)]
    return [name for name in ordered if bool(load(name).measures) == translation]


def load(name: str) -> PaperTable:
    """Return a paper's table by its name, see :func:`names`."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["rows"] = [PaperRow(**row) for row in content["rows"]]
    if "measures" in content:
        content.setdefault("columns", {name: [name] for name in content["measures"]})
    if isinstance(content.get("recipe"), str):
        # another table of the paper is of the same trainings
        content["recipe"] = load(content["recipe"]).recipe
    return PaperTable(**content)


def parse_options(options: str) -> Tuple[str, Dict[str, str]]:
    """Return an encoding and its options by flag: ``''`` for one without value, numbers as such.

    Raises:
        UsageError: there is no encoding, or a value where an option should be.
    """
    encoding, *words = options.split() or [""]
    found: Dict[str, str] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            found[flag] = ""
        else:
            found[flag] = _normal(word)
    if not encoding or "" in found:
        raise UsageError(f"expected `encoding [--option [value]…]`, not {options[:80]!r}")
    return encoding, found


def _matches(pattern: str, options: str) -> bool:
    (encoding, wanted), (ours, found) = parse_options(pattern), parse_options(options)
    return (
        encoding == ours
        and wanted.keys() == found.keys()
        and all(fnmatchcase(found[flag], value) for flag, value in wanted.items())
    )


def _normal(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return value


def _numerically(parts: Tuple[str, str, str]) -> Tuple[str, int]:
    return parts[0], int(parts[2])
