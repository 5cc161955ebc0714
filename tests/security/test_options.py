"""What a stranger's checkpoint asks for in its options: refused in one line, and nothing is run."""

import argparse
import copy
import os
import re
import sys

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import option_checks, signatures
from tests.security.ways import (
    WAYS,
    analyse_or_predict,
    as_dict,
    export_it,
    from_transformer,
    of_task,
    set_option,
)

pytestmark = pytest.mark.usefixtures("quiet")


def places(options, place=()):
    """Yield the paths of all options."""
    for name, value in as_dict(options).items():
        if isinstance(value, (dict, argparse.Namespace)):
            yield from places(value, (*place, name))
        else:
            yield (*place, name)


CALL = "__import__('os').getcwd()"
LEFT_OUT = [
    (("model", "adaptive_softmax_cutoff"), CALL),
    (("model", "adaptive_softmax_cutoff"), "'\\x24{oc.env:HOME}'"),
    (("model", "adaptive_softmax_cutoff"), "9**9**9**9"),
    (("model", "encoder_xformers_att_config"), "9**9**9"),
    (("model", "adaptive_input_cutoff"), "1" + "+1" * 1200),
    (("model", "encoder_embed_path"), "/etc/passwd"),
    (("model", "layers"), 10**9),
    (("model", "restore_file"), "/etc/passwd"),
    (("task", "data"), "/etc/passwd"),
    (("task", "eval_bleu_args"), '{"a": "${oc.env:HOME}"}'),
    (("task", "eval_bleu_args"), '{"beam": 98765}'),
    (("task", "eval_bleu_detok"), "other"),
    (("optimizer", "_name"), "other"),
    (("criterion", "_name"), "composite_loss"),  # builds any other
    (("optimizer", "adam_betas"), CALL),
    (("common", "tensorboard_logdir"), ["${oc.env:HOME}"]),
    (("checkpoint", "save_dir"), "https://example.org/x"),
    (("checkpoint", "restore_file"), "S3://example.org/x"),
    (("generation", "max_len_b"), 98765),
    (("bpe",), {"_name": "sentencepiece", "other": "http://a.b/${oc.env:HOME}"}),
    (("tokenizer",), {"_name": "other"}),
]  # fmt: skip
REFUSED = [
    (("model", "arch"), "fconv"),
    (("model", "encoder_layers"), CALL),
    (("model", "encoder_layers"), [10**5000]),
    (("model", "activation_fn"), "a" + ".a" * 10**6),
    (("model", "position_signature"), "position:none\n\x1b[2J"),
    (("model", "admin_profile"), "/etc/passwd"),
    (("task", "_name"), "multilingual_translation"),
    (("task", "left_pad_source"), CALL),
    (("task", "left_pad_source"), ""),
    (("task", "source_lang"), "en;touch x"),
    (("task", "target_lang"), "../../de"),
    (("common", "seed"), "${oc.env:HOME}"),
]  # fmt: skip


def in_both_forms(trained, place, value):
    """Parts of a checkpoint with an option changed; before fairseq 0.10.2 one namespace has all."""
    name = {"_name": place[0]}.get(place[-1], place[-1])
    args = argparse.Namespace(**{**vars(trained.args), name: value})
    return {"cfg": set_option(trained.cfg, place, value)}, {"args": args, "cfg": None}


def short(part):
    return ".".join(part) if isinstance(part, tuple) else getattr(part, "__name__", "")


# the first three by every way of reading a checkpoint, the others by one of them
READ = [
    (read, *case)
    for number, case in enumerate(REFUSED)
    for read in (WAYS if number < 3 else [WAYS[number % len(WAYS)]])
]


@pytest.mark.parametrize("read, place, value", READ, ids=short)
def test_hostile_options_are_refused_in_one_line(translation, read, place, value):
    forms = in_both_forms(translation, place, value)
    for parts in forms[:1] if place == ("model", "arch") else forms:
        translation.save(**parts)
        with pytest.raises(UsageError, match="refused") as caught:
            read(translation)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("place, value", LEFT_OUT, ids=short)
def test_options_that_no_model_declares_are_left_out(translation, place, value):
    for parts in in_both_forms(translation, place, value):
        translation.save(**parts)
        state = checkpoint_utils.load_checkpoint_to_cpu(translation.path)
        for options in (state["args"], state["cfg"]):
            assert str(value) not in re.split("[ ',=()]", str(options)) or place[1:] == ("_name",)
            assert repr(value)[1:-1] not in str(options) or value in ("x", "other", 10**9)


def test_a_model_loads_without_the_options_that_are_left_out(translation):
    cfg = translation.cfg
    for place, value in LEFT_OUT:
        cfg = set_option(cfg, place, value)
    translation.save(cfg=cfg)
    analyse_or_predict(translation)


PLACES = [
    CALL,
    "${oc.env:HOME}",
    "'\\x24{oc.env:HOME}'",
    "http://127.0.0.1:9/x",
    "\x01ht\ntp:x",
    "/a",
]


@pytest.mark.usefixtures("defaults_once")
@pytest.mark.parametrize("value", PLACES)
def test_no_option_keeps_a_place_in_the_environment_the_web_or_the_files(trained, value):
    is_bert = trained.args.arch.startswith("posenc_bert")  # other groups are those of translation
    for place in places(trained.cfg):
        new, old = in_both_forms(trained, place, value)
        in_new = place[0] in ("model", "task") or not is_bert
        for parts in [old, new] if in_new else [old]:
            state = trained.state(**parts)
            try:
                option_checks.check_options(state, "a.pt")
            except UsageError as error:
                assert "refused" in str(error)
            else:
                assert value not in all_values([state["args"], state["cfg"]]), place


def all_values(options):
    if isinstance(options, argparse.Namespace):
        options = vars(options)
    if isinstance(options, dict):
        options = list(options.values())
    if not isinstance(options, list):
        return [options]
    return [value for inner in options for value in all_values(inner)]


def test_files_that_a_checkpoint_names_are_not_opened(translation, tmp_path, outcome):
    fifo = tmp_path / "fifo"  # whoever opens it hangs, until he is ended
    os.mkfifo(fifo)
    names = "restore_file finetune_from_model continue_once save_dir embed_path encoder_embed_path"
    names += " decoder_embed_path data user_dir sentencepiece_model replace_unk position_signature"
    every = dict.fromkeys(names.split(), str(fifo))
    del every["position_signature"]
    model = argparse.Namespace(
        **{**vars(translation.cfg["model"]), **every, "bpe": "sentencepiece"}
    )
    del model.position_signature  # without it, a training may begin there
    cfg = {**translation.cfg, "model": model}
    for group in ("common", "checkpoint", "generation"):
        cfg[group] = {**cfg[group], **every}
    cfg["task"] = {**cfg["task"], **of_task(cfg, every)}
    cfg["bpe"] = {"_name": "sentencepiece", "sentencepiece_model": str(fifo)}
    for parts in ({"cfg": cfg}, {"cfg": None, "args": model}):
        translation.save(**parts)
        for read in (from_transformer, analyse_or_predict, export_it):
            if parts["cfg"] or read is not export_it:  # which takes new checkpoints alone
                assert outcome(lambda read=read: read(translation), megabytes=4000) == "done"


def test_what_the_command_line_or_the_caller_names_is_allowed(translation, monkeypatch):
    cfg = set_option(translation.cfg, ("criterion", "_name"), "ctc")
    cfg = set_option(cfg, ("criterion", "wer_args"), "('a', 'b')")
    translation.save(cfg=cfg)
    state = checkpoint_utils.load_checkpoint_to_cpu(translation.path)
    assert state["cfg"].criterion._name == "cross_entropy"
    state = checkpoint_utils.load_checkpoint_to_cpu(translation.path, {"criterion": "ctc"})
    assert state["cfg"].criterion.wer_args == "('a', 'b')"
    for words in (["--criterion", "ctc"], ["--criterion=ctc"]):
        monkeypatch.setattr(sys, "argv", ["fairseq-train", *words])
        checkpoint_utils.load_checkpoint_to_cpu(translation.path)


NOT_READ = from_transformer, analyse_or_predict, export_it
# odd values, and by whom they are not read
PARTS = [
    ("last_optimizer_state", {"param_groups": 5}, NOT_READ),
    ("extra_state", {}, NOT_READ),
    ("optimizer_history", [{}], (export_it,)),
    ("task_state", 5, (export_it,)),
    ("model", {"a": 1}, ()),
    ("args", 5, ()),
    ("cfg", 5, ()),
]


@pytest.mark.parametrize("part, value, not_read", PARTS)
@pytest.mark.parametrize("read", NOT_READ, ids=lambda read: read.__name__)
def test_other_parts_are_refused_where_they_are_read(translation, read, part, value, not_read):
    translation.save(**{part: value})
    if read in not_read:
        read(translation)
    else:
        with pytest.raises(UsageError, match="a dictionary|do not fit|does not fit|cannot|is not"):
            read(translation)


KEPT = [
    {"source_lang": "tok.bpe.en"}, {"source_lang": "zh_Hans"}, {"adaptive_softmax_cutoff": "20,60"},
    {"adaptive_softmax_cutoff": [20, 60]}, {"encoder_layers_to_keep": "0,2"}, {"dropout": 0},
    {"left_pad_source": True}, {"tokens_per_sample": 512, "task": "masked_lm"}, {"seed": 7},
    {"position_max_distance": 128, "position_num_buckets": 32, "arch": "posenc_transformer_tiny"},
    {"position_signature": "position:cape|global:5|local:0.5|scale:1e-05|version:0.1.0"},
    {"admin_profile": '{"omegas":{"encoder":[{"a":1.5}]}}', "arch": "posenc_transformer_tiny"},
    {"arch": "transformer_wmt_en_de"}, {"decoder_output_dim": 512}, {"update_freq": [4]},
    {"arch": "transformer_lm_gbw", "task": "language_modeling", "no_tie_adaptive_proj": False},
    {"arch": "roberta_large", "task": "masked_lm", "criterion": "masked_lm", "max_positions": 512},
    {"skip_invalid_size_inputs_valid_test": True}, {"label_smoothing": 0.1}, {"encoder_layers": 48},
    {"encoder_embed_dim": 512, "encoder_ffn_embed_dim": 1024, "max_source_positions": 15_000},
    {"dictionary_hash": "0123456789abcdef", "arch": "posenc_transformer"},
    {"prepend_source_bos": True, "task": "posenc_translation"}, {"encoder_embed_dim": np.int64(8)},
]  # fmt: skip
HONEST = [
    {"data": "data:data2"}, {"save_dir": "runs (1)/a[2]/lr=(0.1)"}, {"lr": [0.5]}, {"lr": 0.5},
    {"distributed_init_method": "tcp://learn0814:58461"}, {"adam_betas": (0.9, 0.98)},
    {"adam_betas": "0.9,0.98"}, {"user_dir": "/x(1)"}, {"left_pad_source": "True"},
    {"eval_bleu_args": '{"beam": 5, "max_len_a": 1.2}'}, {"lang_pairs": "en-de,en-fr"},
    {"gpt2_encoder_json": "https://a.b/encoder.json"}, {"remove_bpe": "@@ "},
    {"lr_scheduler": "cosine", "num_classes": 3}, {"max_tokens": 3584.0, "max_epoch": float("inf")},
]  # fmt: skip


@pytest.mark.parametrize("options", KEPT + HONEST, ids=str)
def test_options_of_honest_checkpoints_are_let_pass(options):
    known = {
        "criterion": "label_smoothed_cross_entropy",
        "task": "translation",
        "arch": "transformer",
    }
    args = argparse.Namespace(**{**known, **options})
    state = {"args": args, "model": {"a": torch.ones(2, 2)}}
    option_checks.check_options(state, "a.pt")
    if options in KEPT:
        assert {name: vars(state["args"])[name] for name in options} == options


def _named_by_a_fork(trained, kind, group, name="transformer_18_18"):
    state = trained.state(cfg=copy.deepcopy(trained.cfg))
    as_dict(state["cfg"][group]).update({kind: name, "_name": name})
    return state


@pytest.mark.parametrize("kind, group", [("arch", "model"), ("task", "task"),
                                         ("criterion", "criterion")])  # fmt: skip
def test_a_training_takes_weights_of_a_model_that_a_fork_has_named(translation, kind, group):
    """Nothing is built from the name there, so shapes are compared instead."""
    state = _named_by_a_fork(translation, kind, group)
    option_checks.check_options(state, "a.pt", builds=False)
    assert signatures.of_checkpoint(state).startswith("position:sinusoidal|")


@pytest.mark.parametrize("kind, group, name, advised", [
    ("arch", "model", "a_fork_s", "if it is fairseq's transformer by another name, say so: "
     "--model-overrides \"{'arch': 'transformer'}\" with fairseq-generate"),
    ("arch", "model", "fconv", "if you trust it, say so: --model-overrides \"{'arch': 'fconv'}\""),
    ("task", "task", "a_fork_s", "if it is fairseq's translation by another name, say so: --task "
     "translation with"),
    ("task", "task", "multilingual_translation", "--task multilingual_translation with"),
])  # fmt: skip
def test_advice_on_an_unknown_name_can_be_followed(translation, kind, group, name, advised):
    state = _named_by_a_fork(translation, kind, group, name)
    with pytest.raises(UsageError, match=f"asks for --{kind} '{name}'") as caught:
        option_checks.check_options(copy.deepcopy(state), "a.pt")
    assert advised in str(caught.value)
    chosen = re.search(rf"{kind}='(\w+)' in Python", str(caught.value))[1]
    option_checks.check_options(state, "a.pt", {kind: chosen})
    assert as_dict(state["cfg"][group])["_name"] == chosen
