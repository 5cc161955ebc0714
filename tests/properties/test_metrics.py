"""Scores against formulas written out, and parts of a test set that make up the whole."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.metrics import glue
from fairseq_posenc.metrics.answers import Scorer, f1, normalise
from fairseq_posenc.tools.results.lengths import by_edges, by_percentiles

# capitals, an article, punctuation and white space, so that normalisation has something to do
answers = st.lists(
    st.sampled_from(["the", "Cat", "cat", "a", "dog.", "(dog)", "–", "\t", "ran"]), max_size=6
).map(" ".join)
labels = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30)
# whole numbers and quarters: many ties, no rounding
values = st.integers(-20, 20).map(lambda n: n / 4)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=20)


def overlap(prediction, gold):
    """F1 of words, by crossing out one by one those that both have."""
    left, common = gold.split(), 0
    for word in prediction.split():
        if word in left:
            left.remove(word)
            common += 1
    total = len(prediction.split()) + len(gold.split())
    return 2 * common / total if total else 0.0


@given(prediction=answers, gold=answers)
def test_f1_counts_words_that_both_have(prediction, gold):
    both = normalise(prediction), normalise(gold)
    assert f1(*both) == pytest.approx(overlap(*both), abs=1e-12)
    assert f1(*both) == f1(*both[::-1])
    assert all(normalise(text) == text for text in both)


@given(
    questions=st.lists(st.tuples(answers, st.lists(answers, min_size=1, max_size=3)), min_size=1),
    unanswered=st.integers(0, 2),
)
def test_scores_of_answers_are_means_of_the_best_gold_answer(questions, unanswered):
    golds = {str(n): found for n, (_, found) in enumerate(questions)}
    given_ = {str(n): answer for n, (answer, _) in enumerate(questions) if n >= unanswered}
    total = exact = 0.0
    for name, answer in given_.items():
        text, normal = normalise(answer), [normalise(gold) for gold in golds[name]]
        total += max(overlap(text, gold) for gold in normal)
        exact += any(text == gold for gold in normal)
    found = Scorer(golds, "squad", "en").score(given_)
    assert found["f1"] == pytest.approx(100 * total / len(golds), abs=1e-9)
    assert found["exact_match"] == pytest.approx(100 * exact / len(golds), abs=1e-9)


def counted(rows):
    """The numbers of true and false positives and negatives of (label, prediction)."""
    count = Counter(rows)
    return count[1, 1], count[0, 1], count[0, 0], count[1, 0]


@given(rows=labels)
def test_scores_of_labels_follow_from_the_four_counts(rows):
    hits, alarms, rejections, misses = counted(rows)
    spread = math.sqrt(
        (hits + alarms) * (hits + misses) * (rejections + alarms) * (rejections + misses)
    )
    expected = {
        "accuracy": (hits + rejections) / len(rows),
        "f1": 2 * hits / max(2 * hits + alarms + misses, 1),
        "matthews": (hits * rejections - alarms * misses) / spread if spread else 0.0,
    }
    expected["accuracy_and_f1"] = (expected["accuracy"] + expected["f1"]) / 2
    found = glue.score(expected, *zip(*rows))
    assert found == {name: pytest.approx(100 * v, abs=1e-9) for name, v in expected.items()}


def correlation(one, other):
    """Pearson's correlation, 0 where a side does not vary."""
    one, other = ([v - sum(side) / len(side) for v in side] for side in (one, other))
    squares = sum(v * v for v in one) * sum(v * v for v in other)
    return sum(v * w for v, w in zip(one, other)) / math.sqrt(squares) if squares else 0.0


def ranks(side):
    """The mean of the places that each value takes among all."""
    return [sum(v < w for v in side) + (sum(v == w for v in side) + 1) / 2 for w in side]


@given(rows=pairs)
def test_correlations_are_those_of_values_and_of_ranks(rows):
    targets, predictions = (list(side) for side in zip(*rows))
    constant = len(set(targets)) == 1 or len(set(predictions)) == 1
    expected = {
        "pearson": 0.0 if constant else correlation(targets, predictions),
        "spearman": 0.0 if constant else correlation(ranks(targets), ranks(predictions)),
    }
    expected["pearson_and_spearman"] = sum(expected.values()) / 2
    found = glue.score(expected, targets, predictions)
    assert found == {name: pytest.approx(100 * v, abs=1e-6) for name, v in expected.items()}


@given(rows=labels, order=st.randoms(use_true_random=False))
def test_the_order_of_examples_changes_no_score(rows, order):
    mixed = list(rows)
    order.shuffle(mixed)
    first, second = (glue.score(glue.METRICS, *zip(*each)) for each in (rows, mixed))
    assert second == {name: pytest.approx(value, abs=1e-6) for name, value in first.items()}


@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    edges=st.sets(st.integers(1, 50), min_size=1, max_size=5),
    percentiles=st.booleans(),
)
def test_every_length_is_in_one_bin_and_bins_rise(lengths, edges, percentiles):
    bins = by_percentiles(lengths) if percentiles else by_edges(sorted(edges))
    members = [part.members(lengths) for part in bins]
    assert sorted(sum(members, [])) == list(range(len(lengths)))
    for lower, upper in zip(members, members[1:]):
        assert not (lower and upper) or max(lengths[i] for i in lower) < min(
            lengths[i] for i in upper
        )
    if not percentiles:
        tops = [*sorted(edges), math.inf]
        for part, top, bottom in zip(members, tops, [-1, *tops]):
            assert part == [i for i, length in enumerate(lengths) if bottom < length <= top]
