"""Results of ``posenc score``, read by name and seed, and whether they can be compared."""

import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.json_files import Each, Maybe, OrNull, read_shaped
from fairseq_posenc.tools.scores.bleu import SEGMENTS, WIDTHS, source_of, title_of
from fairseq_posenc.tools.scores.lengths import Bin, length_label
from fairseq_posenc.tools.tables.grid import FIGURES, without_version

# what tables read of the result of posenc score
_ALL = {"sentences": int, "within": Maybe(int), **FIGURES}
_TEXTS = dict.fromkeys(("source", "reference", "hypothesis"), Maybe([str]))
_SCORE = {
    "all": {**_ALL, "chance": Maybe(float)},
    "by_length": OrNull(
        {
            "of": str,
            "unit": str,
            "bins": [{"name": str, "longer_than": float, "up_to": OrNull(float), **_ALL}],
        }
    ),
    "signatures": Each(str),
    "sentences": Maybe({"length": [int], "statistics": Each([[float]]), **_TEXTS}),
    "ceiling": Maybe({"figures": Each(float), "with_unknown": Maybe(float)}),
    "longest_trained": Maybe({"source": int, "reference": int}),
    "language": Maybe(str),
    "test_set": Maybe({"source": Maybe(str), "reference": str}),
    "notes": Maybe(Each(str)),
    "command": Maybe([str]),
    "versions": Maybe(Each(str)),
}

_ALL_RIGHT = 99.99  # sacreBLEU

Score = Dict[str, Any]
Runs = Dict[str, List[Score]]


def read_runs(arguments: Sequence[str], test: Optional[str] = None) -> Runs:
    """Read results by name, of ``score_cell`` those of a test set; several of a name are seeds.

    Raises:
        UsageError: a file that is missing or not from ``posenc score --output`` (``score_cell``).
    """
    runs: Runs = {}
    places: Dict[Any, str] = {}
    shape = {"tests": {test: _SCORE}, "notes": _SCORE["notes"]} if test else _SCORE
    for name, path in map(named_path, arguments):
        found = read_shaped(path, shape, "score_cell" if test else "posenc score --output")
        score = {**found["tests"][test], "notes": found.get("notes")} if test else found
        _check_new(places, name, path, score)
        runs.setdefault(name, []).append(score)
    return runs


def _check_new(places: Dict[Any, str], name: str, path: str, score: Score) -> None:
    """Raise :class:`UsageError` if a training is counted twice.

    It is if a name has a seed twice, or two results have the same outputs. Two models may well
    agree where all is right, or where they have learned nothing: all outputs are alike, or get
    no more than by chance.

    Args:
        places: where seeds and outputs were found, to be completed.
    """
    sentences = score.get("sentences") or {}
    statistics = sentences.get("statistics") or {}
    outputs: List[Any] = sentences.get("hypothesis") or next(iter(statistics.values()), [])
    facts: Dict[Any, str] = {}
    seed, is_right = seed_of(score), (score["all"].get("sacrebleu") or 0) > _ALL_RIGHT
    if seed:
        facts["seed", name, seed] = f"seed {seed} of {name}"
    learned = score["all"].get("above_chance") is not False
    if len({*map(str, outputs)}) > 1 and learned and not is_right:
        facts["outputs", str(outputs)] = "the same outputs"
    for key, what in facts.items():
        if key in places:
            raise UsageError(f"{path} has {what}, as {places[key]}: give each training once")
        places[key] = path


def named_path(argument: str) -> Tuple[str, str]:
    """Return name and path of ``NAME=path``, or of a path, whose folder gives the name.

    A folder ``seed<n>`` leaves it to the one above.
    """
    name, sign, path = argument.partition("=")
    if sign and "/" not in name:
        return printable(name), path
    folder = Path(argument).resolve().parent
    folder = folder.parent if re.fullmatch(r"seed\d+", folder.name) else folder
    return printable(folder.name), argument


def conditions(name: str, score: Score, metric: str) -> Dict[str, Any]:
    """Return what must be alike in results that are compared."""
    if not score["by_length"]:
        raise UsageError(f"{name} has no bins: score it with --bins or --percentiles")
    stored = source_of(metric)
    if stored not in score["signatures"]:
        known = ", ".join(score["signatures"])
        raise UsageError(f"{name} has no {title_of(stored)}, only {known}; score it again")
    bins = score["by_length"]["bins"]
    test_set = score.get("test_set") or {}
    return {
        "lengths": length_label(score),
        "bins": ", ".join(f"{part['name']} up to {part['up_to']}" for part in bins),
        "sentences per bin": [part["sentences"] for part in bins],
        "signatures": without_version(score["signatures"][stored]),
        "target languages": score.get("language"),
        "references": test_set.get("reference"),
        "sources": test_set.get("source"),
        "longest sentences trained on": score.get("longest_trained"),
        "sentences within the trained length": [part.get("within") for part in bins],
    }


def check_sentences(name: str, score: Score, metric: str) -> None:
    """Raise :class:`UsageError` unless the statistics of the sentences are there, and whole."""
    sentences, metric = score.get("sentences"), source_of(metric)
    if not sentences or metric not in sentences["statistics"]:
        raise UsageError(
            f"{name} has no statistics of its sentences, from which intervals are drawn: an older "
            "version scored it; score it again (in a recipe: delete score.json, and start it again)"
        )
    expected = [part["sentences"] for part in (score["all"], *score["by_length"]["bins"])]
    texts = [sentences[side] for side in _TEXTS if sentences.get(side) is not None]
    counts = {len(lines) for lines in (*sentences["statistics"].values(), *texts)}
    whole = all(_are_whole(name, rows) for name, rows in sentences["statistics"].items())
    by_bin = [*map(len, members_by_column(score))]
    if not whole or counts != {expected[0]} or by_bin != expected:
        raise UsageError(
            f"{name} has statistics of other sentences than its figures; score it again"
        )


def _are_whole(metric: str, rows: Sequence[Sequence[float]]) -> bool:
    """Return whether all statistics of a metric are numbers that it can have."""
    width = WIDTHS.get(metric, SEGMENTS)
    # scores of sentences from a file may be negative
    lowest = 0 if metric in WIDTHS else -1e9
    return all(len(row) == width and lowest <= min(row) <= max(row) < 1e9 for row in rows)


def members_by_column(score: Score) -> List[List[int]]:
    """Return the sentences of the whole test set, and of each bin."""
    counted = score["sentences"]["length"]
    bins = score["by_length"]["bins"]
    edges = [Bin(part["name"], part["longer_than"], part["up_to"]) for part in bins]
    return [list(range(len(counted))), *(part.members(counted) for part in edges)]


def seed_of(score: Score) -> str:
    """Return the seed that a result notes, or an empty text."""
    return (score.get("notes") or {}).get("seed", "")
