"""Attention and layers without fairseq, also where fairseq is missing.

That they compute what the fairseq models do is in tests/tools/convert/test_nn_load.py.
"""

import pytest
import torch

from fairseq_posenc import nn
from fairseq_posenc.attention import core
from fairseq_posenc.encodings import StackConfig, names
from fairseq_posenc.encodings.base import AttentionTerms
from tests.programs import REPOSITORY, python

each_encoding = pytest.mark.parametrize("encoding", names())


def make(encoding):
    """An encoder of two layers, in evaluation, with strong positions."""
    torch.manual_seed(1)
    stack = StackConfig(channels=16, layers=2, heads=2, max_length=20)
    encoder = nn.Encoder(nn.EncoderLayer(16, heads=2, inner=32), stack, encoding).eval()
    for parameter in encoder.embed_positions.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape)
    return encoder


def test_layers_are_drawn_one_by_one():
    first, second = make("none").layers
    assert not torch.equal(first.fc1.weight, second.fc1.weight)


def test_the_scale_of_scores_has_a_default():
    x = torch.randn(2, 2, 5, 16)
    outputs, _ = core.attend(x, x, x, AttentionTerms(scale=None))
    assert torch.equal(outputs, core.attend(x, x, x, AttentionTerms(scale=0.25))[0])


def test_a_row_of_padding_alone_leaves_the_others_as_they_are():
    encoder, x = make("tupe"), torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [True] * 5])
    assert (encoder(x, padding)[0] - encoder(x[:1])[0]).abs().max() < 1e-5


@each_encoding
def test_padding_on_either_side_leaves_a_sequence_as_it_is(encoding):
    encoder, x = make(encoding), torch.randn(1, 5, 16)
    padding, whole = torch.tensor([[False] * 5 + [True] * 3]), torch.cat([x, x[:, :3]], dim=1)
    expected = encoder(x)
    assert (encoder(whole, padding)[:, :5] - expected).abs().max() < 1e-5
    if not encoder.embed_positions.by_index:
        left = encoder(whole.roll(3, dims=1), padding.roll(3, dims=1))
        assert (left[:, 3:] - expected).abs().max() < 1e-5


@pytest.mark.parametrize("what, message", [
    (lambda: nn.SelfAttention(10, 3), "3 heads do not divide 10 channels"),
    (lambda: nn.Encoder(nn.EncoderLayer(8, 2, 8), StackConfig(channels=16, heads=2)),
        "other channels"),
    (lambda: nn.Encoder(nn.EncoderLayer(8, 2, 8), StackConfig(channels=8, heads=2), "tupe")(
        torch.randn(1, 2, 8), torch.tensor([[True, False]])), "pad on the right"),
])  # fmt: skip
def test_mistakes_are_told(what, message):
    with pytest.raises(ValueError, match=message):
        what()


def test_the_how_to_runs_where_fairseq_is_missing():
    """The page's program, in a Python that finds neither fairseq nor NumPy."""
    page = (REPOSITORY / "docs" / "export.md").read_text(encoding="utf-8")
    program = page.partition("## A model of your own")[2].split("```python\n")[1].split("```")[0]
    hidden = "import sys\nfor name in 'fairseq omegaconf numpy'.split(): sys.modules[name] = None\n"
    _, first, *_, last = (float(line.split()[-1]) for line in python(hidden + program).splitlines())
    assert last < first / 4


@pytest.mark.parametrize("encoding", ["learned", "rotary", "transformer_xl", "tupe"])
def test_an_exported_graph_takes_other_batches_and_lengths(encoding):
    encoder, padding = make(encoding), torch.zeros(3, 9, dtype=torch.bool)
    dims = {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("length", min=2, max=64)}
    inputs = {"x": torch.randn(3, 9, 16), "padding_mask": padding}
    shapes = dict.fromkeys(inputs, dims)
    graph = torch.export.export(encoder, (), inputs, dynamic_shapes=shapes).module()
    for batch, length in ((5, 33), (2, 64)):
        x = torch.randn(batch, length, 16)
        padding = torch.arange(length) >= length - torch.arange(batch).unsqueeze(1)
        found = graph(x=x, padding_mask=padding)
        assert (found - encoder(x, padding)).abs().max() < 1e-5
    if encoder.embed_positions.by_index:
        with pytest.raises(RuntimeError, match="pad on the right"):
            graph(x=x, padding_mask=padding.flip(1))


def test_a_graph_of_rotary_is_one_that_onnx_has():
    """ONNX multiplies complex numbers, and has no unsqueeze of them."""
    program = torch.export.export(make("rotary"), (torch.randn(3, 9, 16),))
    functions = {
        str(node.target)
        for node in program.graph.nodes
        if node.op == "call_function" and getattr(node.meta.get("val"), "is_complex", bool)()
    }
    assert "aten.complex.default" in functions
    assert not any("unsqueeze" in name for name in functions)


@each_encoding
def test_all_projections_are_called_so_that_they_may_be_quantised(encoding):
    """Whatever replaces the projections is asked for keys of distances, too."""
    encoder = make(encoding)
    x = torch.randn(2, 9, 16)
    for module in encoder.layers.modules():
        if isinstance(module, nn.SelfAttention):
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                inner = getattr(module, name)
                setattr(module, name, torch.nn.Sequential(inner))  # it has no weight of its own
    expected = encoder(x)
    quantised = torch.ao.quantization.quantize_dynamic(encoder, {torch.nn.Linear})
    assert 0 < (quantised(x) - expected).abs().max() < 0.3
