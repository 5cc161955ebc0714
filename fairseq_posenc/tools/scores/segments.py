"""Scores of single sentences from files: of COMET, MetricX, people, and of the references.

A test set has their mean. Of its references it has bits per token, from what ``fairseq-generate
--score-reference`` prints. The model is given the reference's tokens before each, so that, unlike
BLEU, this does not see where its own translations end. Bits of models with other subwords do not
compare.
"""

import json
import math
import re
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines, stream_lines
from fairseq_posenc.json_files import Each, parse_json, schema_error
from fairseq_posenc.tools.scores.generate_output import compare_models
from fairseq_posenc.tools.scores.metrics import METRICS
from fairseq_posenc.tools.scores.reference_check import check_reference
from fairseq_posenc.tools.scores.texts import TestSet

SIGNATURE = "mean of the scores of sentences"
BITS = "bits"
BITS_SIGNATURE = "-log2 p of the references' subwords and ends of sentence, by their number"
# fields of COMET's and MetricX's output
_SCORES = ("COMET", "prediction", "score")
_TEXTS = {
    "translations": ("mt", "hypothesis", "translation"),
    "references": ("ref", "reference"),
}
_LINE = re.compile(r"([THP])-([0-9]{1,15})\t(.*)", re.DOTALL)
_COMET = Each([{"mt": str, "COMET": float}])


def read_segment_scores(name: str, path: str, texts: TestSet) -> np.ndarray:
    """Return the statistics of another metric, ``(sentences, 2)``: the score, and 1.

    Args:
        path: a number a line, what ``comet-score --to_json`` writes of one system, or an object of
            JSON a line, as MetricX writes them.
        texts: the test set; where the file has its texts, these are compared.
    """
    if not re.fullmatch(r"[A-Za-z][\w.+-]{0,39}", name):
        raise UsageError(f"--segment-scores: {name!r} is not a name such as COMET")
    if name in METRICS:
        raise UsageError(f"--segment-scores: {name} is computed here; give another name")
    lines = read_lines(path)
    hypotheses = texts.hypothesis
    if lines and _is_json(lines[0]):
        segments = [parse_json(line, f"{path}, line {at}") for at, line in enumerate(lines, 1)]
        if len(segments) == 1 and not schema_error(segments[0], _COMET):
            segments = _of_one_system(segments[0], path)
        scores = _of_segments(name, segments, path, texts)
    elif lines and lines[0].lstrip().startswith("{"):
        segments = _of_one_system(parse_json("\n".join(lines), path), path)
        scores = _of_segments(name, segments, path, texts)
    else:
        scores = [_number(line, f"{path}, line {at}") for at, line in enumerate(lines, 1)]
    if len(scores) != len(hypotheses):
        raise UsageError(
            f"{path} has {len(scores)} scores, but there are {len(hypotheses)} sentences: it must "
            "be of this test set, a score for each sentence"
        )
    return np.array([[score, 1.0] for score in scores])


def _is_json(line: str) -> bool:
    """Return whether a line is an object by itself."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _of_one_system(content: Any, path: str) -> List[Any]:
    misfit = schema_error(content, _COMET)
    if misfit or len(content) != 1:
        reason = misfit or f"it has {len(content)} systems, and one is wanted"
        raise UsageError(f"{path} is not from comet-score --to_json of one system: {reason}")
    [segments] = content.values()
    return segments


def _of_segments(name: str, segments: Sequence[Any], path: str, texts: TestSet) -> List[float]:
    """Return the scores of objects, whose texts must be those of the test set."""
    scores = []
    references = [texts.reference, *texts.more_references]
    for at, segment in enumerate(segments, 1):
        location = f"{path}, sentence {at}"
        if not isinstance(segment, dict):
            raise UsageError(f"{location}: expected an object of JSON")
        names = dict.fromkeys((name, *_SCORES))
        fields = [field for field in names if _is_number(segment.get(field))]
        if not fields:
            raise UsageError(f"{location} has no number called {' or '.join(names)}")
        scores.append(float(segment[fields[0]]))
        if at > len(texts):
            continue
        own = {"translations": [texts.hypothesis[at - 1]]}
        own["references"] = [lines[at - 1] for lines in references]
        for side, lines in own.items():
            scored = next((segment[key] for key in _TEXTS[side] if segment.get(key)), None)
            if isinstance(scored, str) and scored.split() not in [line.split() for line in lines]:
                raise UsageError(
                    f"{path} scores other {side}: sentence {at} is {scored[:60]!r} there, and "
                    f"{lines[0][:60]!r} here"
                )
    return scores


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9


def _number(line: str, location: str) -> float:
    try:
        value = parse_number(line.strip())
    except ValueError:
        value = math.nan
    if not abs(value) < 1e9:
        raise UsageError(f"{location}: expected a number, not {line[:40]!r}")
    return value


def read_reference_bits(path: str, texts: TestSet, generated: Optional[str] = None) -> np.ndarray:
    """Return the statistics of bits per token, ``(sentences, 2)``: bits, and tokens.

    Args:
        path: what ``fairseq-generate --score-reference`` printed.
        texts: the test set.
        generated: what it printed of the translations, where it did.
    """
    lines: Dict[str, Dict[int, str]] = {letter: {} for letter in "THP"}
    for line in stream_lines(path):
        match = _LINE.fullmatch(line)
        if match:
            lines[match[1]][int(match[2])] = match[3]
    hypotheses = {number: text.partition("\t")[2] for number, text in lines["H"].items()}
    # fairseq marks the unknown words of T-lines alone
    targets = {number: text.replace("<<unk>>", "<unk>") for number, text in lines["T"].items()}
    if not lines["P"] or targets != hypotheses:
        raise UsageError(
            f"{path} is not from fairseq-generate --score-reference: its hypotheses are not the "
            "references"
        )
    if sorted(lines["P"]) != [*range(len(texts))]:
        raise UsageError(
            f"{path} has scores of {len(lines['P'])} references, but there are {len(texts)} "
            "sentences: it must be of this test set; pass --required-batch-size-multiple 1 to "
            "fairseq-generate"
        )
    scored = [lines["T"][number] for number in range(len(texts))]
    check_reference(path, texts.reference, scored, None, [], texts.languages)
    texts.remarks += compare_models(generated, path) if generated else []
    return np.array([_bits(path, *line) for line in sorted(lines["P"].items())])


def _bits(path: str, number: int, scores: str) -> List[float]:
    try:
        values = [parse_number(word) for word in scores.split()]
    except ValueError:
        values = [float("nan")]
    if not values or not all(abs(value) < 1e9 for value in values):
        raise UsageError(f"{path}: P-{number} has no scores, or one that is no number")
    return [round(-sum(values), 4), float(len(values))]
