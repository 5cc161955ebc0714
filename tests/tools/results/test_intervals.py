"""Bootstrap intervals against slow loops, and for what they are meant to cover."""

import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from fairseq_posenc.tools.results import texts
from fairseq_posenc.tools.results.bleu import WIDTHS, Scorer
from fairseq_posenc.tools.results.intervals import bootstrap, interval

WORDS = "der die das Hund Katze Haus läuft schläft sieht heute , schnell .".split()


def corpus(seed, rate, count=12):
    draw = random.Random(1)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(3, 30))) for _ in range(count)]
    draw = random.Random(seed)
    worse = [
        " ".join("xyz" if draw.random() < rate else word for word in line.split())
        for line in references
    ]
    return worse, references


def statistics(hypotheses, references):
    return Scorer("de").statistics(texts.TestSet(hypotheses, references, hypotheses, references))


@pytest.mark.parametrize(("name", "metric"), [("sacrebleu", BLEU()), ("chrf", CHRF())])
def test_samples_are_those_of_slow_loops(name, metric):
    references = corpus(0, 0)[1]
    models = [corpus(seed, rate)[0] for seed, rate in ((1, 0.3), (2, 0.1))]
    summands = [[statistics(model, references)[name]] for model in models]
    assert all(one[0].shape == (12, WIDTHS[name]) for one in summands)
    found = bootstrap(name, summands, 20, seed=3)
    draw = np.random.RandomState(3)
    for scores in found.T:
        chosen = draw.randint(12, size=12)
        drawn = [[references[i] for i in chosen]]
        expected = [metric.corpus_score([m[i] for i in chosen], drawn).score for m in models]
        assert scores == pytest.approx(expected, abs=1e-9)
    assert found.shape == (2, 20) and len(set(found[0])) == 20


def test_seeds_are_drawn_too():
    references = corpus(0, 0)[1]
    good, bad = (statistics(corpus(1, rate)[0], references)["sacrebleu"] for rate in (0.05, 0.6))
    one, both = bootstrap("sacrebleu", [[good], [good, bad]], 200)
    # draws of sentences are equal: a sample of two seeds is good twice, bad twice or their mean
    assert (both == one).mean() == pytest.approx(0.25, abs=0.1)
    widths = [high - low for low, high in map(interval, (one, both))]
    assert widths[1] > 2 * widths[0]


def test_intervals_cover_the_score_of_all_sentences():
    hypotheses, references = corpus(5, 0.3, count=4000)
    summands = statistics(hypotheses, references)["sacrebleu"]
    whole = BLEU().corpus_score(hypotheses, [references]).score
    parts = np.array_split(summands, 100)
    bounds = [interval(bootstrap("sacrebleu", [[part]], 200)[0]) for part in parts]
    assert 86 <= sum(low <= whole <= high for low, high in bounds) <= 100
