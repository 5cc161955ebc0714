import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results.lengths import by_edges, by_percentiles, lengths_of
from fairseq_posenc.tools.results.texts import Texts


def members(bins, lengths):
    return {bin.name: [lengths[i] for i in bin.members(lengths)] for bin in bins}


def test_edges_belong_to_the_bin_below():
    assert members(by_edges([10, 20, 30]), [1, 10, 11, 20, 21, 30, 31, 500]) == {
        "1-10": [1, 10],
        "11-20": [11, 20],
        "21-30": [21, 30],
        "31+": [31, 500],
    }


@pytest.mark.parametrize("bins", [by_edges([1]), by_edges([3, 4]), by_percentiles([0, 2, 2, 9])])
def test_every_sentence_is_in_exactly_one_bin(bins):
    lengths = [0, 1, 2, 3, 4, 5, 100]
    found = sorted(i for bin in bins for i in bin.members(lengths))
    assert found == list(range(len(lengths)))


@pytest.mark.parametrize("edges", [[], [0, 5], [-3], [10, 10], [20, 10]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(UsageError, match="rising"):
        by_edges(edges)


def test_percentiles_cut_at_33_and_66_percent():
    # With 1001 lengths of 0…1000, the p-th percentile is 10 p.
    found = members(by_percentiles(range(1001)), range(1001))
    assert found["short"] == list(range(331))
    assert found["medium"] == list(range(331, 661))
    assert found["long"] == list(range(661, 1001))


def test_sentences_of_equal_length_stay_together():
    lengths = [5] * 8 + [9, 10]
    assert members(by_percentiles(lengths), lengths) == {
        "short": [5] * 8,
        "medium": [],
        "long": [9, 10],
    }


@pytest.fixture
def texts():
    return Texts(
        hypothesis=["x"],
        reference=["y"],
        hypothesis_tokens=["x"],
        reference_tokens=["a b c"],
        source_tokens=["a b"],
        subwords={"source": [7]},
    )


def test_lengths_are_those_of_the_side_and_unit_asked_for(texts):
    assert lengths_of(texts, "source", "words") == [2]
    assert lengths_of(texts, "reference", "words") == [3]
    assert lengths_of(texts, "source", "subwords") == [7]


def test_lengths_that_are_not_known_are_refused(texts):
    with pytest.raises(UsageError, match="--remove-bpe"):
        lengths_of(texts, "reference", "subwords")
    texts.source_tokens = None
    with pytest.raises(UsageError, match="--source"):
        lengths_of(texts, "source", "words")
