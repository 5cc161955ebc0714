"""Learned positions against a loop over the table, and against stock fairseq."""

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding

from fairseq_posenc.encodings import StackConfig, build

LENGTH, FIRST = 10, 2
both_paddings = pytest.mark.parametrize("left", [False, True])


def learned(decoder=False, length=LENGTH):
    torch.manual_seed(0)
    return build("learned", StackConfig(6, decoder, max_length=length))


@both_paddings
@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_token_gets_the_row_of_its_number_and_alone_teaches_it(
    batch, place, decoder, left, training
):
    encoding, lengths = learned(decoder).train(training), [10, 1, 6]
    tokens = batch(lengths, left)
    found, outer = encoding(place(tokens)).input, torch.randn(3, 10, 6)
    expected, slopes = torch.zeros(3, 10, 6), torch.zeros_like(encoding.weight)
    for b, length in enumerate(lengths):
        for i in range(length):
            column = 10 - length + i if left else i
            expected[b, column] = encoding.weight[FIRST + i].detach()
            slopes[FIRST + i] += outer[b, column]
    # at padding: the row of padding, which is zero and never learns
    assert torch.equal(found, expected)
    (found * outer).sum().backward()
    torch.testing.assert_close(encoding.weight.grad, slopes, rtol=0, atol=1e-6)


@both_paddings
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


@both_paddings
def test_training_beyond_the_table_is_an_error_unless_only_padding_is_there(batch, place, left):
    for decoder in (False, True):
        encoding = learned(decoder)
        encoding(place(torch.nn.functional.pad(batch([LENGTH]), (0, 3), value=1)))
        with pytest.raises(ValueError, match=rf"table of {LENGTH}"):
            encoding(place(batch([3, LENGTH + 1], left)))


@both_paddings
def test_evaluation_beyond_the_table_repeats_the_last_row(batch, place, left):
    encoding = learned(decoder=True).eval()
    tokens = batch([LENGTH + 5, 4], left)
    found = encoding(place(tokens)).input
    assert torch.equal(found[0, :LENGTH], encoding.weight[FIRST:])
    assert torch.equal(found[0, LENGTH:], encoding.weight[-1].expand(5, -1))
    start = LENGTH + 1 if left else 0
    assert torch.equal(found[1, start : start + 4], encoding.weight[FIRST : FIRST + 4])
    for length in (LENGTH, LENGTH + 1, LENGTH + 5):
        step = encoding(place(tokens[:, :length], cache={})).input
        assert torch.equal(step[0, 0], encoding.weight[-1])


def test_rows_are_drawn_as_stock_fairseq_draws_them():
    torch.manual_seed(0)
    rows = build("learned", StackConfig(100, max_length=2000)).weight.detach()[FIRST:]
    assert abs(float(rows.std()) - 0.1) < 0.002
    assert abs(float(rows.mean())) < 0.002
