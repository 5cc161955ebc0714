"""What an encoding says that it computes in evaluation is what it computes, or it says nothing."""

import pytest
import torch

from fairseq_posenc.encodings import Encoding, StackConfig, build, names

LENGTH = 12
OPTIONS = {
    "shape": [{"eval_shift": 7, "source_scale": 1.5}],
    "cape": [{"source_scale": 0.7}],
    "shaw": [{"max_distance": 3}, {"max_distance": 3, "shared_tables": True}],
    "t5": [{"num_buckets": 8, "max_distance": 10, "sharing": s} for s in ("none", "heads")],
    "randomized": [{"inner": inner} for inner in ("rotary", "alibi", "t5", "kerple")],
    "kerple": [{"sharing": "layers"}, {"sharing": "heads"}],
    "rotary": [
        {"scale": 3.0},
        {"scale": 3.0, "scale_method": "ntk"},
        {"scale": 3.0, "scale_method": "dynamic", "original_length": LENGTH},
    ],
    "rel_scalar": [{"sharing": "layers"}, {"sharing": "heads", "max_distance": 3}],
}
CASES = [(name, options) for name in names() for options in [{}, *OPTIONS.get(name, [])]]


def stack_of(decoder, max_length=8):
    """A stack whose tables end before the longest sequence."""
    return StackConfig(16, decoder=decoder, layers=2, heads=2, max_length=max_length)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("name, options", CASES)
def test_the_tables_give_the_terms_of_any_batch(batch, place, name, options, decoder):
    encoding = build(name, stack_of(decoder), **options).eval()
    if type(encoding).export_tables is Encoding.export_tables:
        with pytest.raises(ValueError) as caught:
            encoding.export_tables(LENGTH)
        assert str(caught.value) == encoding.export_error
        return
    tables = encoding.export_tables(LENGTH)
    tokens = batch([LENGTH, 5, 9])
    positions = place(tokens)
    terms = encoding(positions)
    assert not terms.after_layer
    assert (terms.input is None) == (tables.input is None)
    if terms.input is not None:
        real = ~positions.padding_mask
        rows = positions.numbers.long()
        assert torch.equal(terms.input[real], tables.input[rows][real])
    assert set(terms.attention) == (set(range(2)) if tables.attention else set())
    for layer, found in terms.attention.items():
        assert {n for n, v in vars(found).items() if v is not None} == set(tables.attention)
        check_layer(tables, found, layer, decoder)


def check_layer(tables, found, layer, decoder):
    line = torch.arange(LENGTH)
    distances = line.unsqueeze(1) - line
    if tables.bias is not None:
        own = tables.bias.expand(2, *tables.bias.shape[1:])[layer][:, distances + LENGTH - 1]
        seen = distances >= 0 if decoder else distances == distances
        assert torch.equal(found.bias[:, seen], own[:, seen])
    for kind in ("relative_keys", "relative_values"):
        if getattr(tables, kind) is not None:
            assert torch.equal(getattr(found, kind), getattr(tables, kind)[layer])
    if tables.rotation is not None:
        angles = line.float().unsqueeze(1) * tables.rotation
        rotation = torch.stack([angles.cos(), angles.sin()]).unsqueeze(2)
        assert torch.equal(found.rotation, rotation.expand_as(found.rotation))


@pytest.mark.parametrize(
    "name, options, reason",
    [
        ("cape", {"mean_normalize": True}, "length"),
        ("rotary", {"scale_method": "dynamic", "original_length": LENGTH - 1}, "length"),
        ("rotary", {"scale": 2.0, "scale_method": "yarn", "original_length": 8}, "larger"),
    ],
)
def test_what_tables_cannot_hold_is_refused(name, options, reason):
    with pytest.raises(ValueError, match=reason):
        build(name, stack_of(False), **options).eval().export_tables(LENGTH)


def test_an_encoding_that_says_nothing_is_refused_with_what_to_write():
    with pytest.raises(ValueError, match="Encoding.export_tables"):
        Encoding(stack_of(False)).export_tables(LENGTH)
