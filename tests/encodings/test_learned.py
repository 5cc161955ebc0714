"""Learned positions against a loop over the table, and against stock fairseq."""

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding

from fairseq_posenc.encodings import Stack, build

LENGTH = 10
FIRST = 2


def learned(decoder=False, length=LENGTH):
    torch.manual_seed(0)
    return build("learned", Stack(6, decoder, max_length=length))


def slow_lookup(table, first, lengths, width, left):
    """Rows of the table for the tokens of sentences padded to a width; zeros at padding."""
    result = torch.zeros(len(lengths), width, table.shape[1], dtype=table.dtype)
    for b, length in enumerate(lengths):
        for i in range(length):
            column = width - length + i if left else i
            for c in range(table.shape[1]):
                result[b, column, c] = table[first + i, c]
    return result


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_token_gets_the_row_of_its_number(batch, place, decoder, left, training):
    encoding, lengths = learned(decoder).train(training), [10, 1, 6]
    tokens = batch(lengths, left)
    found = encoding(place(tokens)).input * tokens.ne(1).unsqueeze(-1)
    expected = slow_lookup(encoding.weight.detach(), FIRST, lengths, 10, left)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("left", [False, True])
def test_the_weights_of_stock_fairseq_give_its_output(batch, place, left):
    stock = LearnedPositionalEmbedding(LENGTH + FIRST, 6, padding_idx=1)
    encoding = learned()
    encoding.load_state_dict(stock.state_dict())
    tokens = batch([10, 3, 7], left)
    real = tokens.ne(1)
    assert torch.equal(encoding(place(tokens)).input[real], stock(tokens)[real])
    for length in (1, 5, 10):
        found = encoding(place(tokens[:1, :length], cache={})).input
        assert torch.equal(found, stock(tokens[:1, :length], incremental_state={}))


@pytest.mark.parametrize("left", [False, True])
def test_the_gradient_reaches_the_rows_that_are_used_and_no_other(batch, place, left):
    encoding, lengths = learned(), [4, 6]
    tokens = batch(lengths, left)
    torch.manual_seed(1)
    outer = torch.randn(2, 6, 6) * tokens.ne(1).unsqueeze(-1)
    (encoding(place(tokens)).input * outer).sum().backward()
    expected = torch.zeros_like(encoding.weight)
    for b, length in enumerate(lengths):
        for i in range(length):
            expected[FIRST + i] += outer[b, 6 - length + i if left else i]
    torch.testing.assert_close(encoding.weight.grad, expected, rtol=0, atol=1e-6)
    assert not encoding.weight.grad[:FIRST].any()
    assert not encoding.weight.grad[FIRST + 6 :].any()


@pytest.mark.parametrize("left", [False, True])
def test_padding_gets_the_row_of_padding_which_is_zero_and_never_learns(batch, place, left):
    encoding, tokens = learned(), batch([4, 6], left)
    at_padding = encoding(place(tokens)).input[tokens.eq(1)]
    assert torch.equal(at_padding, torch.zeros(2, 6))
    at_padding.sum().backward()
    assert not encoding.weight.grad.any()


@pytest.mark.parametrize("decoder", [False, True])
def test_the_last_row_is_for_the_longest_sequence_of_training(batch, place, decoder):
    encoding = learned(decoder)
    found = encoding(place(batch([LENGTH]))).input
    assert torch.equal(found[0, -1], encoding.weight[-1])


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_training_beyond_the_table_is_an_error(batch, place, decoder, left):
    with pytest.raises(ValueError, match=rf"{LENGTH}"):
        learned(decoder)(place(batch([3, LENGTH + 1], left)))


def test_padding_beyond_the_table_is_none_in_training(batch, place):
    """A batch may be wider than the table if the padding alone is."""
    tokens = torch.nn.functional.pad(batch([LENGTH]), (0, 3), value=1)
    learned()(place(tokens))


@pytest.mark.parametrize("left", [False, True])
def test_evaluation_beyond_the_table_repeats_the_last_row(batch, place, left):
    encoding = learned().eval()
    found = encoding(place(batch([LENGTH + 5, 4], left))).input
    assert torch.equal(found[0, :LENGTH], encoding.weight[FIRST:])
    assert torch.equal(found[0, LENGTH:], encoding.weight[-1].expand(5, -1))
    start = LENGTH + 1 if left else 0
    assert torch.equal(found[1, start : start + 4], encoding.weight[FIRST : FIRST + 4])


def test_decoding_beyond_the_table_repeats_the_last_row(batch, place):
    encoding, tokens = learned(decoder=True).eval(), batch([LENGTH + 5])
    for length in (LENGTH, LENGTH + 1, LENGTH + 5):
        found = encoding(place(tokens[:, :length], cache={})).input
        assert torch.equal(found[0, 0], encoding.weight[-1])


def test_rows_are_drawn_as_stock_fairseq_draws_them():
    torch.manual_seed(0)
    rows = build("learned", Stack(100, max_length=2000)).weight.detach()[FIRST:]
    assert abs(float(rows.std()) - 0.1) < 0.002
    assert abs(float(rows.mean())) < 0.002
