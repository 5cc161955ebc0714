"""Intervals against slow loops and scipy's, and for what they are meant to cover."""

import math
import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from scipy import stats

from fairseq_posenc.tools.scores import texts
from fairseq_posenc.tools.scores.intervals import (
    bootstrap,
    drawn_score,
    interval,
    t_interval,
    welch_interval,
)
from fairseq_posenc.tools.scores.metrics import metric_of
from fairseq_posenc.tools.scores.scorer import Scorer
from fairseq_posenc.tools.tables.intervals import paired_seeds

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
    summands = [statistics(model, references)[name] for model in models]
    assert all(one.shape == (12, metric_of(name).width) for one in summands)
    found = bootstrap([drawn_score(name, one) for one in summands], 12, 20, seed=3)
    draw = np.random.RandomState(3)
    for scores in found.T:
        chosen = draw.randint(12, size=12)
        drawn = [[references[i] for i in chosen]]
        expected = [metric.corpus_score([m[i] for i in chosen], drawn).score for m in models]
        assert scores == pytest.approx(expected, abs=1e-9)
    assert found.shape == (2, 20) and len(set(found[0])) == 20


def test_intervals_over_seeds_are_students_and_welchs():
    a, b = [30.1, 31.4, 29.0, 30.9], [28.0, 25.5, 29.9]
    assert t_interval(a) == pytest.approx(stats.t.interval(0.95, 3, np.mean(a), stats.sem(a)))
    seeds = np.var(b, ddof=1) / 3
    half = stats.t.ppf(0.975, 2 * (1 + 7 / seeds) ** 2) * math.sqrt(seeds + 7)
    assert t_interval(b, 7) == pytest.approx((np.mean(b) - half, np.mean(b) + half))
    # further degrees of freedom make no interval narrower
    assert t_interval(b, 0.7) == t_interval(b)
    # equal seeds: what is left is a normal distribution
    assert t_interval([5, 5], 0.01) == pytest.approx((5 - 0.195996, 5 + 0.195996))
    for bound in welch_interval(a, b):
        test = stats.ttest_ind(np.subtract(a, bound), b, equal_var=False)
        assert test.pvalue == pytest.approx(0.05)
    assert np.ptp(welch_interval(a, b, 7)) > np.ptp(welch_interval(a, b))
    assert welch_interval([1, 1], [2, 2]) == (-1, -1)


def test_seeds_are_paired_by_their_names_and_unnamed_ones_in_order():
    assert paired_seeds(["1", "2", "3"], ["3", "1"]) == [(0, 1), (2, 0)]
    assert paired_seeds(["", ""], ["", "", ""]) == [(0, 0), (1, 1)]
    assert paired_seeds(["1", ""], ["", "2"]) == [(1, 0)]


def test_a_single_training_tells_nothing_of_other_seeds():
    assert t_interval([3.0]) == welch_interval([3.0], [4.0]) == (-math.inf, math.inf)
    # its standard deviation is taken to be that of the other side, with its degrees of freedom
    several = [30.1, 31.4, 29.0]
    half = 4.30265 * math.sqrt(np.var(several, ddof=1) * (1 + 1 / 3))
    middle = 20 - np.mean(several)
    expected = pytest.approx((middle - half, middle + half), rel=1e-5)
    assert welch_interval([20.0], several) == expected


def test_intervals_cover_the_score_of_all_sentences():
    hypotheses, references = corpus(5, 0.3, count=4000)
    summands = statistics(hypotheses, references)["sacrebleu"]
    whole = BLEU().corpus_score(hypotheses, [references]).score
    parts = np.array_split(summands, 100)
    bounds = [interval(bootstrap([drawn_score("sacrebleu", part)], 40, 200)[0]) for part in parts]
    assert 86 <= sum(low <= whole <= high for low, high in bounds) <= 100
