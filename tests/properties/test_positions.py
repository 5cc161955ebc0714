"""Numbers, masks and moved padding against loops over tokens."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.attention import core
from fairseq_posenc.encodings import Positions
from fairseq_posenc.models.padding import left_padding, roll_rows

PADDING = 1


def numbered(tokens):
    """The number of each token of a row: how many real ones stand before it."""
    numbers, count = [], 0
    for token in tokens:
        count += token != PADDING
        numbers.append(max(count - 1, 0))
    return numbers


@given(data=st.data())
def test_a_token_has_the_number_of_real_tokens_before_it(ragged, data):
    batch = data.draw(ragged())
    positions = Positions.of_tokens(batch.tokens, PADDING)
    assert positions.numbers.tolist() == [numbered(row) for row in batch.tokens.tolist()]
    for sentence, row in zip(batch.sentences, positions.numbers.tolist()):
        start = len(row) - len(sentence) if batch.left else 0
        assert row[start : start + len(sentence)] == list(range(len(sentence)))
    assert positions.keys == batch.tokens.size(1)


@given(data=st.data())
def test_the_mask_is_true_at_padding_alone_and_absent_without_any(ragged, data):
    batch = data.draw(ragged())
    mask = Positions.of_tokens(batch.tokens, PADDING).padding_mask
    expected = [[token == PADDING for token in row] for row in batch.tokens.tolist()]
    assert (mask is None) == (not any(map(any, expected)))
    assert mask is None or mask.tolist() == expected


@given(data=st.data())
def test_a_step_gives_the_last_number_of_its_prefix(ragged, data):
    batch = data.draw(ragged())
    whole = Positions.of_tokens(batch.tokens, PADDING)
    for length in range(1, batch.tokens.size(1) + 1):
        step = Positions.of_tokens(batch.tokens[:, :length], PADDING, cache={})
        assert step.numbers.tolist() == whole.numbers[:, length - 1 : length].tolist()
        padded = batch.tokens[:, length - 1 : length].eq(PADDING)
        assert (step.padding_mask is None) == (not padded.any())
        assert step.padding_mask is None or torch.equal(step.padding_mask, padded)
        assert step.keys == length


@given(data=st.data())
def test_padding_moves_to_the_right_and_back(ragged, data):
    batch = data.draw(ragged())
    padding = left_padding(batch.tokens, PADDING)
    counts = [batch.tokens.size(1) - len(sentence) for sentence in batch.sentences]
    if not (batch.left and any(counts)):
        assert padding is None
        return
    assert padding.tolist() == counts
    right = roll_rows(batch.tokens, -padding)
    assert torch.equal(right, batch._replace(left=False).tokens)
    assert torch.equal(roll_rows(right, padding), batch.tokens)


def attended(queries, keys, values, visible):
    """Softmax of scaled products over the visible keys, one query after the other."""
    outputs = []
    for i, query in enumerate(queries):
        scores = [sum(q * k for q, k in zip(query, keys[j])) for j in visible(i)]
        weights = [math.exp(score / math.sqrt(len(query))) for score in scores]
        chosen = [values[j] for j in visible(i)]
        outputs.append(
            [
                sum(w * value[c] for w, value in zip(weights, chosen)) / sum(weights)
                for c in range(len(query))
            ]
        )
    return outputs


@given(
    data=st.data(),
    causal=st.booleans(),
    learns=st.booleans(),
    need_weights=st.booleans(),
    seed=st.integers(0, 99),
)
def test_attention_sees_real_keys_and_the_past_alone(
    ragged, data, causal, learns, need_weights, seed
):
    batch = data.draw(ragged(longest=6))
    rows, length = batch.tokens.shape
    generator = torch.Generator().manual_seed(seed)
    tensors = torch.randn(3, rows, 2, length, 4, generator=generator).requires_grad_(learns)
    mask = batch.tokens.eq(PADDING)
    terms = core.CoreTerms(scale=0.5)
    found, _ = core.attend(
        *tensors, terms, mask if mask.any() else None, causal, need_weights=need_weights
    )
    assert bool(found.isfinite().all())
    for b, h in [(b, h) for b in range(rows) for h in range(2)]:
        real = (~mask[b]).nonzero().flatten().tolist()
        queries, keys, values = tensors[:, b, h].tolist()
        expected = attended(
            [queries[i] for i in real],
            keys,
            values,
            lambda n, real=real: real[: n + 1] if causal else real,
        )
        for i, outputs in zip(real, expected):
            assert found[b, h, i].tolist() == pytest.approx(outputs, abs=1e-5)
