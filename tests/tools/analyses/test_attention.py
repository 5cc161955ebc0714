"""Chen et al. 2021, Figures 2, 4 and 6: scores of positions, and ranks."""

import copy

import pytest
import torch

from fairseq_posenc.attention.core import attend
from fairseq_posenc.encodings import names
from fairseq_posenc.encodings.base import Positions
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.attention import attention
from fairseq_posenc.tools.analyses.position_scores import (
    content_scores,
    position_maps,
    ranks,
    running_text,
)

REFUSED = {"none": "at all", "conditional": "convolution", "shaw": "content", "rotary": "content"}
AT_INPUT = ("sinusoidal", "learned", "shape", "unifpe", "randomized", "cape")
OF_SCORES = [name for name in names() if name not in (*REFUSED, *AT_INPUT)]
LENGTH = 20


@pytest.fixture
def encoder(trained):
    def encoder(*arguments, **options):
        return copy.deepcopy(trained(*arguments, **options).encoder).double()

    return encoder


@pytest.fixture
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("rank", [0, 1, 3, 7])
def test_the_rank_of_a_construction_of_rank_r_is_r(rank):
    generator = torch.Generator().manual_seed(1)
    left, right = torch.linalg.qr(torch.randn(2, 12, 12, generator=generator).double())[0]
    values = torch.tensor([1.0, 0.5, 0.2, 0.1, 0.09, 0.05, 0.02, 0.005, 1e-4, 0, 0, 0]).double()
    exact = left[:, :rank] * values[:rank] @ right[:, :rank].T
    assert ranks(exact, 0.01) == ranks(exact * 1e6, 1e-9) == rank
    assert ranks((left * values) @ right, 0.01) == 7
    assert ranks((left * values) @ right, 0.001) == 8
    stacked = torch.stack([exact, torch.eye(12).double()])
    assert ranks(stacked, 0.01).tolist() == [rank, 12]


@pytest.mark.parametrize("encoding", [*OF_SCORES, "randomized --position-inner kerple"])
def test_maps_are_what_queries_and_keys_of_nothing_score(no_gradients, encoder, encoding):
    """Attention of zero queries and keys, whose softmax knows rows up to a constant."""
    model = encoder(*encoding.split())
    maps = position_maps(model, LENGTH)
    terms = model.embed_positions(Positions(torch.arange(LENGTH).unsqueeze(0).float()))
    assert list(maps) == [0, 1, 2]
    for layer, scores in maps.items():
        module = model.layers[layer].self_attn
        zeros = torch.zeros(1, 4, LENGTH, module.head_dim, dtype=torch.float64)
        core = module.core_terms(terms.attention[layer], dtype=torch.float64)
        weights = attend(zeros, zeros, zeros, core, need_weights=True)[1]
        assert scores.shape == (4, LENGTH, LENGTH) and scores.std() > 0.01
        assert torch.allclose(scores.softmax(dim=-1), weights[0], atol=1e-6)


@pytest.mark.parametrize("encoding", AT_INPUT)
def test_vectors_at_the_input_give_p_w_w_p(no_gradients, encoder, encoding):
    model = encoder(encoding)
    maps = position_maps(model, LENGTH)
    positions = Positions(torch.arange(LENGTH).unsqueeze(0).float())
    vectors = model.embed_positions(positions).input[0]
    module = model.layers[0].self_attn
    width = module.head_dim
    assert list(maps) == [0]
    for head in range(4):
        rows = slice(head * width, (head + 1) * width)
        queries = vectors.double() @ module.q_proj.weight[rows].T
        keys = vectors.double() @ module.k_proj.weight[rows].T
        expected = queries @ keys.T / width**0.5
        assert torch.allclose(maps[0][head], expected, atol=1e-4)
        assert ranks(maps[0][head], 1e-12) <= width


@pytest.mark.parametrize("encoding", REFUSED)
def test_scores_without_a_map_are_refused(encoder, encoding):
    with pytest.raises(UsageError, match=REFUSED[encoding]):
        position_maps(encoder(encoding), LENGTH)


def test_a_model_without_a_map_is_left_out_with_a_note(checkpoint, corpus):
    models = [checkpoint(encoding) for encoding in ("shaw", "t5")]
    report = attention(models=models, data=corpus.path, length=LENGTH, cpu=True)
    assert [*report.data["models"]] == ["t5"]
    assert report.notes[1].startswith("shaw: ") and "depend on the queries" in report.notes[1]
    with pytest.raises(UsageError, match="shaw: .* depend on the queries"):
        attention(models=models[:1], data=corpus.path, length=LENGTH, cpu=True)


@pytest.mark.parametrize("encoding", ["learned", "tupe", "abs_scalar"])
def test_lengths_beyond_a_table_are_refused(checkpoint, corpus, encoding):
    with pytest.raises(UsageError, match="table has 64 positions only"):
        attention(models=[checkpoint(encoding)], data=corpus.path, length=65, cpu=True)


@pytest.mark.parametrize("rank", [1, 3])
def test_abs_scalar_of_rank_r_has_rank_r(corpus, checkpoint, rank):
    model = checkpoint("abs_scalar", "--position-rank", rank)
    report = attention(models=[model], data=corpus.path, length=LENGTH, threshold=1e-6, cpu=True)
    for layer in report.data["models"]["abs_scalar"]["layers"]:
        assert layer["ranks"]["position"] == [rank] * 4
        assert len(layer["singular_values"][0]) == LENGTH


@pytest.mark.parametrize("encoding", ["rel_scalar", "sinusoidal", "tupe"])
def test_content_has_at_most_the_rank_of_a_head(corpus, checkpoint, encoding):
    model = checkpoint(encoding)
    report = attention(
        models=[model], length=40, data=corpus.path, threshold=1e-9, inputs=3, cpu=True
    )
    width = 64 // 4
    for layer in report.data["models"][encoding]["layers"]:
        assert layer["ranks"]["content"] == [width] * 4
        both = [width] * 4 if encoding == "sinusoidal" else [40] * 4
        assert layer["ranks"]["both"] == both


@pytest.mark.parametrize("encoding", ["rel_scalar", "tupe", "alibi", "cape"])
def test_the_sum_is_what_the_layers_see(no_gradients, encoder, trained, corpus, encoding):
    model, tokens = encoder(encoding), running_text(trained(encoding), "valid", LENGTH, 2)
    # vectors at the input are told apart before the norm, and without biases
    model.layers[0].self_attn_layer_norm = torch.nn.Identity()
    for projection in (model.layers[0].self_attn.q_proj, model.layers[0].self_attn.k_proj):
        projection.bias.zero_()
    both = content_scores(model, tokens, position_maps(model, LENGTH))["both"]
    seen = {}
    for number, layer in enumerate(model.layers):
        layer.self_attn.register_forward_pre_hook(
            lambda module, inputs, number=number: seen.update({number: inputs[:2]})
        )
    model(tokens)
    assert len(both) == (1 if encoding == "cape" else 3)
    for layer, scores in both.items():
        weights = model.layers[layer].self_attn(*seen[layer], need_weights=True)[1]
        assert torch.allclose(scores.softmax(dim=-1), weights, atol=1e-5)


def test_pieces_are_running_text_as_the_model_reads_it(trained, corpus):
    model = trained("rel_scalar", bert=True)
    dictionary = corpus.dictionary
    found = running_text(model, "valid", 10, 3)
    assert found.shape == (3, 10) and found[:, 0].eq(dictionary.bos()).all()
    assert found[:, -1].eq(dictionary.eos()).all()
    assert not found[:, 1:-1].eq(dictionary.eos()).any()
    whole = running_text(model, "valid", 26, 1)[0, 1:-1]
    assert torch.equal(found[:, 1:-1].flatten(), whole)
    assert (
        running_text(trained("cape", "--prepend-source-bos"), "valid", 8, 2)[0, 0]
        == dictionary.bos()
    )
    assert running_text(trained("cape"), "valid", 8, 2)[0, 0] != dictionary.bos()
    with pytest.raises(UsageError, match="no input of 5000"):
        running_text(model, "valid", 5000, 1)
    with pytest.raises(UsageError, match="no binarised nowhere"):
        running_text(model, "nowhere", 10, 1)


def test_segments_are_added_for_bert(no_gradients, encoder):
    model = encoder("rel_scalar", "--position-segments", "per_head", bert=True)
    alone = position_maps(model, 6)
    numbers = torch.tensor([0, 0, 0, 1, 1, 1])
    added = position_maps(model, 6, numbers)
    for layer, scores in alone.items():
        scalars = model.segments.scalars[layer]
        for i, j in ((0, 1), (0, 5), (5, 0), (4, 4)):
            expected = scores[:, i, j] + scalars[:, numbers[i], numbers[j]]
            assert torch.allclose(added[layer][:, i, j], expected)


@pytest.mark.parametrize(
    ("options", "second"), [("none", False), ("per_head", True), ("input", False)]
)
def test_segments_are_drawn_where_they_act_on_scores(checkpoint, corpus, options, second):
    model = checkpoint("rel_scalar", "--position-segments", options, bert=True)
    report = attention(models=[model], data=corpus.text, length=8, inputs=1, cpu=True)
    titles = [part.get_suptitle() for part in report.pictures[".png"].subfigs]
    assert titles == ["rel_scalar"] + (["rel_scalar, second segment from 4"] if second else [])


def test_bad_options_are_refused(checkpoint, corpus):
    for options in ({"length": 1}, {"inputs": 0}, {"threshold": 1}):
        with pytest.raises(UsageError, match="--length takes 2"):
            attention(models=[checkpoint("t5")], data=corpus.path, **options)
