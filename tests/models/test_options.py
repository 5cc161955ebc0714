"""Options that make no sense are refused with words that help."""

import argparse

import pytest

from fairseq_posenc import encodings, options


@pytest.mark.parametrize(
    "encoding, chosen, words",
    [
        ("cape", {"position_max_shift": 10}, "--position-max-shift is not read by"),
        ("none", {"position_source_scale": "auto"}, "choose sinusoidal or shape or cape"),
        (
            "shape",
            {"position_max_shift": -1},
            "max shift K must be a whole number, 0 or more, not -1",
        ),
        ("cape", {"position_global_scale": 0.5}, "λmax must be 1 or more, not 0.5"),
        ("cape", {"position_source_scale": 0.0}, "must be a positive number, not 0.0"),
        ("cape", {"position_mean_normalize": True}, "leave it off for translation"),
        ("conditional", {"position_kernel_size": 4}, "odd and at least 3, not 4"),
        ("learned", {"encoder_learned_pos": True}, "use --position-encoding none or learned"),
        ("learned", {"max_source_positions": 0}, "cannot have 0 rows"),
        ("lerned", {}, "unknown position encoding 'lerned'; choose from none, "),
    ],
)
def test_a_refused_option_is_explained(build_model, encoding, chosen, words):
    with pytest.raises(ValueError, match=words) as caught:
        build_model(encoding, **chosen)
    assert "\n" not in str(caught.value)


def test_an_option_at_its_default_is_let_pass(build_model):
    model = build_model("none", position_max_shift=500)
    assert model.encoder.embed_positions.state_dict() == {}


def test_the_help_names_readers_and_defaults():
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    shown = " ".join(parser.format_help().split())
    assert "(read by shape; default: 500)" in shown
    for name in encodings.names():
        assert name in shown


def test_the_signature_is_kept_with_the_model(build_model):
    model = build_model("shape", position_max_shift=40)
    assert model.args.position_signature.startswith("position:shape|max-shift:40|eval-shift:0|")
