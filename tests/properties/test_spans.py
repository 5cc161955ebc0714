"""Choice of spans against a search over all of them."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.metrics.spans import best_spans, best_windows

NONE = float("-inf")
# few values, so that many are equal
scores = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([NONE, float("nan"), 1e4]))


@st.composite
def windows(draw):
    """Scores of starts and ends, which tokens are the context's, and where spans may begin."""
    length, count = draw(st.integers(1, 7)), draw(st.integers(1, 3))

    def rows(values):
        row = st.lists(values, min_size=length, max_size=length)
        return draw(st.lists(row, min_size=count, max_size=count))

    answerable, beginnings = rows(st.booleans()), rows(st.booleans())
    beginnings = [[a and b for a, b in zip(*both)] for both in zip(answerable, beginnings)]
    return rows(scores), rows(scores), answerable, beginnings


def known(score):
    return NONE if score != score else score


def search(starts, ends, answerable, beginnings, max_length, allowed_starts, allowed_ends):
    """The score of the best span among the allowed positions."""
    best = NONE
    for first in allowed_starts:
        for last in allowed_ends:
            if beginnings[first] and answerable[last] and first <= last < first + max_length:
                best = max(best, known(starts[first]) + known(ends[last]))
    return best


@given(found=windows(), max_length=st.integers(1, 8))
def test_no_span_has_a_higher_score_than_the_one_that_is_chosen(found, max_length):
    logits = torch.tensor([found[0], found[1]]).permute(1, 2, 0)
    answerable, beginnings = torch.tensor(found[2]), torch.tensor(found[3])
    spans = best_spans(logits, answerable, beginnings, max_length, n_best=7)
    for row, (starts, ends, possible, begins) in enumerate(zip(*found)):
        everywhere = range(len(starts))
        best = search(starts, ends, possible, begins, max_length, everywhere, everywhere)
        assert spans.scores[row].item() == best
        if best != NONE:
            first, last = spans.starts[row].item(), spans.ends[row].item()
            assert begins[first] and possible[last] and first <= last < first + max_length
            assert starts[first] + ends[last] == best


@given(
    data=st.data(),
    max_length=st.integers(1, 8),
    n_best=st.integers(1, 4),
    length=st.integers(1, 7),
)
def test_of_the_best_starts_and_ends_if_they_make_a_span(data, max_length, n_best, length):
    # all different, so that it is clear which are the best
    starts, ends = (data.draw(st.permutations(range(length))) for _ in range(2))
    logits = torch.tensor([starts, ends]).float().t().unsqueeze(0)
    everything = torch.ones(1, length, dtype=torch.bool)
    spans = best_spans(logits, everything, everything, max_length, n_best)
    everywhere = range(length)
    few = [sorted(everywhere, key=lambda i: -side[i])[:n_best] for side in (starts, ends)]
    yes = [True] * length
    best = search(starts, ends, yes, yes, max_length, *few)
    if best == NONE:
        best = search(starts, ends, yes, yes, max_length, everywhere, everywhere)
    assert spans.scores.item() == best


@given(
    found=st.lists(
        st.tuples(st.integers(0, 3), st.tuples(st.integers(), st.integers(), scores)), max_size=9
    )
)
def test_a_question_is_answered_by_the_first_of_its_best_windows(found):
    best = best_windows(found)
    for question in range(4):
        usable = [span for q, span in found if q == question and span[2] > NONE]
        if not usable:
            assert question not in best
            continue
        top = max(span[2] for span in usable)
        first = next(span for span in usable if span[2] == top)
        assert best[question] == first[:2]


@given(found=windows(), order=st.randoms(use_true_random=False))
def test_the_order_of_windows_changes_no_span(found, order):
    numbers = list(range(len(found[0])))
    order.shuffle(numbers)
    results = []
    for rows in (list(range(len(numbers))), numbers):
        starts, ends, answerable, beginnings = ([part[i] for i in rows] for part in found)
        logits = torch.tensor([starts, ends]).permute(1, 2, 0)
        spans = best_spans(logits, torch.tensor(answerable), torch.tensor(beginnings))
        results.append([list(span) for span in zip(*(part.tolist() for part in spans))])
    assert results[1] == [results[0][i] for i in numbers]
