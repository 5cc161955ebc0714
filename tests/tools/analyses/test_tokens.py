"""SHAPE, Figure 4: which model gives the tokens of the references higher scores."""

import numpy as np
import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.tokens import (
    ScoredReferences,
    compare,
    ranks,
    score_references,
    tokens,
)
from tests.tiny import dictionary_of

FREQUENCY, POSITION = (5, 20), (2, 6, 40)


@pytest.fixture
def analyse(corpus):
    def analyse(*models, **options):
        bins = {"frequency_bins": FREQUENCY, "position_bins": POSITION}
        options = {"data": corpus.path, "cpu": True, **bins, **options}
        return tokens(models=list(models), **options)

    return analyse


def test_a_model_equals_itself(analyse, checkpoint):
    report = analyse(checkpoint("shaw", name="a"), checkpoint("shaw", name="b"))
    found = {share for row in report.data["shares"] for share in row}
    assert found == {0.5, None}
    assert report.table[1] == ["1-5", "0.50", "0.50", "0.50", "-", "0.50"]


def test_scores_are_those_of_sentences_one_by_one(trained):
    model = trained("sinusoidal")
    found, pairs = score_references(model, "valid", max_tokens=60), model.pairs("valid")
    expected = [(token, i + 1) for pair in pairs for i, token in enumerate(pair["target"].tolist())]
    assert list(zip(found.tokens, found.positions)) == expected
    scores = []
    for pair in pairs:
        target = pair["target"].tolist()
        for place, token in enumerate(target):
            prefix = torch.tensor([[model.task.target_dictionary.eos(), *target[:place]]])
            with torch.no_grad():
                logits = model.model(pair["source"].unsqueeze(0), None, prefix)[0][0, -1]
            scores.append(float(logits.double().log_softmax(dim=0)[token]))
    assert found.scores == pytest.approx(scores, abs=1e-4)


def test_cells_are_those_of_a_slow_count():
    random = np.random.RandomState(1)
    size = 2000
    ids, positions = random.randint(31, size=size), random.randint(1, 50, size=size)
    a, b = random.randint(3, size=(2, size)).astype(float)
    scored = [ScoredReferences(ids, ids, positions, scores) for scores in (a, b)]
    counts, shares = compare(*scored, FREQUENCY, POSITION)
    rows = [(1, 5), (6, 20), (21, 99), (1, 99)]
    columns = [(1, 2), (3, 6), (7, 40), (41, 99), (1, 99)]
    for row, (low, high) in enumerate(rows):
        for column, (first, last) in enumerate(columns):
            inside = [
                0.5 if y == x else float(y > x)
                for rank, place, x, y in zip(ids, positions, a, b)
                if low <= rank <= high and first <= place <= last
            ]
            assert counts[row][column] == len(inside) > 0
            assert shares[row][column] == pytest.approx(sum(inside) / len(inside))


def test_the_more_frequent_has_the_lower_rank_and_special_symbols_have_none():
    dictionary = dictionary_of({"rare": 2, "often": 9, "equal": 2, "most": 30})
    found = ranks(dictionary)
    words = ("most", "often", "rare", "equal")
    assert [found[dictionary.index(word)] for word in words] == [1, 2, 3, 4]
    assert found[: dictionary.nspecial].tolist() == [0, 0, 0, 0]


def test_the_end_of_sentence_is_not_counted(analyse, checkpoint, trained):
    report = analyse(checkpoint("sinusoidal"), checkpoint("shaw"))
    pairs = trained("sinusoidal").pairs("valid")
    assert report.data["tokens"][-1][-1] == sum(len(pair["target"]) - 1 for pair in pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frequency_bins": [5, 5]}, "--frequency-bins takes rising"),
        ({"position_bins": [0, 5]}, "--position-bins takes rising"),
        ({"subset": "nowhere"}, "nowhere"),
    ],
)
def test_bad_options_are_refused(analyse, checkpoint, options, message):
    with pytest.raises(UsageError, match=message):
        analyse(checkpoint("sinusoidal"), checkpoint("shaw"), **options)
    with pytest.raises(UsageError, match="takes two models"):
        analyse(checkpoint("sinusoidal"))
