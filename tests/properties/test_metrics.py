"""Bins of sentence lengths cover every length once."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.tools.results.lengths import by_edges, by_percentiles


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
