"""Every encoding, in whole models: what a batch holds besides a sentence does not change it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_posenc.encodings import Positions, Stack, build, names

PADDING, ROUNDING = 1, 2e-5
pytestmark = pytest.mark.parametrize("name", names())
seldom = settings(max_examples=max(settings.default.max_examples // 4, 1))


@pytest.fixture
def model(name, build_model):
    """A tiny model whose encoding has strong parameters."""
    model = build_model(name)
    generator = torch.Generator().manual_seed(1)
    for side in (model.encoder, model.decoder):
        for parameter in side.embed_positions.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.requires_grad_(False)


def of_one(model, source, target):
    """Scores of one pair's target tokens, without any padding."""
    return model(torch.tensor([source]), None, torch.tensor([target]))[0][0]


@seldom
@given(data=st.data())
def test_padding_of_any_width_and_side_changes_no_real_token(name, model, ragged, data):
    source = data.draw(ragged())
    count = len(source.sentences)
    target = data.draw(ragged((count, count)))
    found = model(source.tokens, None, target.tokens)[0]
    for row, pair in enumerate(zip(source.sentences, target.sentences)):
        real = target.tokens[row].ne(PADDING)
        expected = of_one(model, *pair)
        torch.testing.assert_close(found[row, real], expected, rtol=0, atol=ROUNDING)


@seldom
@given(data=st.data())
def test_another_order_of_the_batch_gives_the_results_in_that_order(name, model, ragged, data):
    source, target = data.draw(ragged((3, 3))), data.draw(ragged((3, 3)))
    order = torch.tensor(data.draw(st.permutations(range(3))))
    found = model(source.tokens, None, target.tokens)[0]
    moved = model(source.tokens[order], None, target.tokens[order])[0]
    real = target.tokens[order].ne(PADDING)
    torch.testing.assert_close(moved[real], found[order][real], rtol=0, atol=ROUNDING)


@given(data=st.data(), decoder=st.booleans())
def test_input_terms_of_real_tokens_are_exactly_those_of_the_sentence_alone(
    name, ragged, data, decoder
):
    encoding = build(name, Stack(8, decoder, max_length=6, layers=2, heads=2)).eval()
    batch = data.draw(ragged())
    found = encoding(Positions.of_tokens(batch.tokens, PADDING)).input
    for row, sentence in enumerate(batch.sentences):
        alone = encoding(Positions.of_tokens(torch.tensor([sentence]), PADDING)).input
        if found is None:
            assert alone is None
        else:
            assert torch.equal(found[row, batch.tokens[row].ne(PADDING)], alone[0])
