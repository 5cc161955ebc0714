"""What translations look like: empty, too short and too long ones, and those that differ most."""

import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import corpus_score
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.tables.intervals import paired_seeds
from fairseq_posenc.tools.tables.runs import Runs

SHORT, LONG = 0.5, 2.0
ABOUT_LENGTHS = (
    f"Outputs that are empty, shorter than {SHORT:g} times or longer than {LONG:g} times their "
    "reference in tokens, in percent of the sentences (means over seeds)."
)
_EACH = 10  # sentences shown of each range
_LONGEST_TEXT = 600


class Differing(NamedTuple):
    """A sentence that two systems translate unlike, with chrF of each translation."""

    number: int
    source: str
    reference: str
    first: str
    second: str
    first_score: float
    second_score: float


def length_faults(runs: Runs, columns: Sequence[str]) -> List[List[str]]:
    """Return a table, header first: per run and range `empty, short, long` in percent."""
    lines = [["", *columns]]
    for name, seeds in runs.items():
        cells = []
        for members in seeds[0].members():
            if not members:
                cells.append("-")
                continue
            shares = zip(*(_faults(score, members) for score in seeds))
            cells.append(", ".join(f"{statistics.mean(share):.1f}" for share in shares))
        lines.append([name, *cells])
    return lines


def _faults(score: Score, members: Sequence[int]) -> Tuple[float, float, float]:
    """Return the percentages of empty, short and long outputs."""
    rows = score.texts.statistics["tokenised_bleu"]
    lengths = [(rows[i][0], rows[i][1]) for i in members]
    empty = sum(not length for length, _ in lengths)
    short = sum(0 < length < SHORT * reference_length for length, reference_length in lengths)
    long = sum(length > LONG * reference_length for length, reference_length in lengths)
    return tuple(100 * count / len(members) for count in (empty, short, long))  # type: ignore


def differing(first: Sequence[Score], second: Sequence[Score]) -> Dict[str, List[Differing]]:
    """Return, by range, the sentences whose translations differ most in chrF, of a seed of both."""
    pair = next(iter(common_seeds(first, second).values()), (first[0], second[0]))
    texts, more_texts = (score.texts for score in pair)
    has_chrf = "chrf" in texts.statistics.keys() & more_texts.statistics
    if not (texts.hypothesis and more_texts.hypothesis and has_chrf):
        raise UsageError("an older version scored, without translations; score again")
    scores = [
        [corpus_score("chrf", row) for row in own.statistics["chrf"]] for own in (texts, more_texts)
    ]
    sentences: Dict[str, List[Differing]] = {}
    for part, members in zip(pair[0].bins, pair[0].members()[1:]):
        # of equal differences the first
        order = sorted(members, key=lambda i: -abs(scores[0][i] - scores[1][i]))[:_EACH]
        sentences[part.name] = [
            Differing(
                number=i + 1,
                source=_cut(texts.source[i]) if texts.source else "",
                reference=_cut(texts.reference[i]) if texts.reference else "",
                first=_cut(texts.hypothesis[i]),
                second=_cut(more_texts.hypothesis[i]),
                first_score=scores[0][i],
                second_score=scores[1][i],
            )
            for i in order
            if texts.hypothesis[i] != more_texts.hypothesis[i]
        ]
    return sentences


def common_seeds(first: Sequence[Score], second: Sequence[Score]) -> Dict[str, Tuple[Any, Any]]:
    """Return the results of each seed that both have, see :func:`.estimates.paired_seeds`."""
    pairs = paired_seeds([score.seed for score in first], [score.seed for score in second])
    return {
        first[at].seed or str(number): (first[at], second[to])
        for number, (at, to) in enumerate(pairs, 1)
    }


def best_of_others(means: Dict[str, Optional[float]], sign: int) -> Optional[str]:
    """Return the run, other than the first, with the best mean of the whole test set."""
    candidates = {name: mean for name, mean in list(means.items())[1:] if mean is not None}
    return max(candidates, key=lambda name: sign * candidates[name], default=None)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
