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


def passed(model, source, target):
    """The encoder's output ``(length, batch, channels)``, and the decoder's scores."""
    encoded = model.encoder(source)
    return encoded["encoder_out"][0], model.decoder(target, encoder_out=encoded)[0]


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


@seldom
@given(data=st.data())
def test_padding_of_any_width_and_side_changes_no_real_token(name, model, ragged, data):
    source = data.draw(ragged())
    count = len(source.sentences)
    target = data.draw(ragged((count, count)))
    encoded, scores = passed(model, source.tokens, target.tokens)
    for row in range(count):
        one_source = torch.tensor([source.sentences[row]])
        one_target = torch.tensor([target.sentences[row]])
        encoded_alone, scores_alone = passed(model, one_source, one_target)
        close(encoded[source.tokens[row].ne(PADDING), row], encoded_alone[:, 0])
        close(scores[row, target.tokens[row].ne(PADDING)], scores_alone[0])


@seldom
@given(data=st.data())
def test_another_order_of_the_batch_gives_the_results_in_that_order(name, model, ragged, data):
    source, target = data.draw(ragged((3, 3))), data.draw(ragged((3, 3)))
    order = torch.tensor(data.draw(st.permutations(range(3))))
    encoded, scores = passed(model, source.tokens, target.tokens)
    moved = passed(model, source.tokens[order], target.tokens[order])
    real = source.tokens[order].ne(PADDING).t()
    close(moved[0][real], encoded[:, order][real])
    real = target.tokens[order].ne(PADDING)
    close(moved[1][real], scores[order][real])


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
