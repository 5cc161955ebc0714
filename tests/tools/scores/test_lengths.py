import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.lengths import by_edges, by_percentiles, edges_of_data
from fairseq_posenc.tools.scores.score import evaluate


def members(bins, lengths):
    return {bin.name: [lengths[i] for i in bin.members(lengths)] for bin in bins}


@pytest.mark.parametrize("edges", [[], [0, 5], [-3], [10, 10], [20, 10]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(UsageError, match="rising"):
        by_edges(edges)


def test_numbers_that_begin_with_0_can_be_parted_from_1():
    expected = {"0-0": [0, 0], "1-2": [1], "3+": [3]}
    assert members(by_edges([0, 2], smallest=0), [0, 1, 0, 3]) == expected


@pytest.mark.parametrize(
    "edges, lengths, expected",
    [([10], [5] * 9, [10]), ([10], [5, 5, 90], [10]), ([], [50] * 9, [10, 20, 30]),
     ([40], range(1, 401), [40, 60, 80, 120, 160, 240, 320]), ([1], [2, 3], [1, 2]),
     ([10], [5, 300, 400], [10, 320]), ([10], [10] * 20 + [15], [10])],
)  # fmt: skip
def test_ranges_go_on_while_the_last_holds_a_third_and_none_is_empty(edges, lengths, expected):
    assert edges_of_data(edges, lengths) == expected


def test_percentiles_cut_at_33_and_66_percent():
    # With 1001 lengths of 0…1000, the p-th percentile is 10 p.
    found = members(by_percentiles(range(1001)), range(1001))
    assert found["short"] == list(range(331))
    assert found["medium"] == list(range(331, 661))
    assert found["long"] == list(range(661, 1001))


def test_sentences_of_equal_length_stay_together():
    lengths = [5] * 8 + [9, 10]
    found = members(by_percentiles(lengths), lengths)
    assert found == {"short": [5] * 8, "medium": [], "long": [9, 10]}


def test_tokens_are_words_and_marks(write):
    texts = {"source": ["A house.", "The dog runs, fast."], "reference": ["a", "b"]}
    files = {name: write(name, lines) for name, lines in texts.items()}
    files["hypothesis"] = files["reference"]
    for unit, lengths in ("words", [2, 4]), ("tokens", [3, 6]):
        options = {"length_unit": unit, "language": "de", "source_language": "en"}
        score = evaluate(**files, **options, bins=[3])
        assert (score.by_length.unit, score.sentences.length) == (unit, lengths)
