import itertools

import pytest
import torch

from fairseq_posenc.metrics.spans import best_spans, best_windows

NONE = float("-inf")


def by_hand(logits, answerable, beginnings, max_length, n_best):
    """The best span of one window, as a loop over starts and ends."""
    length = len(logits)
    possible = [i for i in range(length) if answerable[i]]
    ranked = [sorted(possible, key=lambda i: -logits[i][side])[:n_best] for side in (0, 1)]
    found = [
        (logits[start][0] + logits[end][1], -start, -end)
        for start, end in itertools.product(*ranked)
        if beginnings[start] and 0 <= end - start < max_length
    ]
    if not found and n_best < length:
        return by_hand(logits, answerable, beginnings, max_length, length)
    score, start, end = max(found, default=(NONE, 0, 0))
    return -start, -end, score


@pytest.mark.parametrize("max_length", [1, 3, 30])
@pytest.mark.parametrize("n_best", [1, 3, 50])
def test_the_best_span_is_the_one_a_loop_finds(max_length, n_best):
    generator = torch.Generator().manual_seed(max_length + n_best)
    logits = torch.randn(40, 12, 2, generator=generator)
    answerable = torch.rand(40, 12, generator=generator) < 0.6
    beginnings = answerable & (torch.rand(40, 12, generator=generator) < 0.7)
    spans = best_spans(logits, answerable, beginnings, max_length, n_best)
    for row in range(40):
        start, end, score = by_hand(
            logits[row].tolist(), answerable[row], beginnings[row], max_length, n_best
        )
        assert spans.scores[row].item() == pytest.approx(score)
        if score != NONE:
            assert (spans.starts[row].item(), spans.ends[row].item()) == (start, end)


def test_a_window_without_a_possible_start_has_no_span():
    mask = torch.ones(1, 4, dtype=torch.bool)
    spans = best_spans(torch.zeros(1, 4, 2), mask, torch.zeros_like(mask))
    assert spans.scores.tolist() == [NONE]


def test_scores_that_are_no_numbers_are_never_chosen():
    logits = torch.zeros(1, 4, 2)
    logits[0, 1] = float("nan")
    mask = torch.ones(1, 4, dtype=torch.bool)
    spans = best_spans(logits, mask, mask, max_length=1)
    assert spans.scores.tolist() == [0.0] and spans.starts.tolist() != [1]


def test_half_precision_is_summed_in_single():
    logits = torch.tensor([[[2048.0, 0.0], [0.0, 1.0]]]).half()
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert best_spans(logits, mask, mask).scores.tolist() == [2049.0]


def test_the_best_window_answers_a_question():
    found = best_windows([(7, (1, 2, 0.5)), (8, (3, 3, NONE)), (7, (9, 9, 1.5)), (7, (4, 4, 1.5))])
    assert found == {7: (9, 9)}
