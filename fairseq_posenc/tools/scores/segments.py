"""Scores of single sentences from elsewhere: COMET, MetricX, people; a test set has their mean."""

import math
import re
from typing import Any, List, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.json_files import Each, find_misfit, parse_json
from fairseq_posenc.tools.scores.bleu import DERIVED, METRICS

SIGNATURE = "mean of the scores of sentences"
_COMET = Each([{"mt": str, "COMET": float}])


def read_segment_scores(name: str, path: str, hypotheses: Sequence[str]) -> np.ndarray:
    """Return the statistics of another metric, ``(sentences, 2)``: the score, and 1.

    Args:
        name: of the metric.
        path: a number a line, or what ``comet-score --to_json`` writes of one system.
        hypotheses: the plain text of the sentences.

    Raises:
        UsageError: a name that is taken or odd, a file that is neither, or is of other sentences.
    """
    if not re.fullmatch(r"[A-Za-z][\w.+-]{0,39}", name):
        raise UsageError(f"--segment-scores: {name!r} is not a name such as COMET")
    if name in (*METRICS, *DERIVED):
        raise UsageError(f"--segment-scores: {name} is computed here; give another name")
    lines = read_lines(path)
    if lines and lines[0].lstrip().startswith("{"):
        scores = _of_comet(parse_json("\n".join(lines), path), path, hypotheses)
    else:
        scores = [_number(line, f"{path}, line {at}") for at, line in enumerate(lines, 1)]
    if len(scores) != len(hypotheses):
        raise UsageError(
            f"{path} has {len(scores)} scores, but there are {len(hypotheses)} sentences: it must "
            "be of this test set, a score for each sentence"
        )
    return np.array([[score, 1.0] for score in scores])


def _of_comet(found: Any, path: str, hypotheses: Sequence[str]) -> List[float]:
    misfit = find_misfit(found, _COMET)
    if misfit or len(found) != 1:
        what = misfit or f"it has {len(found)} systems, and one is wanted"
        raise UsageError(f"{path} is not from comet-score --to_json of one system: {what}")
    [segments] = found.values()
    for at, (segment, hypothesis) in enumerate(zip(segments, hypotheses), 1):
        if segment["mt"].split() != hypothesis.split():
            raise UsageError(
                f"{path} scores other translations: sentence {at} is {segment['mt'][:60]!r} there, "
                f"and {hypothesis[:60]!r} here"
            )
    return [segment["COMET"] for segment in segments]


def _number(line: str, place: str) -> float:
    try:
        value = parse_number(line.strip())
    except ValueError:
        value = math.nan
    if not abs(value) < 1e9:
        raise UsageError(f"{place}: expected a number, not {line[:40]!r}")
    return value
