"""SHAPE, Figure 2: which encoders see the same sentence wherever it stands."""

import math

import pytest
import torch

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.shift_invariance import shift_invariance, shifted, similarities

ABSOLUTE = ("sinusoidal", "learned", "shape", "unifpe", "randomized", "cape", "tupe", "abs_scalar")
OFFSETS = (0, 3, 20)


@pytest.fixture
def analyse(corpus, checkpoint):
    def analyse(*models, **options):
        options = {"data": corpus.path, "offsets": OFFSETS, "cpu": True, **options}
        return shift_invariance(models=list(models), **options)

    return analyse


@pytest.mark.parametrize("encoding", [*names(), "randomized --position-inner t5"])
def test_encodings_of_distances_are_invariant_and_absolute_ones_are_not(
    analyse, checkpoint, encoding
):
    model = checkpoint(*encoding.split(), name="model")
    matrix = analyse(model).data["similarities"]["model"]
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if i == j or encoding not in ABSOLUTE:
                assert value == pytest.approx(1, abs=1e-6)
            else:
                assert value < 0.999 and value == pytest.approx(matrix[j][i], abs=1e-9)


def test_the_figure_is_that_of_slow_loops_over_sentences_and_tokens(analyse, trained, checkpoint):
    found = analyse(checkpoint("sinusoidal")).data["similarities"]["sinusoidal"][0][2]
    model = trained("sinusoidal")
    means = []
    pairs = model.pairs("test")
    for pair in pairs:
        states = []
        for offset in (0, 20):
            numbers = torch.arange(len(pair["source"])) + offset
            states.append(encode_at(model.encoder, pair["source"], numbers))
        cosines = [cosine(a, b) for a, b in zip(*states)]
        means.append(sum(cosines) / len(cosines))
    assert len(pairs) == len(means) == 9
    assert found == pytest.approx(sum(means) / len(means), abs=1e-5)


@torch.no_grad()
def encode_at(encoder, source, numbers):
    """The states of a sentence whose tokens stand at given positions, layer by layer."""
    from fairseq_posenc.encodings.sinusoidal import sinusoid

    x = encoder.embed_scale * encoder.embed_tokens(source)
    x = x + sinusoid(numbers.float() + encoder.padding_idx + 1, x.size(-1))
    x = x.unsqueeze(1)
    for layer in encoder.layers:
        x = layer(x)
    return encoder.layer_norm(x)[:, 0].tolist()


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize("encoding", ["sinusoidal", "abs_scalar"])
def test_padding_does_not_count(trained, encoding, left_pad):
    encoder = trained(encoding).encoder
    short, pad = [5, 9, 7, 2], encoder.padding_idx
    batch = [[5, 6, 7, 8, 9, 2], [pad] * 2 * left_pad + short + [pad] * 2 * (not left_pad)]
    together = similarities(encoder, torch.tensor(batch), OFFSETS)[..., 1]
    alone = similarities(encoder, torch.tensor([short]), OFFSETS)[..., 0]
    assert torch.allclose(together, alone, atol=1e-6)


def test_the_offset_is_gone_afterwards(trained):
    encoder, tokens = trained("sinusoidal").encoder, torch.tensor([[5, 6, 7, 2]])
    before = encoder(tokens)["encoder_out"][0]
    with shifted(encoder, 5):
        assert not torch.allclose(encoder(tokens)["encoder_out"][0], before, atol=1e-3)
    assert torch.equal(encoder(tokens)["encoder_out"][0], before)


def test_source_bos_is_there_once(analyse, trained, checkpoint):
    model = trained("cape", "--prepend-source-bos")
    source = model.pairs("test")[0]["source"]
    bos = model.task.source_dictionary.bos()
    assert source[0] == bos and source.tolist().count(bos) == 1
    report = analyse(checkpoint("learned", "--prepend-source-bos"), offsets=[0, 40, 47, 64])
    longest = max(len(pair["source"]) for pair in model.pairs("test"))
    assert f"longest sentence {longest} tokens" in report.notes[0]


def test_offsets_beyond_a_table_have_no_figure_and_a_note(analyse, checkpoint):
    report = analyse(checkpoint("learned"), checkpoint("sinusoidal"), offsets=[0, 20, 60])
    matrix = report.data["similarities"]["learned"]
    assert [[value is None for value in row] for row in matrix] == [
        [False, False, True], [False, False, True], [True, True, True]
    ]  # fmt: skip
    assert None not in report.data["similarities"]["sinusoidal"][2]
    assert report.notes[0].startswith("learned has a table of 64 positions")
    assert report.table[3] == ["", "60", "-", "-", "-"]


def test_as_many_sentences_as_asked_for_are_drawn(analyse, checkpoint):
    model = checkpoint("sinusoidal")
    few, same = analyse(model, sentences=4), analyse(model, sentences=4)
    other = analyse(model, sentences=4, seed=2)
    assert few.data["sentences"] == 4 and few.data == same.data != other.data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"offsets": bad}, "--offsets takes rising") for bad in ([], [5, 5], [3, 1], [-1, 0])),
        ({"subset": "valid7"}, "no binarised 'valid7' set"),
    ],
)
def test_bad_options_are_refused(analyse, checkpoint, corpus, options, message):
    with pytest.raises(UsageError, match=message):
        analyse(checkpoint("sinusoidal"), **options)
    with pytest.raises(UsageError, match="x is not a translation model"):
        analyse(checkpoint("sinusoidal", name="x", bert=True), data=corpus.text)
