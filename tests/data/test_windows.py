import numpy as np
import pytest

from fairseq_posenc.data.windows import WindowLayout, covering_tokens, widest_context

LAYOUTS = [WindowLayout(12, 3, 4), WindowLayout(12, 100, 4), WindowLayout(8, 1, 4), WindowLayout()]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("question", [0, 3, 4, 70])
@pytest.mark.parametrize("context", [0, 1, 5, 6, 23, 700])
def test_every_token_is_in_a_window_and_no_window_is_too_long(layout, question, context):
    windows = layout.windows(question, context)
    kept = min(question, layout.max_query_length)
    covered = np.zeros(context, dtype=int)
    for first, length in windows:
        covered[first : first + length] += 1
        assert kept + length + 3 <= layout.max_positions
    assert (covered > 0).all()
    if len(windows) > 1:
        # all are full but the last, which is needed
        room = layout.max_positions - kept - 3
        assert {length for _, length in windows[:-1]} == {room}
        assert sum(windows[-2]) < context


def test_windows_begin_every_stride_as_in_bert():
    assert WindowLayout(13, 3, 4).windows(4, 14) == [(0, 6), (3, 6), (6, 6), (9, 5)]
    assert WindowLayout(13, 3, 4).windows(4, 12) == [(0, 6), (3, 6), (6, 6)]
    # a stride longer than the window would skip tokens
    assert WindowLayout(13, 9, 4).windows(4, 14) == [(0, 6), (6, 6), (12, 2)]


def window_with_most_around(windows, token):
    scores = []
    for first, length in windows:
        margin = min(token - first, first + length - 1 - token)
        scores.append(100 * margin + length if margin >= 0 else -1)
    return scores.index(max(scores))


@pytest.mark.parametrize(
    "windows",
    [
        *(layout.windows(4, length) for layout in LAYOUTS for length in (1, 14, 40, 301)),
        [(0, 3), (2, 5)],
        [(0, 300), (128, 173)],
    ],
)
def test_each_token_belongs_to_the_one_window_that_shows_most_around_it(windows):
    found = {}
    for number, (first, _) in enumerate(windows):
        for token in np.flatnonzero(widest_context(windows, number)) + first:
            assert found.setdefault(token, number) == number
    tokens = range(sum(windows[-1]))
    assert found == {token: window_with_most_around(windows, token) for token in tokens}


OFFSETS = np.array([[0, 3], [4, 9], [9, 10], [11, 12]])


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 3, (0, 0)),
        (4, 10, (1, 2)),
        (1, 2, (0, 0)),
        (8, 12, (1, 3)),
        (2, 5, (0, 1)),
        (3, 4, None),
        (10, 12, (3, 3)),
        (20, 25, None),
    ],
)
def test_the_tokens_that_share_a_character_with_a_span_are_found(start, end, expected):
    assert covering_tokens(OFFSETS, start, end) == expected
