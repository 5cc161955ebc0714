"""Pairs picked by length: both sides in one range, drawn at random, in the order of the text."""

import argparse

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib.pick_pairs import pick, ranges

LENGTHS = [(1, 1), (5, 6), (5, 9), (9, 9), (6, 6), (8, 5), (12, 9), (3, 5)]
PAIRS = [(f"s{n}", f"t{n}") for n in range(len(LENGTHS))]


def test_both_sides_are_in_the_range():
    assert pick(PAIRS, LENGTHS, [(5, 8), (9, 12)], None, 1) == [PAIRS[n] for n in (1, 3, 4, 5, 6)]


def test_a_draw_is_of_each_range_and_depends_on_the_seed_alone():
    drawn = {seed: pick(PAIRS, LENGTHS, [(5, 8), (9, 12)], 2, seed) for seed in range(20)}
    for seed, found in drawn.items():
        assert found == pick(PAIRS, LENGTHS, [(5, 8), (9, 12)], 2, seed)
        assert found == sorted(found) and found[-1] == PAIRS[6] and len(found) == 4
    assert len({tuple(found) for found in drawn.values()}) == 3


def test_too_few_are_refused():
    with pytest.raises(UsageError, match="2 pairs have 9 to 12 pieces on both sides, and 3"):
        pick(PAIRS, LENGTHS, [(9, 12)], 3, 1)


@pytest.mark.parametrize("text", ["5", "5-", "9-5", "0-3", "a-b"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        ranges(text)
    assert ranges("5-32,33-48") == [(5, 32), (33, 48)]
