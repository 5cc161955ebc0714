"""From the scores of starts and ends to the best span of every window, and of every question."""

from typing import Dict, Iterable, NamedTuple, Tuple

import torch
from torch import Tensor


class Spans(NamedTuple):
    """The best span of each window: its first and last position, and its score.

    All ``(windows,)``; a score of -inf says that a window has none.
    """

    starts: Tensor
    ends: Tensor
    scores: Tensor


def best_spans(
    logits: Tensor,
    answerable: Tensor,
    beginnings: Tensor,
    max_length: int = 30,
    n_best: int = 20,
) -> Spans:
    """Return the span with the highest sum of start and end score, for each window.

    As in BERT and XTREME: a span begins not after its end, has at most ``max_length`` tokens, and
    is made of the ``n_best`` best starts and ends of the window. Where these make no span, which
    leaves a question without an answer there, all starts and ends are tried.

    Args:
        logits: ``(windows, length, 2)``, scores as start and as end.
        answerable: ``(windows, length)``, True at the tokens of the context.
        beginnings: ``(windows, length)``, True where a span may begin: the tokens for which this
            is the window that shows most around them.
        max_length: of a span, in tokens.
        n_best: number of starts and of ends.
    """
    starts, ends = logits.detach().float().masked_fill(logits.isnan(), float("-inf")).unbind(-1)
    starts = starts.masked_fill(~answerable, float("-inf"))
    ends = ends.masked_fill(~answerable, float("-inf"))
    few = _best(_top(starts, n_best), _top(ends, n_best), beginnings, max_length)
    every = _best(starts, ends, beginnings, max_length)
    none = few.scores.isinf()
    return Spans(*(torch.where(none, b, a) for a, b in zip(few, every)))


def _top(scores: Tensor, count: int) -> Tensor:
    """Replace all but the highest ``count`` scores of each row by -inf."""
    best = scores.topk(min(count, scores.size(1)), dim=1).indices
    return torch.full_like(scores, float("-inf")).scatter(1, best, scores.gather(1, best))


def _best(starts: Tensor, ends: Tensor, beginnings: Tensor, max_length: int) -> Spans:
    starts = starts.masked_fill(~beginnings, float("-inf"))
    width = min(max_length, ends.size(1))
    padded = torch.nn.functional.pad(ends, (0, width - 1), value=float("-inf"))
    # (windows, length, width): the ends at, and after, each start
    sums = starts.unsqueeze(2) + padded.unfold(1, width, 1)
    scores, index = sums.flatten(1).max(dim=1)
    first = torch.div(index, width, rounding_mode="floor")
    return Spans(first, first + index % width, scores)


def best_windows(
    candidates: Iterable[Tuple[int, Tuple[int, int, float]]],
) -> Dict[int, Tuple[int, int]]:
    """Return first and last token of the best span of each question, by the question's number.

    Args:
        candidates: for each window the number of its question and its best span: first token, last
            token, score. Of equal scores the first counts; a score of -inf is not a span.
    """
    best: Dict[int, Tuple[int, int, float]] = {}
    for question, (start, end, score) in candidates:
        previous = best.get(question)
        if score > (previous[2] if previous else float("-inf")):
            best[question] = (start, end, score)
    return {question: span[:2] for question, span in best.items()}
