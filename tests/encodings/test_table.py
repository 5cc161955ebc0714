"""The table of encodings: building by name, signatures, options, and what may be imported."""

import argparse
import re

import pytest

from fairseq_posenc import options as command_line
from fairseq_posenc.encodings import (
    TABLE,
    StackConfig,
    build,
    format_value,
    names,
    options,
    signature,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.version import __version__
from tests.programs import python

NAN, INFINITY = float("nan"), float("inf")

every_encoding = pytest.mark.parametrize("name", names())


@pytest.mark.parametrize(
    "name, option, readers",
    [
        ("none", "max_shift", ["shape"]),
        ("learned", "source_scale", ["sinusoidal", "shape", "cape"]),
        ("shape", "global_shift", ["cape"]),
        ("cape", "kernel_size", ["conditional"]),
        ("sinusoidal", "invented", []),
    ],
)
def test_an_option_of_another_encoding_is_refused_with_its_readers(name, option, readers):
    with pytest.raises(ValueError) as caught:
        build(name, StackConfig(8), **{option: 1})
    for word in [name, option.replace("_", "-"), *readers]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "name, option, value",
    [
        *[("shape", "max_shift", v) for v in (-1, NAN, INFINITY, 2.5)],
        *[("shape", "eval_shift", v) for v in (-1, NAN, INFINITY)],
        *[("cape", "global_shift", v) for v in (-0.1, NAN, INFINITY)],
        *[("cape", "local_shift", v) for v in (-0.1, NAN, INFINITY)],
        *[("cape", "global_scale", v) for v in (0.99, 0.0, -2.0, NAN, INFINITY)],
        *[
            (name, "source_scale", v)
            for name in ("sinusoidal", "shape", "cape")
            for v in (0.0, -1.0, NAN, INFINITY)
        ],
        *[("conditional", "kernel_size", v) for v in (1, 2, 4, 0, -3, NAN, 3.5)],
        ("conditional", "convolve_cls", True),
        *[("rel_scalar", "max_distance", v) for v in (-1, NAN, INFINITY, 2.5)],
        *[("shaw", "max_distance", v) for v in (0, -1, NAN, INFINITY, 2.5)],
        *[(n, "max_distance", v) for n in ("t5", "tupe") for v in (8, 0, -1, NAN, INFINITY, 99.5)],
        *[(n, "num_buckets", v) for n in ("t5", "tupe") for v in (0, 2, 7, -4, NAN, 8.0)],
        *[(n, "sharing", "no") for n in ("t5", "abs_scalar", "rel_scalar")],
        *[("abs_scalar", "rank", v) for v in (0, -1, NAN, 2.5)],
        *[("rotary", "base", v) for v in (1.0, -2.0, NAN, INFINITY)],
        *[("rotary", "scale", v) for v in (0.5, 0.0, NAN, INFINITY)],
        *[("rotary", "scale_method", v) for v in ("yarn", "dynamic", "yarm")],
        *[("rotary", "original_length", v) for v in (-1, NAN, 64, 2.5)],
        *[(n, "drawn_below", v) for n in ("unifpe", "randomized") for v in (0, -1, NAN, 2.5)],
        ("randomized", "inner", "shaw"),
        ("kerple", "sharing", "no"),
        ("shaw", "initialization", "zeros"),
    ],
)
@pytest.mark.parametrize("decoder", [False, True])
def test_a_value_without_sense_is_refused_on_both_sides(name, option, value, decoder):
    with pytest.raises(ValueError) as caught:
        build(name, StackConfig(8, decoder), **{option: value})
    assert re.search(option.replace("_", "[-_ ]"), str(caught.value)), str(caught.value)


SIGNATURES = {
    "none": "position:none",
    "sinusoidal": "position:sinusoidal|source-scale:1",
    "learned": "position:learned",
    "shape": "position:shape|max-shift:500|eval-shift:0|source-scale:1",
    "unifpe": "position:unifpe|drawn-below:auto|separate-draws:no",
    "randomized": "position:randomized|inner:sinusoidal|drawn-below:2048",
    "cape": "position:cape|global-shift:5|local-shift:0.5|global-scale:1|source-scale:1"
    "|mean-normalize:no",
    "conditional": "position:conditional|kernel-size:3|convolve-cls:no",
    "shaw": "position:shaw|max-distance:16|shared-tables:no|initialization:xavier",
    "transformer_xl": "position:transformer_xl",
    "t5": "position:t5|num-buckets:32|max-distance:128|sharing:layers",
    "tupe": "position:tupe|num-buckets:32|max-distance:128",
    "abs_scalar": "position:abs_scalar|rank:auto|sharing:none",
    "rel_scalar": "position:rel_scalar|sharing:none|max-distance:0",
    "rotary": "position:rotary|base:10000|scale:1|scale-method:linear|original-length:0",
    "alibi": "position:alibi",
    "kerple": "position:kerple|sharing:none",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_do_not_change_between_versions(name):
    assert signature(name) == f"{SIGNATURES[name]}|version:{__version__}"


OTHERS = {int: 337, str: "heads", type(None): 337}


@every_encoding
def test_a_signature_tells_values_apart(name):
    for option, default in options(name).items():
        if isinstance(default, bool):
            other = not default
        else:
            other = default + 0.0337 if isinstance(default, float) else OTHERS[type(default)]
        assert signature(name, **{option: other}) != signature(name)
        assert signature(name, **{option: default}) == signature(name)


def test_every_option_of_an_encoding_is_on_the_command_line_and_no_other():
    read = {option for name in names() for option in options(name)}
    assert set(command_line.OPTIONS) == read


@every_encoding
def test_an_option_means_the_same_type_everywhere(name):
    for option, default in options(name).items():
        parse = command_line.OPTIONS[option].parse
        parsed = parse(default if parse is bool else format_value(default))
        assert (parsed, type(parsed)) == (default, type(default))


@pytest.mark.parametrize(
    "given, expected",
    [
        ("t5 --position-max-distance 16", {"max_distance": 16}),
        ("rotary --position-max-distance 16", {}),
        ("rotary --position-max-distance 128 --position-sharing layers", {}),
        ("abs_scalar --position-rank auto", {"rank": None}),
        ("abs_scalar --position-rank 5 --position-sharing heads", {"rank": 5, "sharing": "heads"}),
        ("shaw --position-shared-tables --position-rank auto", {"shared_tables": True}),
    ],
)
def test_the_default_of_any_reader_is_let_pass(given, expected):
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    args = parser.parse_args(["--position-encoding", *given.split()])
    assert command_line.chosen(args) == expected


@pytest.mark.parametrize("given", ["alibi --position-max-distance 17", "t5 --position-rank 8"])
def test_what_is_no_default_of_a_reader_is_refused(given):
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    with pytest.raises(UsageError, match="is not read by"):
        command_line.chosen(parser.parse_args(["--position-encoding", *given.split()]))


@every_encoding
def test_the_docstring_says_which_paper_it_follows(name):
    text = TABLE[name].__doc__
    assert re.search(r"et al\. \d{4}|section \d|[Aa]ppendix [A-Z]|eq\. \d|\bCAPE\b|\bSHAPE\b", text)
    for option in options(name):
        assert option in text


def test_encodings_work_where_fairseq_is_not_installed():
    program = """
import sys
for blocked in ("fairseq", "omegaconf", "hydra", "sacrebleu"):
    sys.modules[blocked] = None
import torch
from fairseq_posenc.encodings import Positions, StackConfig, build, names
for name in names():
    for decoder in (False, True):
        encoding = build(name, StackConfig(channels=8, decoder=decoder))
        terms = encoding(Positions.of_tokens(torch.full((2, 3), 7), padding_index=1))
        for layer in terms.after_layer.values():
            layer(torch.zeros(3, 2, 8))
print(*names())
"""
    assert python(program).split() == names()


@pytest.mark.parametrize(
    "name, option",
    [(name, each) for name in names() for each in ("drawn_below", "rank") if each in options(name)],
)
def test_auto_on_the_command_line_is_not_the_default(name, option):
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    flag = f"--position-{option.replace('_', '-')}"
    args = parser.parse_args(["--position-encoding", name, flag, "auto"])
    assert command_line.chosen(args) == {option: None}
    assert f"|{flag.replace('--position-', '')}:auto|" in command_line.signature(args)
