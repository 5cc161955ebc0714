"""Padding changes sides and comes back."""

import pytest
import torch

from fairseq_posenc.models.padding import left_padding, roll_rows

TOKENS = torch.tensor([[1, 1, 5, 6], [7, 8, 9, 1], [3, 4, 5, 6], [1, 7, 1, 1]])


def test_left_padding_is_counted():
    assert left_padding(TOKENS, 1).tolist() == [2, 0, 0, 1]
    assert left_padding(torch.tensor([[1, 1], [1, 5]]), 1).tolist() == [2, 1]


def test_without_left_padding_there_is_nothing_to_do():
    assert left_padding(TOKENS[1:3], 1) is None


def test_rows_move_each_by_their_own_number_of_places():
    places = left_padding(TOKENS, 1)
    right = roll_rows(TOKENS, -places)
    assert right.tolist() == [[5, 6, 1, 1], [7, 8, 9, 1], [3, 4, 5, 6], [7, 1, 1, 1]]
    assert torch.equal(roll_rows(right, places), TOKENS)


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 3), (4, 4, 2, 5)])
def test_more_dimensions_move_along_and_gradients_move_back(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    places = torch.tensor([2, 0, -1, 3])
    found = roll_rows(x, places)
    for row, by in enumerate(places.tolist()):
        assert torch.equal(found[row], x[row].roll(by, 0))
    assert torch.autograd.gradcheck(lambda y: roll_rows(y, places), [x])
