"""Options that make no sense are refused with words that help."""

import argparse

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.options import get_training_parser, parse_args_and_arch
from omegaconf import OmegaConf

import fairseq_posenc.models  # noqa: F401
from fairseq_posenc import options
from fairseq_posenc.errors import UsageError


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
        ("learned", {"encoder_attention_heads": 3}, "--encoder-attention-heads and --encoder-embe"),
        ("none", {"decoder_attention_heads": 5}, "5 heads do not divide .*; choose --decoder-att"),
        ("lerned", {}, "unknown position encoding 'lerned'; choose from none, "),
    ],
)
def test_a_refused_option_is_explained(build_model, encoding, chosen, words):
    with pytest.raises(ValueError, match=words):
        build_model(encoding, **chosen)


@pytest.mark.parametrize("make", [OmegaConf.create, lambda found: argparse.Namespace(**found)])
def test_unknown_options_of_positions_are_refused_and_known_ones_let_pass(make):
    for key, meant in (
        ("position_encodng", "position_encoding"),
        ("postion_encoding", "position_encoding"),
        ("position_max_shfit", "position_max_shift"),
        ("position_segments", "position_"),
        ("position_of_the_moon", "position_"),
    ):
        with pytest.raises(UsageError, match=f"no option {key}; is {meant}.* meant"):
            options.check_names(make({"encoder_layers": 2, key: "shape"}))
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    flags = [action.dest for action in parser._actions if action.dest != "help"]
    assert len(flags) == 1 + len(options.OPTIONS)
    known = [*flags, "position_signature", "encoder_learned_pos", "position_segments"]
    options.check_names(make(dict.fromkeys(known, 1)), "segments")


@pytest.mark.parametrize(
    "encoding, option, value, words",
    [
        ("cape", "global_shift", "abc", "--position-global-shift must be a number, not 'abc'"),
        ("cape", "source_scale", "atuo", "must be a number or auto, not 'atuo'"),
        ("cape", "mean_normalize", "no", "must be true or false, not 'no'"),
        ("shape", "max_shift", "1.5", "must be a whole number, not '1.5'"),
        ("shape", "max_shift", [1], r"must be a whole number, not \[1\]"),
        ("abs_scalar", "rank", "x", "must be a whole number or auto, not 'x'"),
    ],
)
def test_a_value_of_another_type_is_refused(encoding, option, value, words):
    found = {"position_encoding": encoding, f"position_{option}": value}
    with pytest.raises(UsageError, match=words):
        options.chosen(argparse.Namespace(**found))


def test_values_from_a_file_are_those_of_the_command_line():
    found = {"position_encoding": "cape", "position_global_shift": 5, "position_local_shift": "0.5"}
    chosen = options.chosen(OmegaConf.create(found))
    assert chosen == {"global_shift": 5.0, "local_shift": 0.5}
    assert all(isinstance(value, float) for value in chosen.values())


@pytest.mark.parametrize("arch", [name for name in ARCH_MODEL_REGISTRY if "posenc" in name])
@pytest.mark.parametrize("flag", ["--bf16", "--memory-efficient-bf16"])
@pytest.mark.parametrize("others, tpu", [([], False), (["--cpu"], True)])
def test_bf16_trains_on_a_gpu(monkeypatch, arch, flag, others, tpu):
    """fairseq takes it for a TPU's; with --cpu that stays, and our tasks refuse it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    words = ["data", "--arch", arch, "--task", "masked_lm", flag, *others]
    args = parse_args_and_arch(get_training_parser(), words)
    assert (args.bf16, args.tpu) == (True, tpu)
