"""Is a model above chance: better than with the references of other sentences?"""

from typing import Optional, Tuple

import numpy as np

from fairseq_posenc.tools.scores.intervals import bootstrap, drawn_score, interval
from fairseq_posenc.tools.scores.metrics import corpus_score
from fairseq_posenc.tools.scores.result import RoundTripScore
from fairseq_posenc.tools.scores.scorer import Scorer, Statistics
from fairseq_posenc.tools.scores.texts import TestSet

# in BLEU: a model that is less above chance has learned nothing
_LEAST = 1.0


def chance(
    texts: TestSet, scorer: Scorer, statistics: Statistics, round_trip: Optional[RoundTripScore]
) -> Tuple[Optional[float], Optional[bool]]:
    """Return sacreBLEU by chance, and whether the hypotheses are above it.

    By chance is with each reference given to another hypothesis, in a fixed order. They are above
    it where the difference is 1 or more, and the interval of its paired bootstrap leaves out 0;
    None where the references themselves would not be above it, as of a single sentence or very
    short ones.
    """
    count = len(texts)
    if count < 2:
        return None, None
    order = np.random.RandomState(1).permutation(count)
    sentence_of = dict(zip(order.tolist(), np.roll(order, 1).tolist()))
    name = "sacrebleu"
    references = [texts.reference[sentence_of[i]] for i in range(count)]
    more = [[lines[sentence_of[i]] for i in range(count)] for lines in texts.more_references]
    shuffled = TestSet(texts.hypothesis, references, [], [], more_references=more)
    by_chance = scorer.statistics(shuffled, [name])[name]
    pair = statistics[name], by_chance
    scores = [corpus_score(name, rows.sum(axis=0)) for rows in pair]
    best = (
        round_trip.figures if round_trip else scorer.plain_scores(texts.reference, texts.reference)
    )[name]
    # whoever gets what the references get is not told that it has learned nothing
    if scores[0] >= best - _LEAST / 2 or best - scores[1] < _LEAST:
        return scores[1], True if scores[0] - scores[1] >= _LEAST else None
    own, by_luck = bootstrap([drawn_score(name, rows) for rows in pair], count)
    return scores[1], scores[0] - scores[1] >= _LEAST and bool(interval(own - by_luck)[0] > 0)
